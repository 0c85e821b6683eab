import type { IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'
import type { Config } from '../../config.ts'
import { requestProbe } from '../../platform/probes.ts'

type TrustedProxies = Config['trustProxy']

/** A client can send any method, and each would become a separate time series. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** Calling `done` inside `run` puts all later hooks and the handler into the scope of the request. */
export function measureRequests(app: FastifyInstance, trusted: TrustedProxies): void {
  app.addHook('onRequest', (request, _reply, done) => requestProbe.run(startOf(request.raw, trusted), done))
  app.addHook('onResponse', (request, reply, done) => {
    reportRequest(
      request.raw,
      { id: request.id, route: request.routeOptions.url ?? '(none)', milliseconds: reply.elapsedTime },
      reply.statusCode,
    )
    done()
  })
}

/** A `traceparent` sets the id of the trace and whether it is recorded, so it is accepted only if the operator trusts a proxy. */
export function startOf({ headers }: IncomingMessage, trusted: TrustedProxies): { traceparent: string | undefined } {
  const { traceparent } = headers
  return { traceparent: trusted !== false && typeof traceparent === 'string' ? traceparent : undefined }
}

export function reportRequest(
  { method }: IncomingMessage,
  { id, route, milliseconds }: { id: string; route: string; milliseconds: number },
  status: number,
): void {
  const known = method !== undefined && METHODS.has(method) ? method : 'other'
  requestProbe.report({ method: known, route, status, seconds: milliseconds / 1000, requestId: id })
}
