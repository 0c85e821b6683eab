/** Every error a caller can see, and its status. The message helps the caller; the cause goes to the log. */
const STATUS = {
  bad_request: 400,
  invalid_payment_credential: 400,
  invalid_node_state: 400,
  no_update_available: 400,
  unauthorized: 401,
  insufficient_credit: 402,
  forbidden_origin: 403,
  node_not_found: 404,
  gateway_payment_not_found: 404,
  not_found: 404,
  method_not_allowed: 405,
  node_has_funds: 409,
  operation_in_progress: 409,
  idempotency_conflict: 409,
  limit_reached: 409,
  already_redeemed: 409,
  delivery_in_progress: 409,
  terms_mismatch: 409,
  not_claimed: 409,
  payment_expired: 410,
  payload_too_large: 413,
  unsupported_media_type: 415,
  misdirected_request: 421,
  rate_limited: 429,
  internal_error: 500,
  payment_service_unavailable: 502,
  service_unavailable: 503,
} as const

export type ProblemCode = keyof typeof STATUS

export class Problem extends Error {
  readonly code: ProblemCode
  readonly status: number
  /** Extra members of the error object, and headers of the answer. */
  readonly details: Record<string, unknown>
  readonly headers: Record<string, string>

  constructor(
    code: ProblemCode,
    message: string,
    extra: { details?: Record<string, unknown>; headers?: Record<string, string>; cause?: unknown } = {},
  ) {
    super(message, { cause: extra.cause })
    this.code = code
    this.status = STATUS[code]
    this.details = extra.details ?? {}
    this.headers = extra.headers ?? {}
  }

  body(): { error: Record<string, unknown> } {
    return { error: { code: this.code, message: this.message, ...this.details } }
  }
}

/** The same for every reason, so that nobody learns which one it was. */
export const unauthorized = (): Problem =>
  new Problem('unauthorized', 'Unauthorized', { headers: { 'www-authenticate': 'Bearer' } })

export const storeDown = (cause: unknown): Problem =>
  new Problem('service_unavailable', 'The service cannot reach its store. Try again shortly.', {
    headers: { 'retry-after': '5' },
    cause,
  })

export const emailTaken = (): Problem =>
  new Problem('bad_request', 'An account with this email address already exists.', { details: { reason: 'email_taken' } })

/** The specification names the message and the four headers, whatever was limited; `limit` says what. */
export function rateLimited(max: number, seconds: number, limit?: string): Problem {
  const wait = String(Math.max(1, seconds))
  return new Problem('rate_limited', 'rate limit exceeded', {
    ...(limit === undefined ? {} : { details: { limit } }),
    headers: {
      'retry-after': wait,
      'x-ratelimit-limit': String(max),
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': wait,
    },
  })
}
