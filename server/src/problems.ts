import { ERRORS, type ErrorCode } from '../../contract/src/errors.ts'

export type ProblemCode = ErrorCode

/** Every error a caller can see. The message helps the caller; the cause goes to the log. */
export class Problem extends Error {
  readonly code: ProblemCode
  readonly status: number
  /** Additional fields of the error object. */
  readonly details: Record<string, unknown>
  readonly headers: Record<string, string>

  constructor(
    code: ProblemCode,
    message: string,
    extra: { details?: Record<string, unknown>; headers?: Record<string, string>; cause?: unknown } = {},
  ) {
    super(message, { cause: extra.cause })
    this.code = code
    this.status = ERRORS[code][0]
    this.details = extra.details ?? {}
    this.headers = extra.headers ?? {}
  }

  body(): { error: Record<string, unknown> } {
    return { error: { code: this.code, message: this.message, ...this.details } }
  }
}

/** The same for every reason, so that it does not reveal which one applied. */
export const unauthorized = (): Problem =>
  new Problem('unauthorized', 'Unauthorized', { headers: { 'www-authenticate': 'Bearer' } })

export const storeDown = (cause: unknown, isRead = false): Problem =>
  new Problem(
    'service_unavailable',
    `The service cannot reach its database.${isRead ? '' : ' A change may have been made: check before you repeat it.'}`,
    { headers: { 'retry-after': '5' }, cause },
  )

/** Also for malformed ids: PostgreSQL rejects some strings (NUL bytes), and a caller must not see the difference. */
export const noSuchAccount = (): Problem => new Problem('not_found', 'There is no such account.')

export const noSuchNode = (): Problem => new Problem('node_not_found', 'There is no such node.')

export const badCursor = (parameter: 'cursor' | 'after' = 'cursor'): Problem => {
  const of = parameter === 'cursor' ? 'nextCursor' : 'previousCursor'
  return new Problem('bad_request', `The query parameter "${parameter}" must be the ${of} of an earlier page.`)
}

export const emailTaken = (): Problem =>
  new Problem('bad_request', 'An account with this email address already exists.', { details: { reason: 'email_taken' } })

/** Clients may depend on the message and the four headers, so all limits share them. `limit` says which limit was hit. */
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
