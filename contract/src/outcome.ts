import type { GatewayPayment } from './dashboard/payments.ts'

/** What became of a payment. The dashboard shows it as the status of a payment, and the CSV export has it as `outcome`. */
export type Outcome = 'unpaid' | 'expired' | 'settled' | 'paid' | 'paid_got_nothing' | 'delivering' | 'delivered'

type Payment = Pick<GatewayPayment, 'status' | 'settledAt' | 'delivery' | 'heldUntil' | 'releases'>

/** Customers normally come back within seconds of their payment. After this time, they are no longer expected. */
export const PATIENCE_SECONDS = 600

/** When a payment begins to count as one whose customer got nothing. Null: it does not, as far as is known. */
export function gotNothingAt({ status, settledAt, delivery, heldUntil, releases }: Payment): number | null {
  if (settledAt === null || delivery !== 'none') return null
  // If a payment was only validated, its server probably delivers without telling the gateway.
  const hasFailed = heldUntil !== null || releases > 0
  return status === 'paid' && !hasFailed ? null : settledAt + PATIENCE_SECONDS
}

/** `gotNothing`: whether the time of `gotNothingAt` has come. */
export function outcomeOf(payment: Payment, gotNothing: boolean): Outcome {
  if (payment.delivery === 'done') return 'delivered'
  if (payment.delivery === 'held') return 'delivering'
  if (gotNothing) return 'paid_got_nothing'
  if (payment.status === 'paid') return 'paid'
  if (payment.settledAt !== null) return 'settled'
  return payment.status === 'expired' ? 'expired' : 'unpaid'
}
