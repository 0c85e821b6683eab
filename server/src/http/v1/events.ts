import { once } from 'node:events'
import type { PassThrough } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { listEvents, streamEvents } from '../../../../contract/src/events.ts'
import type { FollowedEvent } from '../../events/feed.ts'
import { Problem } from '../../problems.ts'
import type { RouteDeps } from '../deps.ts'
import { requireKey } from '../hooks/auth.ts'
import { OpenStreams, STREAM_HEADERS } from '../open-streams.ts'
import { addRoute } from '../route.ts'

const KEY_CHECK_MS = 20_000

export function eventRoutes({ keys, limits, events }: RouteDeps) {
  return async (app: FastifyInstance): Promise<void> => {
    app.addHook('onRequest', requireKey(keys, limits, 'events:read'))
    const streams = new OpenStreams()
    app.addHook('preClose', async () => streams.close())

    addRoute(app, listEvents, async (request) => events.list(request.caller.accountId, request.query))
    addRoute(
      app,
      streamEvents,
      async (request, reply) => {
        const { caller, presentedKey } = request
        const left = new AbortController()
        const cursor = request.headers['last-event-id']?.toString() ?? request.query.cursor
        const params = { ...request.query, ...(cursor === undefined ? {} : { cursor }) }
        const followed = await events.follow(caller.accountId, params, left.signal)
        const stream = streams.open(caller.accountId)
        // A client that is disconnected before the first event resumes here, and not at the time of its next connection.
        stream.write(`id: ${followed.cursor}\n\n`)
        // The stream ends when its key no longer works.
        const checking = setInterval(() => {
          keys.authenticate(presentedKey).then(
            (key) => key?.scopes.includes('events:read') || stream.end(),
            // While the store is down, it is unknown whether the key still works.
            () => undefined,
          )
        }, KEY_CHECK_MS)
        stream.once('close', () => {
          clearInterval(checking)
          left.abort()
        })
        pump(followed.events, stream, left.signal).catch((error: unknown) => {
          if (!left.signal.aborted && !(error instanceof Problem))
            request.log.warn({ err: error }, 'a stream of events ended early')
          // The client reconnects and gets the reason as the response.
          stream.end()
        })
        return reply.headers(STREAM_HEADERS).send(stream)
      },
      { exposeHeadRoute: false },
    )
  }
}

/** Waits while the client does not read. Meanwhile, no further events are read from the store. */
async function pump(followed: AsyncGenerator<FollowedEvent>, stream: PassThrough, signal: AbortSignal): Promise<void> {
  for await (const { event, cursor } of followed) {
    if (stream.writableEnded) return
    const canTakeMore = stream.write(`id: ${cursor}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    if (!canTakeMore) await once(stream, 'drain', { signal })
  }
}
