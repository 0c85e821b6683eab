import { PassThrough } from 'node:stream'
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { streamEvents } from '../../../../contract/src/dashboard/events.ts'
import { Problem } from '../../problems.ts'
import type { Sql } from '../../store/db.ts'
import { type Fingerprint, fingerprintOf } from '../../store/overview.ts'
import { isOpenSession } from '../../store/people/people.ts'
import type { RouteDeps } from '../deps.ts'
import { addRoute } from '../route.ts'

const LOOK_MS = 1_000
const HEARTBEAT_MS = 15_000
const SESSION_CHECK_MS = 20_000
const GOODBYE_MS = 500
const MOST_PER_ACCOUNT = 10
/** A reader that has not taken this much will not take more. */
const MOST_WAITING_BYTES = 64 * 1024

/** Server-sent events: that something changed, and what kind of thing, never what it is: for that the page asks. */
export function dashboardEventRoutes({ sql, logger }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    const feeds = new Feeds(sql, logger)
    // A stream never ends by itself, and the stop waits for what is open.
    app.addHook('preClose', async () => feeds.close())
    const handler = async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
      const stream = new PassThrough()
      // Before the page learns that it listens: what happens after that moment it is told.
      const leave = await feeds.join(request.person.accountId, stream)
      const check = setInterval(() => {
        isOpenSession(sql, request.person.sessionId).then(
          (isOpen) => isOpen || stream.end(),
          // While the store is down nobody can say, and the page would be told to sign in again.
          () => undefined,
        )
      }, SESSION_CHECK_MS)
      stream.once('close', () => {
        clearInterval(check)
        leave()
      })
      stream.write(': hello\n\n')
      // Closed with the stream, so that the connection does not wait for a next request when the service wants to stop.
      return reply
        .headers({ 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no', connection: 'close' })
        .send(stream)
    }
    addRoute(app, streamEvents, handler, { exposeHeadRoute: false })
  }
}

type Feed = { streams: Set<PassThrough>; last: Fingerprint; timer: NodeJS.Timeout | undefined }

/** One look a second for each account that somebody watches, however many watch it, and none for all the others. */
export class Feeds {
  readonly #sql: Sql
  readonly #log: FastifyBaseLogger
  readonly #feeds = new Map<string, Feed>()
  readonly #heartbeat: NodeJS.Timeout
  #isClosed = false

  constructor(sql: Sql, log: FastifyBaseLogger) {
    this.#sql = sql
    this.#log = log
    this.#heartbeat = setInterval(() => this.#beat(), HEARTBEAT_MS)
    this.#heartbeat.unref()
  }

  /** Returns how to leave again. */
  async join(accountId: string, stream: PassThrough): Promise<() => void> {
    const last = await fingerprintOf(this.#sql, accountId)
    if (this.#isClosed)
      throw new Problem('service_unavailable', 'The service is stopping. Try again shortly.', { headers: { 'retry-after': '5' } })
    const feed = this.#feeds.get(accountId) ?? { streams: new Set(), last, timer: undefined }
    this.#feeds.set(accountId, feed)
    feed.streams.add(stream)
    feed.timer ??= setTimeout(() => void this.#look(accountId, feed), LOOK_MS)
    const [oldest] = feed.streams
    if (feed.streams.size > MOST_PER_ACCOUNT && oldest) {
      // It comes back by itself, and would push out the next one at once.
      oldest.end('retry: 30000\n\n')
      feed.streams.delete(oldest)
    }
    return () => {
      feed.streams.delete(stream)
      if (feed.streams.size > 0) return
      clearTimeout(feed.timer)
      if (this.#feeds.get(accountId) === feed) this.#feeds.delete(accountId)
    }
  }

  async #look(accountId: string, feed: Feed): Promise<void> {
    try {
      const now = await fingerprintOf(this.#sql, accountId)
      const changed = {
        nodes: now.nodes !== feed.last.nodes,
        payments: now.payments !== feed.last.payments,
        activity: now.activity !== feed.last.activity,
      }
      feed.last = now
      if (Object.values(changed).includes(true)) this.#tell(feed, `event: changed\ndata: ${JSON.stringify(changed)}\n\n`)
    } catch (error) {
      // The next look is compared with the last one that worked: nothing is lost by it.
      this.#log.debug({ err: error }, 'cannot look for changes')
    }
    if (feed.streams.size > 0 && !this.#isClosed) feed.timer = setTimeout(() => void this.#look(accountId, feed), LOOK_MS)
  }

  #tell(feed: Feed, text: string): void {
    for (const stream of feed.streams) {
      if (stream.writableLength + stream.readableLength > MOST_WAITING_BYTES) stream.destroy()
      else if (!stream.writableEnded) stream.write(text)
    }
  }

  /** So that no proxy takes a quiet connection for a dead one. */
  #beat(): void {
    for (const feed of this.#feeds.values()) this.#tell(feed, ': still here\n\n')
  }

  close(): void {
    this.#isClosed = true
    clearInterval(this.#heartbeat)
    for (const feed of this.#feeds.values()) {
      clearTimeout(feed.timer)
      for (const stream of feed.streams) {
        stream.end()
        // Who does not read does not end either.
        setTimeout(() => stream.destroy(), GOODBYE_MS).unref()
      }
    }
  }
}
