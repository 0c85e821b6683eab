import { isObject } from '../../../protocol/src/bytes.ts'
import { BoltyardError, ServiceError } from '../errors.ts'
import { jsonIn } from '../json.ts'
import { isWorthRepeating, pauseBefore } from '../retries.ts'
import type { CallOptions, Transport } from '../transport.ts'
import type { AccountEvent, EventPage, ListEventsParams } from '../types.ts'
import { pause } from '../waiting.ts'
import { MessageParser } from './message-parser.ts'

export type EventsOptions = {
  /** The `cursor` of the last event you have processed. Without it, the stream starts with what happens from now on. */
  after?: string | undefined
  /** Only these types, separated by commas. `payment.*` stands for all types that begin with `payment.`. */
  types?: string | undefined
  /** Only events of this node and of payments to it. */
  nodeId?: string | undefined
  /** Ends the loop without an error. */
  signal?: AbortSignal | undefined
  /** Called each time the stream is connected: at the start, and after each interruption. */
  onConnect?: (() => void) | undefined
  /** Reconnects if nothing, not even a keep-alive, arrives for this long. Defaults to 45 s; the service sends something every 15 s. */
  idleTimeoutMs?: number | undefined
}

/** An event and its position. Store the cursor once you have processed the event, and pass it as `after` to continue there. */
export type StreamedEvent = AccountEvent & { cursor: string }

export interface Events {
  /**
   * Yields events as they happen, in order and without gaps: after an interruption, it reconnects and continues after the last event. The
   * first connection fails like any other call; later ones are retried for as long as it takes. Throws on an error that a retry cannot fix,
   * such as an expired cursor (`ExpiredError`) or a key without the scope.
   */
  (options?: EventsOptions): AsyncGenerator<StreamedEvent, void, undefined>
  /** Returns one page, oldest first. Its `nextCursor` is the position after the page, even if there are no more events yet. */
  list(params?: ListEventsParams, options?: CallOptions): Promise<EventPage>
}

const IDLE_TIMEOUT_MS = 45_000

export function eventsOf(transport: Transport): Events {
  return Object.assign((options: EventsOptions = {}) => follow(transport, options), {
    list: (params: ListEventsParams = {}, options: CallOptions = {}): Promise<EventPage> =>
      transport.call({ ...options, method: 'GET', path: '/events', query: params }),
  })
}

async function* follow(transport: Transport, options: EventsOptions): AsyncGenerator<StreamedEvent, void, undefined> {
  const { types, nodeId, signal, onConnect, idleTimeoutMs = IDLE_TIMEOUT_MS } = options
  let cursor = options.after
  let hasConnected = false
  let failures = 0
  while (!signal?.aborted) {
    const controller = new AbortController()
    const abort = (): void => controller.abort()
    signal?.addEventListener('abort', abort, { once: true })
    let error: unknown
    let askedPauseMs = 0
    try {
      const query = { cursor, types, nodeId }
      const read = await transport.open({ method: 'GET', path: '/events/stream', query }, controller, idleTimeoutMs)
      hasConnected = true
      onConnect?.()
      const parser = new MessageParser()
      for (let chunk = await read(); chunk !== undefined; chunk = await read()) {
        for (const { id = cursor, data, retryMs = askedPauseMs } of parser.push(chunk)) {
          cursor = id
          askedPauseMs = retryMs
          if (data === undefined) continue
          failures = 0
          yield eventIn(data, cursor)
          if (signal?.aborted) return
        }
      }
    } catch (caught) {
      if (signal?.aborted) return
      const canRetry = caught instanceof BoltyardError && isWorthRepeating(caught)
      if (!canRetry || (!hasConnected && failures >= transport.maxRetries)) throw caught
      error = caught
    } finally {
      signal?.removeEventListener('abort', abort)
      // Closes the connection, also if the caller has left the loop.
      abort()
    }
    // Rejects only when the signal aborts, which ends the loop.
    await pause(askedPauseMs + pauseBefore(failures++, error), signal).catch(() => undefined)
  }
}

function eventIn(data: string, cursor: string | undefined): StreamedEvent {
  const event = jsonIn(data)
  if (isObject(event) && cursor !== undefined) return { ...(event as AccountEvent), cursor }
  throw new ServiceError('The stream of events contains a message that is not an event.', { code: 'unexpected_answer' })
}
