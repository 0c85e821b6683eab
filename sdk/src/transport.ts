import { type BoltyardError, ConnectionError, NotFoundError, TimeoutError, UncertainOutcomeError } from './errors.ts'
import type { Exchange, OpenStream, WireRequest } from './exchange.ts'
import { notFromApi, type Outcome, outcomeOf } from './outcome.ts'
import { isWorthRepeating, pauseBefore, retryAfter } from './retries.ts'
import { wasNeverSent, whyUnreachable } from './unreachable.ts'
import { VERSION } from './version.ts'
import { ConcurrencyLimit, pause } from './waiting.ts'

export type CallOptions = {
  signal?: AbortSignal | undefined
  /** Time limit for each attempt. */
  timeoutMs?: number | undefined
  /**
   * Time limit for the whole call, including retries and the pauses between them. If a retry would not fit, the call fails
   * immediately with the last error. Without this option there is no limit, but the call fails if a 429 response asks it to wait
   * for more than 5 s.
   */
  totalTimeoutMs?: number | undefined
}

export type Call = CallOptions & {
  method: string
  path: string
  query?: Record<string, string | number | undefined>
  body?: unknown
  idempotencyKey?: string | undefined
  /** The id in the body that makes the call safe to repeat. */
  requestId?: string | undefined
  /**
   * What to do if the outcome is unknown. `repeat`: the request is safe to repeat. `give up`: throw UncertainOutcomeError. A function
   * checks the outcome: its result is the response, and if it returns undefined, the call is repeated.
   */
  whenUncertain?: 'repeat' | 'give up' | (() => Promise<unknown>)
}

export type TransportOptions = {
  apiKey: string
  baseUrl: string
  exchange: Exchange
  openStream: OpenStream
  timeoutMs: number
  totalTimeoutMs: number | undefined
  maxRetries: number
  maxConcurrency: number
}

/** A customer may be waiting. Without a total timeout, fail rather than wait longer than this. */
const LONGEST_RETRY_AFTER_SECONDS = 5
/** The longest delay a timer supports; a longer one fires immediately. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** Makes one call to the service, with retries. */
export class Transport {
  readonly #options: TransportOptions
  readonly #concurrency: ConcurrencyLimit

  constructor(options: TransportOptions) {
    this.#options = options
    this.#concurrency = new ConcurrencyLimit(options.maxConcurrency)
  }

  async call<T>(call: Call): Promise<T> {
    const { signal, whenUncertain = 'repeat', idempotencyKey, requestId, totalTimeoutMs = this.#options.totalTimeoutMs } = call
    if (idempotencyKey !== undefined && !/^[\x20-\x7e]{1,255}$/.test(idempotencyKey))
      throw new TypeError('`idempotencyKey` must have 1 to 255 printable ASCII characters.')
    const deadline = Date.now() + (totalTimeoutMs ?? Number.POSITIVE_INFINITY)
    let mayHaveArrived = false
    for (let attempt = 0; ; attempt++) {
      const outcome = await this.#attempt(call, deadline)
      if ('value' in outcome) return outcome.value as T
      const { error, mayBeDone } = outcome
      mayHaveArrived ||= mayBeDone
      if (mayBeDone && whenUncertain === 'give up') throw uncertain(call, error)
      const pauseMs = pauseBefore(attempt, error)
      const isTooLong =
        totalTimeoutMs === undefined ? retryAfter(error) > LONGEST_RETRY_AFTER_SECONDS : Date.now() + pauseMs >= deadline
      if (attempt >= this.#options.maxRetries || !isWorthRepeating(error) || isTooLong) {
        // This package may have generated these ids, and the caller needs them to repeat the call safely.
        if (mayHaveArrived && idempotencyKey !== undefined) error.details.idempotencyKey = idempotencyKey
        if (mayHaveArrived && requestId !== undefined) error.details.requestId = requestId
        throw error
      }
      await pause(pauseMs, signal)
      if (mayBeDone && typeof whenUncertain === 'function') {
        const done = await whenUncertain()
        if (done !== undefined) return done as T
      }
    }
  }

  async delete(call: Omit<Call, 'method' | 'whenUncertain'>): Promise<void> {
    let isRepeated = false
    const whenUncertain = async (): Promise<undefined> => {
      isRepeated = true
    }
    try {
      await this.call({ ...call, method: 'DELETE', whenUncertain })
    } catch (error) {
      // A 404 on a retry means that the first attempt succeeded, and only its response was lost.
      if (!(isRepeated && error instanceof NotFoundError)) throw error
    }
  }

  get maxRetries(): number {
    return this.#options.maxRetries
  }

  /**
   * Opens a stream of events and returns a function that reads the next chunk; undefined at the end. Makes one attempt; abort the
   * controller to end the stream. Streams do not count towards the concurrency limit: a few of them would block all other calls.
   */
  async open(call: Call, controller: AbortController, idleTimeoutMs: number): Promise<() => Promise<Uint8Array | undefined>> {
    const { baseUrl, timeoutMs, openStream } = this.#options
    const request = this.#request(call, 'text/event-stream')
    const stream = await this.#within(timeoutMs, controller, () => openStream(request, controller.signal))
    if (stream.status === 200 && stream.header('content-type')?.startsWith('text/event-stream'))
      return () => this.#within(idleTimeoutMs, controller, stream.read)
    const outcome = outcomeOf({ ...stream, text: await this.#within(timeoutMs, controller, stream.text) }, baseUrl)
    throw 'error' in outcome ? outcome.error : notFromApi(stream, baseUrl)
  }

  async #within<T>(limitMs: number, controller: AbortController, act: () => Promise<T>): Promise<T> {
    const timer = setTimeout(() => controller.abort(), Math.min(limitMs, LONGEST_TIMER_MS))
    try {
      return await act()
    } catch (error) {
      throw controller.signal.aborted ? timeout(limitMs, error) : this.#unreachable(error)
    } finally {
      clearTimeout(timer)
    }
  }

  async #attempt(call: Call, deadline: number): Promise<Outcome> {
    const { signal, timeoutMs = this.#options.timeoutMs } = call
    signal?.throwIfAborted()
    // Not AbortSignal.any: in some runtimes its result lives as long as the caller's signal.
    const controller = new AbortController()
    const abort = (): void => controller.abort()
    signal?.addEventListener('abort', abort, { once: true })
    let limitMs = deadline - Date.now()
    let timer = setTimeout(abort, Math.min(limitMs, LONGEST_TIMER_MS))
    let leave: (() => void) | undefined
    try {
      leave = await this.#concurrency.enter(controller.signal)
      clearTimeout(timer)
      limitMs = Math.min(timeoutMs, deadline - Date.now())
      timer = setTimeout(abort, Math.min(limitMs, LONGEST_TIMER_MS))
      return outcomeOf(await this.#options.exchange(this.#request(call), controller.signal), this.#options.baseUrl)
    } catch (error) {
      if (signal?.aborted) throw signal.reason
      const mayBeDone = leave !== undefined && !wasNeverSent(error)
      // The caller's signal was checked above, so only the timeout can have aborted the controller.
      return { mayBeDone, error: controller.signal.aborted ? timeout(limitMs, error) : this.#unreachable(error) }
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
      leave?.()
    }
  }

  #unreachable(cause: unknown): ConnectionError {
    const why = whyUnreachable(cause) || 'no response'
    const { host } = new URL(this.#options.baseUrl)
    const message = wasNeverSent(cause)
      ? `The service at ${host} could not be reached (${why}). Is it running, and is the base URL right?`
      : `The connection to the service at ${host} was lost (${why}).`
    return new ConnectionError(message, { code: 'connection_failed', cause })
  }

  #request(
    { method, path, query = {}, body, idempotencyKey, whenUncertain = 'repeat' }: Call,
    accept = 'application/json',
  ): WireRequest {
    const url = new URL(`${this.#options.baseUrl}${path}`)
    for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, String(value))
    const headers: Record<string, string> = {
      authorization: `Bearer ${this.#options.apiKey}`,
      accept,
      'user-agent': `boltyard-sdk/${VERSION}`,
    }
    if (body !== undefined) headers['content-type'] = 'application/json'
    if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey
    const text = body === undefined ? undefined : JSON.stringify(body)
    return { method, url: url.href, headers, body: text, isRepeatable: whenUncertain === 'repeat' }
  }
}

function timeout(limitMs: number, cause: unknown): TimeoutError {
  return new TimeoutError(`The service did not respond within ${Math.max(0, Math.round(limitMs))} ms.`, {
    code: 'timeout',
    cause,
  })
}

function uncertain({ method, path }: Call, cause: BoltyardError): UncertainOutcomeError {
  return new UncertainOutcomeError(
    `The outcome of ${method} ${path} is unknown: ${sentence(cause.message)} The operation may or may not have been carried out. Check the current state before you retry.`,
    { code: 'uncertain_outcome', status: cause.status, requestId: cause.requestId, cause },
  )
}

const sentence = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`)
