import {
  BoltyardError,
  ConnectionError,
  errorOf,
  RateLimitError,
  ServiceError,
  TimeoutError,
  UncertainOutcomeError,
} from './errors.ts'
import { pause, Turns } from './waiting.ts'

export type CallOptions = {
  signal?: AbortSignal | undefined
  /** For each attempt. */
  timeoutMs?: number | undefined
}

export type Call = CallOptions & {
  method: string
  path: string
  query?: Record<string, string | number | undefined>
  body?: unknown
  idempotencyKey?: string | undefined
  /**
   * What to do when nobody knows whether it was done. `repeat`: doing it twice is doing it once. `give up`: only the owner can tell. A
   * function looks first: what it gives is the answer, and when it gives nothing the call is repeated.
   */
  whenUncertain?: 'repeat' | 'give up' | (() => Promise<unknown>)
}

export type TransportOptions = {
  apiKey: string
  baseUrl: string
  fetch: typeof fetch
  timeoutMs: number
  maxRetries: number
  maxConcurrency: number
}

const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 4_000
/** A whole window of the service's limit. Who must wait longer would rather know. */
const LONGEST_RETRY_AFTER_SECONDS = 60

/** One request of ours to the service, however many attempts it takes. */
export class Transport {
  readonly #options: TransportOptions
  readonly #turns: Turns

  constructor(options: TransportOptions) {
    this.#options = options
    this.#turns = new Turns(options.maxConcurrency)
  }

  async call<T>(call: Call): Promise<T> {
    const { signal, whenUncertain = 'repeat' } = call
    for (let attempt = 0; ; attempt++) {
      const answer = await this.#attempt(call)
      if (!(answer instanceof BoltyardError)) return answer.value as T
      const isUncertain = mayHaveBeenDone(answer)
      if (isUncertain && whenUncertain === 'give up') throw uncertain(call, answer)
      if (attempt >= this.#options.maxRetries || !isWorthRepeating(answer)) throw answer
      await pause(pauseBefore(attempt, answer), signal)
      if (isUncertain && typeof whenUncertain === 'function') {
        const done = await whenUncertain()
        if (done !== undefined) return done as T
      }
    }
  }

  async #attempt(call: Call): Promise<{ value: unknown } | BoltyardError> {
    const { signal, timeoutMs = this.#options.timeoutMs } = call
    signal?.throwIfAborted()
    const leave = await this.#turns.enter(signal)
    // Not AbortSignal.any: some runtimes keep what it makes for as long as the caller's own signal lives.
    const controller = new AbortController()
    const abort = (): void => controller.abort(signal?.reason)
    signal?.addEventListener('abort', abort, { once: true })
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      controller.abort()
    }, timeoutMs)
    try {
      const response = await this.#options.fetch(this.#url(call), this.#request(call, controller.signal))
      return await read(response)
    } catch (error) {
      if (signal?.aborted) throw signal.reason
      if (isLate) return new TimeoutError(`The service did not answer within ${timeoutMs} ms.`, { code: 'timeout', cause: error })
      return new ConnectionError(`The service at ${new URL(this.#options.baseUrl).host} could not be reached.`, {
        code: 'connection_failed',
        cause: error,
      })
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
      leave()
    }
  }

  #url({ path, query = {} }: Call): string {
    const url = new URL(`${this.#options.baseUrl}${path}`)
    for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, String(value))
    return url.href
  }

  #request({ method, body, idempotencyKey }: Call, signal: AbortSignal): RequestInit {
    const headers: Record<string, string> = { authorization: `Bearer ${this.#options.apiKey}`, accept: 'application/json' }
    if (body !== undefined) headers['content-type'] = 'application/json'
    if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey
    // Followed, a redirection would take the key along to wherever it points.
    return { method, headers, signal, redirect: 'manual', ...(body === undefined ? {} : { body: JSON.stringify(body) }) }
  }
}

async function read(response: Response): Promise<{ value: unknown } | BoltyardError> {
  const requestId = response.headers.get('x-request-id') ?? undefined
  const text = await response.text()
  const value = text === '' ? undefined : parsed(text)
  const { status } = response
  if (response.ok && (value !== undefined || text === '')) return { value }
  const error = (value as { error?: unknown } | undefined)?.error
  if (status < 400 || typeof error !== 'object' || error === null) {
    // A proxy's page, or not our service at all.
    return new ServiceError(`What answered (HTTP ${status}) does not speak this API. Is the base URL right?`, {
      code: 'unexpected_answer',
      status,
      requestId,
    })
  }
  const { code, message, ...details } = error as Record<string, unknown>
  const retryAfterSeconds = Number(response.headers.get('retry-after') ?? Number.NaN)
  return errorOf(status, String(message), {
    code: String(code),
    status,
    requestId,
    details,
    retryAfterSeconds: Number.isFinite(retryAfterSeconds) ? retryAfterSeconds : undefined,
  })
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Where nothing was listening, nothing was done. */
const NEVER_SENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT'])

function mayHaveBeenDone(error: BoltyardError): boolean {
  if (error instanceof ConnectionError) {
    const { code } = ((error.cause as { cause?: unknown } | undefined)?.cause ?? {}) as { code?: string }
    return !(code !== undefined && NEVER_SENT.has(code))
  }
  return error instanceof TimeoutError || error instanceof ServiceError
}

function isWorthRepeating(error: BoltyardError): boolean {
  if (error instanceof RateLimitError) return (error.retryAfterSeconds ?? 0) <= LONGEST_RETRY_AFTER_SECONDS
  if (error.code === 'operation_in_progress') return true
  if (error.code === 'unexpected_answer') return (error.status ?? 0) >= 500
  return error instanceof ConnectionError || error instanceof TimeoutError || error instanceof ServiceError
}

/** Whoever was refused together would come back together, without the random part. */
function pauseBefore(attempt: number, error: BoltyardError): number {
  const backoffMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** attempt)
  const atLeastMs = error instanceof RateLimitError ? (error.retryAfterSeconds ?? 0) * 1000 : backoffMs / 2
  return atLeastMs + Math.random() * (backoffMs / 2)
}

function uncertain({ method, path }: Call, cause: BoltyardError): UncertainOutcomeError {
  return new UncertainOutcomeError(
    `The answer to ${method} ${path} was lost: it may have been done or not. Look at the node before you repeat it.`,
    { code: 'uncertain_outcome', status: cause.status, requestId: cause.requestId, cause },
  )
}
