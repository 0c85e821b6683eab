import type { ErrorBody } from './types.ts'

/** A failed request. Status 0 means that no valid response came. */
export class ApiError extends Error {
  readonly status: number
  readonly code: string
  readonly requestId: string | null
  readonly retryAfterSeconds: number | null
  /** The change may have been made: the response was lost, or something failed on the way. */
  readonly isUncertain: boolean
  /** The other members of the service's error object, such as `reason` and `topUp`. */
  readonly details: Record<string, unknown>

  constructor(fields: {
    status: number
    code: string
    message: string
    requestId?: string | null
    retryAfterSeconds?: number | null
    isUncertain?: boolean
    details?: Record<string, unknown>
  }) {
    super(fields.message)
    this.status = fields.status
    this.code = fields.code
    this.requestId = fields.requestId ?? null
    this.retryAfterSeconds = fields.retryAfterSeconds ?? null
    this.isUncertain = fields.isUncertain ?? false
    this.details = fields.details ?? {}
  }
}

/** The dashboard was opened at an address at which the service accepts no changes. */
export const isWrongOrigin = (error: unknown): boolean => error instanceof ApiError && error.details.reason === 'wrong_origin'

export const API = '/dashboard/api'

let onSessionOver: () => void = () => {}

/** Called when a signed-in page gets a 401; not for the sign-in requests themselves. */
export function whenSessionIsOver(act: () => void): void {
  onSessionOver = act
}

type Options = { body?: unknown; idempotencyKey?: string; signal?: AbortSignal; keepsSession?: boolean; base?: string }

async function request<T>(
  method: string,
  path: string,
  { body, idempotencyKey, signal, keepsSession, base = API }: Options = {},
): Promise<T> {
  // Created here and not by the service, so that a request without a response can also be found in the log.
  const requestId = freshKey()
  const headers: Record<string, string> = { accept: 'application/json', 'x-request-id': requestId }
  // Set even without a body: the server accepts changes only as JSON, which a form on another site cannot send.
  if (method !== 'GET') headers['content-type'] = 'application/json'
  if (idempotencyKey) headers['idempotency-key'] = idempotencyKey

  let response: Response
  let text: string
  try {
    const payload = method === 'GET' ? null : JSON.stringify(body ?? {})
    response = await fetch(base + path, { method, headers, body: payload, credentials: 'same-origin', signal: signal ?? null })
    text = await response.text()
  } catch (cause) {
    if (signal?.aborted) throw cause
    throw noAnswer(method, 'The service did not respond.', requestId)
  }
  const answer = parsed(text)
  // For example, the login page of a public network, or a response that was cut off.
  if (response.ok && answer === undefined && text !== '')
    throw noAnswer(method, 'The response is not from the service.', requestId)
  if (response.ok) return answer as T

  const error = errorOf(method, response, answer, idempotencyKey !== undefined)
  if (error.status === 401 && !keepsSession && !isWrongOrigin(error)) onSessionOver()
  throw error
}

function parsed(text: string): unknown {
  if (text === '') return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function noAnswer(method: string, message: string, requestId: string): ApiError {
  const isUncertain = method !== 'GET'
  return new ApiError({ status: 0, code: isUncertain ? 'uncertain' : 'no_answer', message, requestId, isUncertain })
}

/**
 * Only this 5xx always comes from the service, which says if it does not know the outcome. Any other may come from a proxy that stopped
 * waiting.
 */
const isCertain = (code: string | undefined, { reason }: { reason?: unknown }): boolean =>
  code === 'payment_service_unavailable' && reason !== 'outcome_unknown'

function errorOf(method: string, response: Response, answer: unknown, hasKey: boolean): ApiError {
  const { code, message, requestId, ...details }: Partial<ErrorBody['error']> =
    (answer as Partial<ErrorBody> | undefined)?.error ?? {}
  // The service's own errors have a code, so this is the response of a proxy in front of it.
  const isOfProxy = code === undefined && response.status >= 502
  const fault = response.status === 504 ? 'did not respond in time' : 'cannot be reached'
  return new ApiError({
    status: response.status,
    code: code ?? (isOfProxy ? 'service_unavailable' : `status_${response.status}`),
    message:
      message ??
      (isOfProxy ? `The service ${fault} (status ${response.status}).` : `The service returned status ${response.status}.`),
    requestId: requestId ?? response.headers.get('x-request-id'),
    retryAfterSeconds: Number(response.headers.get('retry-after')) || null,
    // After `operation_in_progress`, an earlier request with the same key may still be running.
    isUncertain:
      (method !== 'GET' && response.status >= 500 && !isCertain(code, details)) || (hasKey && code === 'operation_in_progress'),
    details,
  })
}

export const api = {
  get: <T>(path: string, options?: Omit<Options, 'body'>): Promise<T> => request<T>('GET', path, options),
  post: <T>(path: string, body?: unknown, options?: Omit<Options, 'body'>): Promise<T> =>
    request<T>('POST', path, { ...options, body }),
  patch: <T>(path: string, body: unknown): Promise<T> => request<T>('PATCH', path, { body }),
  delete: (path: string, options?: Omit<Options, 'body'>): Promise<void> => request<void>('DELETE', path, options),
}

/** `crypto.randomUUID` needs https or localhost; `getRandomValues` works everywhere. */
export function freshKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}
