import { jsonObjectIn } from './bytes.ts'
import { caveatValues, L402_SERVICE, readL402 } from './l402.ts'
import { readMpp } from './mpp.ts'
import { Refusal } from './refusal.ts'

const PAYMENT_ID = /^pay_[0-9a-z]{20}$/

/**
 * The payment id in a customer's Authorization header. It only says which payment to ask about: the service refuses a credential with
 * another payment's id. Undefined if it is not a payment credential, or not one of Boltyard's.
 */
export function paymentIdOf(credential: string): string | undefined {
  const id = /^[ \t]*Payment /i.test(credential) ? mppPaymentId(credential) : l402PaymentId(credential)
  return typeof id === 'string' && PAYMENT_ID.test(id) ? id : undefined
}

function mppPaymentId(credential: string): unknown {
  const read = readMpp(credential)
  return read instanceof Refusal ? undefined : jsonObjectIn(read.challenge.request)?.externalId
}

/** The first `payment_id` caveat; the customer may have added later ones. */
function l402PaymentId(credential: string): string | undefined {
  const read = readL402(credential)
  return read instanceof Refusal ? undefined : caveatValues(read.macaroon, 'payment_id')[0]
}

/** The expiry of an accepted L402 credential, in Unix seconds: the earliest time in it, because any holder can add an earlier one. */
export function validUntilOf(credential: string): number | undefined {
  const read = readL402(credential)
  if (read instanceof Refusal) return undefined
  const times = caveatValues(read.macaroon, `${L402_SERVICE}_valid_until`).map(Number)
  return times.length === 0 ? undefined : Math.min(...times)
}
