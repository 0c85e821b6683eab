import { ConflictError, CredentialError, ExpiredError, NotFoundError } from '../errors.ts'
import { OTHER_TERMS, type Refusal, refusalOf } from './answers.ts'

/**
 * `refused`: the customer needs a new challenge. `too_little`: paid for this resource, but less than its current price. `in_progress`:
 * another request with the same credential is in progress. `too_late`: paid, but presented after the time in which x402 accepts it.
 * `other_request`: paid by x402 for this resource, but for a request with another URL, body or header.
 */
export type Verdict =
  | { is: 'refused'; refusal: Refusal }
  | { is: 'too_little'; isClaimed: boolean }
  | { is: 'in_progress' }
  | { is: 'too_late' }
  | { is: 'other_request' }

/** What a gateway error says about a credential. Undefined if it says nothing: the credential may be valid and paid. */
export function verdictOf(error: unknown): Verdict | undefined {
  if (error instanceof ConflictError) return verdictOfConflict(error)
  if (error instanceof ExpiredError && error.details.settled === true) return { is: 'too_late' }
  if (error instanceof CredentialError && error.details.settled === true) return { is: 'other_request' }
  const isRefused =
    (error instanceof CredentialError && !error.notSettled) ||
    error instanceof ExpiredError ||
    (error instanceof NotFoundError && error.code === 'gateway_payment_not_found')
  return isRefused ? { is: 'refused', refusal: refusalOf(error.code, error.details) } : undefined
}

function verdictOfConflict({ code, details }: ConflictError): Verdict | undefined {
  if (code === 'already_redeemed') return { is: 'refused', refusal: refusalOf(code, details) }
  if (code === 'delivery_in_progress') return { is: 'in_progress' }
  if (code !== 'terms_mismatch') return undefined
  const { mismatch = [], redeemed } = details as { mismatch?: string[]; redeemed?: boolean }
  const isPriceOnly = mismatch.length > 0 && mismatch.every((name) => name === 'minAmountSat')
  return isPriceOnly ? { is: 'too_little', isClaimed: redeemed === true } : { is: 'refused', refusal: OTHER_TERMS }
}
