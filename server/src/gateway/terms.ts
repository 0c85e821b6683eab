import type { ExpectedTerms } from '../store/payments/deliveries.ts'
import type { Terms } from '../store/payments/payments.ts'

/** The names of the terms that differ from the expected ones. A payment without a resource is identified by its description. */
export function mismatchOf(terms: Terms, expect: ExpectedTerms): (keyof ExpectedTerms)[] {
  const { nodeId, amountSat, description, resource } = terms
  const is = { nodeId, resource: resource ?? description, description, amountSat }
  const names = (['nodeId', 'resource', 'description', 'amountSat'] as const).filter(
    (name) => expect[name] !== undefined && expect[name] !== is[name],
  )
  const isTooLittle = expect.minAmountSat !== undefined && amountSat < expect.minAmountSat
  return isTooLittle ? [...names, 'minAmountSat'] : names
}
