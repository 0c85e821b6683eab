import { PassThrough } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { streamEvents } from '../../../../contract/src/dashboard/events.ts'
import type { AccountChanges } from '../../events/account-changes.ts'
import { Problem } from '../../problems.ts'
import type { RouteDeps } from '../deps.ts'
import { addRoute } from '../route.ts'

const GOODBYE_MS = 500
const MOST_PER_ACCOUNT = 10
/** A client with this much unread data is considered dead. */
const MOST_WAITING_BYTES = 64 * 1024

/** Server-sent events. They say which kinds of objects changed, but never contain the data: the page fetches that. */
export function dashboardEventRoutes({ changes, signIn }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    const streams = new EventStreams(changes)
    // A stream never ends on its own, and stopping waits for open responses.
    app.addHook('preClose', async () => streams.close())
    const handler = async ({ person }: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
      const stream = await streams.open(person.accountId, () => signIn.isSessionOpen(person))
      // The connection closes with the stream. Otherwise it would wait for another request while the service is stopping.
      return reply
        .headers({ 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no', connection: 'close' })
        .send(stream)
    }
    addRoute(app, streamEvents, handler, { exposeHeadRoute: false })
  }
}

export type StreamTimes = { heartbeatMs: number; sessionCheckMs: number }
export const STREAM_TIMES: StreamTimes = { heartbeatMs: 15_000, sessionCheckMs: 20_000 }

export class EventStreams {
  readonly #changes: AccountChanges
  readonly #times: StreamTimes
  readonly #byAccount = new Map<string, Set<PassThrough>>()
  readonly #heartbeat: NodeJS.Timeout
  #isClosed = false

  constructor(changes: AccountChanges, times = STREAM_TIMES) {
    this.#changes = changes
    this.#times = times
    this.#heartbeat = setInterval(() => this.#beat(), times.heartbeatMs)
    this.#heartbeat.unref()
  }

  async open(accountId: string, isSignedIn: () => Promise<boolean>): Promise<PassThrough> {
    const stream = new PassThrough()
    const check = (): void => {
      isSignedIn().then(
        (isOpen) => isOpen || stream.end(),
        // While the store is down, it is unknown whether the session is open, and the page must not ask the user to sign in again.
        () => undefined,
      )
    }
    // Start watching before the page gets a response, so that it misses no change after that.
    const leave = await this.#changes.watch(accountId, (changed) => {
      write(stream, `event: changed\ndata: ${JSON.stringify(changed)}\n\n`)
      // Signing out, here or elsewhere, creates an activity entry, so the session may have ended.
      if (changed.activity) check()
    })
    if (this.#isClosed) {
      leave()
      throw new Problem('service_unavailable', 'The service is stopping. Try again shortly.', { headers: { 'retry-after': '5' } })
    }
    this.#add(accountId, stream)
    const checking = setInterval(check, this.#times.sessionCheckMs)
    stream.once('close', () => {
      clearInterval(checking)
      leave()
      this.#remove(accountId, stream)
    })
    stream.write(': hello\n\n')
    return stream
  }

  #add(accountId: string, stream: PassThrough): void {
    const streams = this.#byAccount.get(accountId) ?? new Set()
    this.#byAccount.set(accountId, streams.add(stream))
    const [oldest] = streams
    if (streams.size <= MOST_PER_ACCOUNT || !oldest) return
    // The page of the closed stream reconnects automatically. Without a delay, it would immediately displace the next stream.
    oldest.end('retry: 30000\n\n')
    streams.delete(oldest)
  }

  #remove(accountId: string, stream: PassThrough): void {
    const streams = this.#byAccount.get(accountId)
    streams?.delete(stream)
    if (streams?.size === 0) this.#byAccount.delete(accountId)
  }

  /** Keeps proxies from closing a quiet connection. */
  #beat(): void {
    for (const streams of this.#byAccount.values()) for (const stream of streams) write(stream, ': still here\n\n')
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

function write(stream: PassThrough, text: string): void {
  if (stream.writableLength + stream.readableLength > MOST_WAITING_BYTES) stream.destroy()
  else if (!stream.writableEnded) stream.write(text)
}
