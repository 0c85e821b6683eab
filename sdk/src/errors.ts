/** What every failure of this package is: a code to act on, and what the service said, as far as it said anything. */
export class BoltyardError extends Error {
  readonly code: string
  readonly status: number | undefined
  /** Name it when you ask the operator about a failure. */
  readonly requestId: string | undefined
  /** What else the service's error holds. */
  readonly details: Record<string, unknown>

  constructor(message: string, facts: Facts) {
    super(message, { cause: facts.cause })
    this.name = new.target.name
    this.code = facts.code
    this.status = facts.status
    this.requestId = facts.requestId
    this.details = facts.details ?? {}
  }
}

export type Facts = {
  code: string
  status?: number | undefined
  requestId?: string | undefined
  details?: Record<string, unknown> | undefined
  retryAfterSeconds?: number | undefined
  cause?: unknown
}

/** 400, 405, 413, 415: the request itself is wrong, or the node is in no state for it (`invalid_node_state`). */
export class BadRequestError extends BoltyardError {}

/** 400: the credential is not a proof of this payment. */
export class CredentialError extends BadRequestError {
  /** True: the proof is right, but the node does not know of the money yet. Ask again shortly; do not ask the customer to pay again. */
  get notSettled(): boolean {
    return this.details.reason === 'not_settled'
  }
}

/** 401: no key, a wrong or disabled one, or one without the scope. */
export class AuthenticationError extends BoltyardError {}

/** 402: the account's credit is used up. */
export class InsufficientCreditError extends BoltyardError {
  /** Paid, it makes the same call succeed. */
  get topUp(): { amountSat: number; invoice: string; expiresAt: number } | undefined {
    return this.details.topUp as { amountSat: number; invoice: string; expiresAt: number } | undefined
  }
}

export class NotFoundError extends BoltyardError {}

/**
 * 409: `already_redeemed`, `delivery_in_progress`, `terms_mismatch`, `not_claimed`, `node_has_funds`, `limit_reached`,
 * `operation_in_progress`, `idempotency_conflict`.
 */
export class ConflictError extends BoltyardError {}

/** 410: not paid in time, or the credential's own time is over. */
export class ExpiredError extends BoltyardError {}

export class RateLimitError extends BoltyardError {
  readonly retryAfterSeconds: number | undefined

  constructor(message: string, facts: Facts) {
    super(message, facts)
    this.retryAfterSeconds = facts.retryAfterSeconds
  }
}

/** 5xx, or an answer that is not the service's. */
export class ServiceError extends BoltyardError {}

/** No answer. */
export class ConnectionError extends BoltyardError {}

/** Your time limit passed before there was an answer. */
export class TimeoutError extends BoltyardError {}

/** It may have been done or not, and doing it twice is not the same as doing it once: look at the node before you repeat it. */
export class UncertainOutcomeError extends BoltyardError {}

const BY_STATUS: Record<number, typeof BoltyardError> = {
  401: AuthenticationError,
  402: InsufficientCreditError,
  404: NotFoundError,
  409: ConflictError,
  410: ExpiredError,
  429: RateLimitError,
}

export function errorOf(status: number, message: string, facts: Facts): BoltyardError {
  if (facts.code === 'invalid_payment_credential') return new CredentialError(message, facts)
  const Kind = BY_STATUS[status] ?? (status >= 400 && status < 500 ? BadRequestError : ServiceError)
  return new Kind(message, facts)
}
