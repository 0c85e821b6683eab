import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { FastifyBaseLogger } from 'fastify'
import type { Config } from '../config.ts'
import { portFault } from '../platform/start-fault.ts'
import { Problem } from '../problems.ts'
import { edgeOf } from './edge.ts'
import { requireStore } from './health.ts'
import { JSON_TYPE, problemOf, renderClientError, writeProblem } from './hooks/errors.ts'

const REQUEST_TIMEOUT_MS = 10_000

export type HealthListenerOptions = { config: Config; checkStore: () => Promise<void>; log: FastifyBaseLogger }

/** For a process without the API: its health checks, which answer as those of the API do, and nothing else. */
export async function serveHealth({ config, checkStore, log }: HealthListenerOptions): Promise<() => Promise<void>> {
  const { host, port } = config
  const edge = edgeOf(config, () => false)
  const answer = async (
    { method, url }: IncomingMessage,
    response: ServerResponse,
    headers: Record<string, string>,
  ): Promise<void> => {
    const path = url?.split('?')[0]
    if (path !== '/healthz' && path !== '/readyz') throw new Problem('not_found', 'This path does not exist.')
    if (method !== 'GET' && method !== 'HEAD')
      throw new Problem('method_not_allowed', 'This path only supports GET, HEAD.', { headers: { allow: 'GET, HEAD' } })
    if (path === '/readyz') await requireStore(checkStore)
    response.writeHead(200, { ...headers, 'content-type': JSON_TYPE }).end(JSON.stringify({ status: 'ok' }))
  }
  const server = createServer({ requestTimeout: REQUEST_TIMEOUT_MS }, (request, response) => {
    const id = edge.requestIdOf(request)
    const headers = edge.headers(id)
    answer(request, response, headers).catch((error: unknown) =>
      writeProblem(response, problemOf(error, { id, log: log.child({ reqId: id }), method: request.method ?? '' }), headers),
    )
  })
  server.on('clientError', renderClientError)
  server.listen(port, host)
  await once(server, 'listening').catch((error: unknown) => {
    throw portFault(error, 'PORT', { host, port })
  })
  return async () => {
    server.close()
    server.closeAllConnections()
  }
}
