import { PassThrough } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { streamEvents } from '../../../../contract/src/dashboard/events.ts'
import type { AccountChanges } from '../../events/account-changes.ts'
import { Problem } from '../../problems.ts'
import type { RouteDeps } from '../deps.ts'
import { addRoute } from '../route.ts'

const GOODBYE_MS = 500
const MOST_PER_ACCOUNT = 10
/** A reader that has not taken this much will not take more. */
const MOST_WAITING_BYTES = 64 * 1024

/** Server-sent events: that something changed, and what kind of thing, never what it is: for that the page asks. */
export function dashboardEventRoutes({ changes, signIn }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    const streams = new EventStreams(changes)
    // A stream never ends by itself, and the stop waits for what is open.
    app.addHook('preClose', async () => streams.close())
    const handler = async ({ person }: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
      const stream = await streams.open(person.accountId, () => signIn.isSessionOpen(person))
      // Closed with the stream, so that the connection does not wait for a next request when the service wants to stop.
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
        // While the store is down nobody can say, and the page would be told to sign in again.
        () => undefined,
      )
    }
    // Before the page learns that it listens: what happens after that moment it is told.
    const leave = await this.#changes.watch(accountId, (changed) => {
      write(stream, `event: changed\ndata: ${JSON.stringify(changed)}\n\n`)
      // Whoever signs out, here or elsewhere, leaves a line in the log.
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
    // It comes back by itself, and would push out the next one at once.
    oldest.end('retry: 30000\n\n')
    streams.delete(oldest)
  }

  #remove(accountId: string, stream: PassThrough): void {
    const streams = this.#byAccount.get(accountId)
    streams?.delete(stream)
    if (streams?.size === 0) this.#byAccount.delete(accountId)
  }

  /** So that no proxy takes a quiet connection for a dead one. */
  #beat(): void {
    for (const streams of this.#byAccount.values()) for (const stream of streams) write(stream, ': still here\n\n')
  }

  close(): void {
    this.#isClosed = true
    clearInterval(this.#heartbeat)
    for (const streams of this.#byAccount.values())
      for (const stream of streams) {
        stream.end()
        // Who does not read does not end either.
        setTimeout(() => stream.destroy(), GOODBYE_MS).unref()
      }
  }
}

function write(stream: PassThrough, text: string): void {
  if (stream.writableLength + stream.readableLength > MOST_WAITING_BYTES) stream.destroy()
  else if (!stream.writableEnded) stream.write(text)
}
