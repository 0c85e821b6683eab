import type { Refusal } from '../../../protocol/src/refusal.ts'
import { DUPLICATE_SETTLEMENT, INVOICE_NOT_SETTLED, RECEIVER_UNAVAILABLE, X402Refusal } from '../../../protocol/src/x402.ts'
import { Problem, type ProblemCode } from '../problems.ts'
import type { ExpectedTerms } from '../store/payments/deliveries.ts'
import type { PaymentRow } from '../store/payments/payments.ts'
import type { DeliveryOutcome, PaymentOutcome } from './outcomes.ts'

const PROBLEMS = 'https://paymentauth.org/problems/'

type PaymentContext = { payment: PaymentRow; mismatch: (keyof ExpectedTerms)[]; refusal: Refusal | undefined }

/** The reason as x402 names it, for payments of that protocol. */
const errorReason = ({ protocol }: PaymentRow, reason: string): { errorReason?: string } =>
  protocol === 'x402' ? { errorReason: reason } : {}

/** The error for each outcome. No message repeats the presented credential. */
export function paymentProblem(outcome: PaymentOutcome, { payment, mismatch, refusal }: PaymentContext): Problem {
  switch (outcome) {
    case 'credential_invalid':
    case 'credential_expired':
      return credentialProblem(outcome, refusal, payment)
    case 'settlement_unknown':
      return new Problem('payment_service_unavailable', 'The node did not say whether the invoice was paid. Try again shortly.', {
        details: errorReason(payment, RECEIVER_UNAVAILABLE),
      })
    case 'challenge_expired':
      return new Problem('payment_expired', 'The challenge has expired, and the node reports that it was not paid.', {
        details: { problem: `${PROBLEMS}lightning/expired-invoice` },
      })
    case 'not_settled':
      return new Problem(
        'invalid_payment_credential',
        'The node has not reported the payment as received yet. Try again shortly.',
        {
          details: {
            reason: 'not_settled',
            problem: `${PROBLEMS}verification-failed`,
            ...errorReason(payment, INVOICE_NOT_SETTLED),
          },
        },
      )
    case 'other_terms':
      return new Problem('terms_mismatch', `The payment does not match the expected terms: ${mismatch.join(', ')}.`, {
        details: { mismatch, settled: payment.isSettled, redeemed: payment.redeemedAt !== null },
      })
    case 'granted':
      throw new Error('a granted payment is not a problem')
  }
}

function credentialProblem(
  outcome: 'credential_invalid' | 'credential_expired',
  refusal: Refusal | undefined,
  { protocol, isSettled }: PaymentRow,
): Problem {
  if (!refusal) throw new Error(`${outcome} without a refusal reason`)
  if (outcome === 'credential_invalid') return refusalProblem('invalid_payment_credential', refusal)
  // x402 refuses a late credential even if the invoice was paid. `settled` tells the shop not to ask the customer to pay again.
  return refusalProblem('payment_expired', refusal, protocol === 'x402' ? { settled: isSettled } : {})
}

export function refusalProblem(code: ProblemCode, refusal: Refusal, more: Record<string, unknown> = {}): Problem {
  const problem = refusal.problem === undefined ? {} : { problem: refusal.problem }
  const named = refusal instanceof X402Refusal ? { errorReason: refusal.errorReason } : {}
  return new Problem(code, refusal.message, { details: { ...problem, ...named, ...more } })
}

export function deliveryProblem(outcome: DeliveryOutcome, payment: PaymentRow): Problem {
  switch (outcome) {
    case 'released_before':
      return new Problem('not_claimed', 'This requestId has already released the delivery. Use a new requestId for each attempt.')
    case 'already_redeemed':
      return new Problem('already_redeemed', 'This payment was already redeemed. To repeat a redemption, send its requestId.', {
        details: errorReason(payment, DUPLICATE_SETTLEMENT),
      })
    case 'in_progress':
      return deliveryInProgress(Math.max(1, Math.ceil((payment.heldForMs ?? 0) / 1000)))
    default:
      throw new Error(`${outcome} is not a problem`)
  }
}

export const deliveryInProgress = (seconds: number): Problem =>
  new Problem('delivery_in_progress', 'Another request is delivering this payment. Try again after its hold ends.', {
    headers: { 'retry-after': String(seconds) },
  })
