import { PassThrough } from 'node:stream'
import { Problem } from '../problems.ts'

const GOODBYE_MS = 500
const MOST_PER_ACCOUNT = 10
/** A client with this much unread data is considered dead. */
const MOST_WAITING_BYTES = 64 * 1024
export const HEARTBEAT_MS = 15_000

/** The connection closes with the stream. Otherwise it would wait for another request while the service is stopping. */
export const STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'x-accel-buffering': 'no',
  connection: 'close',
}

/** Streams of server-sent events that are open in this process. They never end on their own, and stopping waits for open responses. */
export class OpenStreams {
  readonly #byAccount = new Map<string, Set<PassThrough>>()
  readonly #heartbeat: NodeJS.Timeout
  #isClosed = false

  constructor(heartbeatMs = HEARTBEAT_MS) {
    this.#heartbeat = setInterval(() => this.#beat(), heartbeatMs)
    this.#heartbeat.unref()
  }

  open(accountId: string): PassThrough {
    if (this.#isClosed)
      throw new Problem('service_unavailable', 'The service is stopping. Try again shortly.', { headers: { 'retry-after': '5' } })
    const stream = new PassThrough()
    const streams = this.#byAccount.get(accountId) ?? new Set()
    this.#byAccount.set(accountId, streams.add(stream))
    stream.once('close', () => this.#remove(accountId, stream))
    const [oldest] = streams
    if (streams.size > MOST_PER_ACCOUNT && oldest) {
      // The client of the closed stream reconnects automatically. Without a delay, it would immediately displace the next stream.
      oldest.end('retry: 30000\n\n')
      streams.delete(oldest)
    }
    stream.write(': hello\n\n')
    return stream
  }

  #remove(accountId: string, stream: PassThrough): void {
    const streams = this.#byAccount.get(accountId)
    streams?.delete(stream)
    if (streams?.size === 0) this.#byAccount.delete(accountId)
  }

  /** Keeps proxies from closing a quiet connection. */
  #beat(): void {
    for (const streams of this.#byAccount.values()) for (const stream of streams) writeOrDrop(stream, ': still here\n\n')
  }

  close(): void {
    this.#isClosed = true
    clearInterval(this.#heartbeat)
    for (const streams of this.#byAccount.values())
      for (const stream of streams) {
        stream.end()
        // The stream cannot end while the client does not read from it.
        setTimeout(() => stream.destroy(), GOODBYE_MS).unref()
      }
  }
}

export function writeOrDrop(stream: PassThrough, text: string): void {
  if (stream.writableLength + stream.readableLength > MOST_WAITING_BYTES) stream.destroy()
  else if (!stream.writableEnded) stream.write(text)
}
