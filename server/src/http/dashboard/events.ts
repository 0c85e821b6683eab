import type { PassThrough } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { streamChanges } from '../../../../contract/src/dashboard/events.ts'
import type { AccountChanges } from '../../events/account-changes.ts'
import type { RouteDeps } from '../deps.ts'
import { HEARTBEAT_MS, OpenStreams, STREAM_HEADERS, writeOrDrop } from '../open-streams.ts'
import { addRoute } from '../route.ts'

/** Server-sent events. They say which kinds of objects changed, but never contain the data: the page fetches that. */
export function dashboardEventRoutes({ changes, signIn }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    const streams = new EventStreams(changes)
    app.addHook('preClose', async () => streams.close())
    const handler = async ({ person }: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
      const stream = streams.open(person.accountId, () => signIn.isSessionOpen(person))
      return reply.headers(STREAM_HEADERS).send(stream)
    }
    addRoute(app, streamChanges, handler, { exposeHeadRoute: false })
  }
}

export type StreamTimes = { heartbeatMs: number; sessionCheckMs: number }
export const STREAM_TIMES: StreamTimes = { heartbeatMs: HEARTBEAT_MS, sessionCheckMs: 20_000 }

export class EventStreams {
  readonly #changes: AccountChanges
  readonly #times: StreamTimes
  readonly #open: OpenStreams

  constructor(changes: AccountChanges, times = STREAM_TIMES) {
    this.#changes = changes
    this.#times = times
    this.#open = new OpenStreams(times.heartbeatMs)
  }

  open(accountId: string, isSignedIn: () => Promise<boolean>): PassThrough {
    const stream = this.#open.open(accountId)
    const check = (): void => {
      isSignedIn().then(
        (isOpen) => isOpen || stream.end(),
        // While the store is down, it is unknown whether the session is open, and the page must not ask the user to sign in again.
        () => undefined,
      )
    }
    const leave = this.#changes.watch(accountId, (changed) => {
      writeOrDrop(stream, `event: changed\ndata: ${JSON.stringify(changed)}\n\n`)
      // Signing out, here or elsewhere, creates an activity entry, so the session may have ended.
      if (changed.activity) check()
    })
    const checking = setInterval(check, this.#times.sessionCheckMs)
    stream.once('close', () => {
      clearInterval(checking)
      leave()
    })
    return stream
  }

  close(): void {
    this.#open.close()
  }
}
