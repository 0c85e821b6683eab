import type { FastifyInstance } from 'fastify'
import { requestProbe } from '../../platform/probes.ts'

/** A client can invent methods as well as paths, and each would be a time series of its own. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

export function measureRequests(app: FastifyInstance): void {
  app.addHook('onResponse', (request, reply, done) => {
    reportRequest(request.method, request.routeOptions.url ?? '(none)', reply.statusCode, reply.elapsedTime)
    done()
  })
}

export function reportRequest(method: string | undefined, route: string, status: number, milliseconds: number): void {
  const known = method !== undefined && METHODS.has(method) ? method : 'other'
  requestProbe.report({ method: known, route, status, seconds: milliseconds / 1000 })
}
