import type { FastifyInstance } from 'fastify'
import type { RequestLog } from '../../accounts/requests/request-log.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Set when an error response is sent. */
    errorCode?: string
  }
}

/** Logs the requests of API keys. Without a valid key, it is unknown whose request it was. */
export function logRequests(app: FastifyInstance, requests: RequestLog): void {
  app.addHook('onResponse', (request, reply, done) => {
    const { caller, routeOptions } = request
    if (caller !== undefined && routeOptions.url !== undefined)
      requests.record({
        accountId: caller.accountId,
        keyId: caller.id,
        method: request.method,
        route: routeOptions.url,
        status: reply.statusCode,
        errorCode: request.errorCode ?? null,
        durationMs: reply.elapsedTime,
        requestId: request.id,
      })
    done()
  })
}
