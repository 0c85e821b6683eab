/** Shared by all copies of this package: a program may load it with both `import` and `require`. */
export const KIND = Symbol.for('@boltyard/sdk error')

/** The base class of all errors of this package. It has a code to act on and, if the service responded, details of the response. */
export class BoltyardError extends Error {
  static readonly [KIND]: string = 'BoltyardError'
  readonly code: string
  readonly status: number | undefined
  /** The id of the request in the service's log. Quote it when you report a problem to the operator. */
  readonly requestId: string | undefined
  /**
   * The other members of the service's error object, such as `reason`. If the call may have been carried out, also the
   * `idempotencyKey` or `requestId` with which you can repeat it safely.
   */
  readonly details: Record<string, unknown>

  constructor(message: string, facts: Facts) {
    super(message, { cause: facts.cause })
    this.name = new.target.name
    this.code = facts.code
    this.status = facts.status
    this.requestId = facts.requestId
    this.details = facts.details ?? {}
  }

  /** Compares by name, not by class, because a client from one copy of this package may be passed to a paywall from another. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    // biome-ignore lint/complexity/noThisInStatic: the class on the right of instanceof, usually a subclass
    return isA(this, value)
  }
}

function isA(kind: typeof BoltyardError, value: unknown): boolean {
  // A subclass that the caller has defined has no KIND of its own. Compare it by class, as usual.
  if (!Object.hasOwn(kind, KIND)) return Function.prototype[Symbol.hasInstance].call(kind, value)
  if (!(value instanceof Error)) return false
  for (let above: unknown = value.constructor; typeof above === 'function'; above = Object.getPrototypeOf(above))
    if (Object.hasOwn(above, KIND) && (above as typeof BoltyardError)[KIND] === kind[KIND]) return true
  return false
}

export type Facts = {
  code: string
  status?: number | undefined
  requestId?: string | undefined
  details?: Record<string, unknown> | undefined
  retryAfterSeconds?: number | undefined
  cause?: unknown
}

/** 400, 403, 405, 413, 415, 421: the request is invalid, or the node's status does not allow it (`invalid_node_state`). */
export class BadRequestError extends BoltyardError {
  static override readonly [KIND]: string = 'BadRequestError'
}

/** 400: the credential does not prove this payment. */
export class CredentialError extends BadRequestError {
  static override readonly [KIND]: string = 'CredentialError'
  /**
   * True if the credential is correct but the node has not received the money yet. Retry shortly, and do not ask the customer to pay again.
   */
  get notSettled(): boolean {
    return this.details.reason === 'not_settled'
  }
}

/** 401: the key is missing, invalid, disabled, expired or revoked, or lacks the scope. */
export class AuthenticationError extends BoltyardError {
  static override readonly [KIND]: string = 'AuthenticationError'
}

/** 402: the account does not have enough credit. */
export class InsufficientCreditError extends BoltyardError {
  static override readonly [KIND]: string = 'InsufficientCreditError'
  /** Pay this invoice, then repeat the call. */
  get topUp(): { amountSat: number; invoice: string; expiresAt: number } | undefined {
    return this.details.topUp as { amountSat: number; invoice: string; expiresAt: number } | undefined
  }
}

export class NotFoundError extends BoltyardError {
  static override readonly [KIND]: string = 'NotFoundError'
}

/**
 * 409: `already_redeemed`, `delivery_in_progress`, `terms_mismatch`, `not_claimed`, `node_has_funds`, `limit_reached`,
 * `operation_in_progress`, `idempotency_conflict`.
 */
export class ConflictError extends BoltyardError {
  static override readonly [KIND]: string = 'ConflictError'
}

/** 410: the payment was not made in time, the credential has expired, or events after the cursor have been removed. */
export class ExpiredError extends BoltyardError {
  static override readonly [KIND]: string = 'ExpiredError'
}

export class RateLimitError extends BoltyardError {
  static override readonly [KIND]: string = 'RateLimitError'
  readonly retryAfterSeconds: number | undefined

  constructor(message: string, facts: Facts) {
    super(message, facts)
    this.retryAfterSeconds = facts.retryAfterSeconds
  }
}

/** 5xx, or a response that does not come from the service. */
export class ServiceError extends BoltyardError {
  static override readonly [KIND]: string = 'ServiceError'
}

/** The service could not be reached, or the connection broke. */
export class ConnectionError extends BoltyardError {
  static override readonly [KIND]: string = 'ConnectionError'
}

/** There was no response within the time limit. */
export class TimeoutError extends BoltyardError {
  static override readonly [KIND]: string = 'TimeoutError'
}

/** The operation may or may not have been carried out, and it is not safe to repeat. Check the current state before you retry. */
export class UncertainOutcomeError extends BoltyardError {
  static override readonly [KIND]: string = 'UncertainOutcomeError'
}

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
