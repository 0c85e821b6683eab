import { Problem } from '../problems.ts'
import type { ExpectedTerms } from '../store/deliveries.ts'
import type { PaymentRow, Terms } from '../store/payments.ts'

/** The names of the terms that are not as expected. A payment without a resource is bound by its description. */
export function mismatchOf(terms: Terms, expect: ExpectedTerms): (keyof ExpectedTerms)[] {
  const { nodeId, amountSat, description, resource } = terms
  const is = { nodeId, resource: resource ?? description, description, amountSat }
  const names = (['nodeId', 'resource', 'description', 'amountSat'] as const).filter(
    (name) => expect[name] !== undefined && expect[name] !== is[name],
  )
  const isTooLittle = expect.minAmountSat !== undefined && amountSat < expect.minAmountSat
  return isTooLittle ? [...names, 'minAmountSat'] : names
}

/** A credential shown at the wrong door: it is good, and must not be used up there. */
export function requireTerms(payment: PaymentRow, expect: ExpectedTerms | undefined): void {
  const mismatch = expect ? mismatchOf(payment, expect) : []
  if (mismatch.length === 0) return
  throw new Problem('terms_mismatch', `The payment was made on other terms: ${mismatch.join(', ')}.`, {
    details: { mismatch, settled: payment.isSettled, redeemed: payment.redeemedAt !== null },
  })
}
