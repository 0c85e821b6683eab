import { type BoltyardError, errorOf, ServiceError } from './errors.ts'
import type { WireAnswer } from './exchange.ts'

/** `mayBeDone`: what was asked for may have been done all the same. */
export type Outcome = { value: unknown } | { error: BoltyardError; mayBeDone: boolean }

/** What the service said. */
export function outcomeOf({ status, header, text }: WireAnswer, baseUrl: string): Outcome {
  const requestId = header('x-request-id') ?? undefined
  const value = text === '' ? undefined : parsed(text)
  if (status >= 200 && status < 300 && (value !== undefined || text === '')) return { value }
  const refusal = (value as { error?: unknown } | undefined)?.error
  if (status < 400 || typeof refusal !== 'object' || refusal === null) {
    // A proxy's page, or not our service at all.
    const message = `What answered (HTTP ${status}) does not speak this API. Is the base URL right? It is ${baseUrl}`
    return { error: new ServiceError(message, { code: 'unexpected_answer', status, requestId }), mayBeDone: true }
  }
  const { code, message, ...details } = refusal as Record<string, unknown>
  const retryAfterSeconds = Number(header('retry-after') ?? Number.NaN)
  const error = errorOf(status, `${message}${adviceOn(String(code), baseUrl)}`, {
    code: String(code),
    status,
    requestId,
    details,
    retryAfterSeconds: Number.isFinite(retryAfterSeconds) ? retryAfterSeconds : undefined,
  })
  return { error, mayBeDone: error instanceof ServiceError }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** For whoever set this program up. The service itself does not know what was set, and where. */
function adviceOn(code: string, baseUrl: string): string {
  const { host } = new URL(baseUrl)
  switch (code) {
    case 'unauthorized':
      return ` Check the API key: it must be a key of the service at ${host}, enabled, and with the scope for this call.`
    case 'node_not_found':
      return ' Check its id: it must be a node of the account that the API key belongs to.'
    case 'not_found':
      return ` Is the base URL right? It is ${baseUrl}`
    default:
      return ''
  }
}
