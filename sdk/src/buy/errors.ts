import { BoltyardError, type Facts, KIND } from '../errors.ts'

/** Whether money was spent. `unpaid` and `paid` are certain. After `unknown`, the next call first asks the wallet. */
export type Outcome = 'unpaid' | 'unknown' | 'paid'

export type PurchaseErrorCode =
  | 'authorization_taken'
  | 'bad_redirection'
  | 'body_not_repeatable'
  | 'budget_exceeded'
  | 'connection_failed'
  | 'credential_refused'
  | 'invoice_repeated'
  | 'payment_failed'
  | 'payment_refused'
  | 'payment_unknown'
  | 'purchase_in_progress'
  | 'too_expensive'
  | 'unusable_challenge'
  | 'wallet_mismatch'
  | 'wallet_password'
  | 'wallet_unreachable'
  | 'wrong_network'
  | 'wrong_preimage'

type More = Omit<Facts, 'code'>

/** Why nothing was bought, or why something that was bought was not delivered. `outcome` says whether money was spent. */
export class PurchaseError extends BoltyardError {
  static override readonly [KIND]: string = 'PurchaseError'
  declare readonly code: PurchaseErrorCode
  readonly outcome: Outcome
  /** The message without the sentence that is added to it if `outcome` is `unpaid`. */
  readonly reason: string

  constructor(outcome: Outcome, code: PurchaseErrorCode, reason: string, more: More = {}) {
    const about = code === 'purchase_in_progress' ? 'This call paid nothing.' : 'Nothing was paid.'
    super(outcome === 'unpaid' ? `${reason} ${about}` : reason, { ...more, code, details: { ...more.details, outcome } })
    this.outcome = outcome
    this.reason = reason
  }

  /**
   * Returns this error with the payment hash of the purchase. If an earlier attempt may have paid, `unpaid` becomes `unknown`.
   */
  about(paymentHash: string, isResumed: boolean): PurchaseError {
    const isDoubtful = isResumed && this.outcome === 'unpaid'
    const reason = isDoubtful ? `${this.reason} This call paid nothing, but an earlier one may have.` : this.reason
    const details = { ...this.details, paymentHash }
    return new PurchaseError(isDoubtful ? 'unknown' : this.outcome, this.code, reason, { cause: this.cause ?? this, details })
  }
}

/** For a wallet function: throw it if the payment was certainly not made. After any other error, the outcome counts as unknown. */
export class NotPaidError extends BoltyardError {
  static override readonly [KIND]: string = 'NotPaidError'

  constructor(message: string, { cause }: { cause?: unknown } = {}) {
    super(message, { code: 'not_paid', cause })
  }
}

export const inProgress = (): PurchaseError =>
  new PurchaseError(
    'unpaid',
    'purchase_in_progress',
    'Another call has bought the same thing, or is buying it now. To buy it once per call, give each call its own `purchaseKey`.',
  )
