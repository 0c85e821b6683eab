/** The same symbol in every copy of this package: a program may have loaded it by `import` and by `require`. */
const KIND = Symbol.for('@boltyard/sdk error')

/** What every failure of this package is: a code to act on, and what the service said, as far as it said anything. */
export class BoltyardError extends Error {
  static readonly [KIND]: string = 'BoltyardError'
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

  /** By kind, not by class: a client from one copy of this package may be given to a paywall from another. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    // biome-ignore lint/complexity/noThisInStatic: the class that is asked for, mostly one of those below
    return isA(this, value)
  }
}

function isA(kind: typeof BoltyardError, value: unknown): boolean {
  // A class of the caller's own is told apart as usual.
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

/** 400, 403, 405, 413, 415, 421: the request itself is wrong, or the node is in no state for it (`invalid_node_state`). */
export class BadRequestError extends BoltyardError {
  static override readonly [KIND]: string = 'BadRequestError'
}

/** 400: the credential is not a proof of this payment. */
export class CredentialError extends BadRequestError {
  static override readonly [KIND]: string = 'CredentialError'
  /** True: the proof is right, but the node does not know of the money yet. Ask again shortly; do not ask the customer to pay again. */
  get notSettled(): boolean {
    return this.details.reason === 'not_settled'
  }
}

/** 401: no key, a wrong or disabled one, or one without the scope. */
export class AuthenticationError extends BoltyardError {
  static override readonly [KIND]: string = 'AuthenticationError'
}

/** 402: the account's credit is used up. */
export class InsufficientCreditError extends BoltyardError {
  static override readonly [KIND]: string = 'InsufficientCreditError'
  /** Paid, it makes the same call succeed. */
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

/** 410: not paid in time, or the credential's own time is over. */
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

/** 5xx, or an answer that is not the service's. */
export class ServiceError extends BoltyardError {
  static override readonly [KIND]: string = 'ServiceError'
}

/** No answer. */
export class ConnectionError extends BoltyardError {
  static override readonly [KIND]: string = 'ConnectionError'
}

/** Your time limit passed before there was an answer. */
export class TimeoutError extends BoltyardError {
  static override readonly [KIND]: string = 'TimeoutError'
}

/** It may have been done or not, and doing it twice is not the same as doing it once: look at the node before you repeat it. */
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
