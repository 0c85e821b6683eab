import { isObject } from '../../protocol/src/bytes.ts'
import { type BoltyardError, errorOf, ServiceError } from './errors.ts'
import type { WireAnswer } from './exchange.ts'
import { jsonIn } from './json.ts'

/** `mayBeDone`: the request may have taken effect despite the error. */
export type Outcome = { value: unknown } | { error: BoltyardError; mayBeDone: boolean }

export function outcomeOf(answer: WireAnswer, baseUrl: string): Outcome {
  const { status, header, text, isResent = false } = answer
  const requestId = header('x-request-id') ?? undefined
  const json = jsonIn(text)
  const value = isObject(json) ? json : undefined
  if (status >= 200 && status < 300 && (value || text === '')) return { value }
  const refusal = value?.error
  if (status < 400 || !isObject(refusal)) return { error: notFromApi(answer, baseUrl), mayBeDone: true }
  const { code, message, ...details } = refusal
  const retryAfterSeconds = Number(header('retry-after') ?? Number.NaN)
  const error = errorOf(status, `${message}${adviceOn(String(code), baseUrl)}`, {
    code: String(code),
    status,
    requestId,
    details,
    retryAfterSeconds: Number.isFinite(retryAfterSeconds) ? retryAfterSeconds : undefined,
  })
  return { error, mayBeDone: isResent || error instanceof ServiceError }
}

/** For a proxy's error page, or a different service. */
export function notFromApi({ status, header }: Omit<WireAnswer, 'text'>, baseUrl: string): ServiceError {
  const message = `The response (HTTP ${status}) does not come from this API. Check the base URL: ${baseUrl}`
  return new ServiceError(message, { code: 'unexpected_answer', status, requestId: header('x-request-id') ?? undefined })
}

/** Advice for the person who configured this program; the service does not know the configuration. */
function adviceOn(code: string, baseUrl: string): string {
  const { host } = new URL(baseUrl)
  switch (code) {
    case 'unauthorized':
      return ` Check the API key: it must belong to the service at ${host}, be enabled, and have the scope for this call.`
    case 'node_not_found':
      return ' Check its id: the node must belong to the same account as the API key.'
    case 'not_found':
      return ` Check the id and the base URL: ${baseUrl}`
    default:
      return ''
  }
}
