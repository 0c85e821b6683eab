import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Config } from '../config.ts'
import type { Logger } from '../platform/log.ts'
import { isLoopback } from '../platform/loopback.ts'
import { primitives } from '../platform/primitives.ts'
import { portFault } from '../platform/start-fault.ts'

const REQUEST_TIMEOUT_MS = 10_000

export type Page = { text: string; type: string }

/** Uses a separate port, so that the public port reveals nothing about the operation of the service. */
export async function serveText(
  { host, port, token }: NonNullable<Config['metrics']>,
  log: Logger,
  render: () => Promise<Page>,
): Promise<() => Promise<void>> {
  const refusalOf = (request: IncomingMessage): number | undefined => {
    if (token !== undefined && !primitives.isEqual(request.headers.authorization ?? '', `Bearer ${token}`)) return 401
    // A web page whose host name was pointed at this machine must not read the metrics (DNS rebinding).
    if (token === undefined && isLoopback(host) && !isLoopback(hostnameOf(request))) return 421
    if (request.url?.split('?')[0] !== '/metrics') return 404
    return request.method === 'GET' || request.method === 'HEAD' ? undefined : 405
  }
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const refusal = refusalOf(request)
    if (refusal !== undefined) {
      response.writeHead(refusal, refusal === 401 ? { 'www-authenticate': 'Bearer' } : {}).end()
      return
    }
    const { text, type } = await render()
    response.writeHead(200, { 'content-type': type, 'cache-control': 'no-store' }).end(text)
  }
  const server = createServer({ requestTimeout: REQUEST_TIMEOUT_MS }, (request, response) => {
    answer(request, response).catch((error: unknown) => {
      log.warn({ err: error }, 'cannot render metrics')
      response.writeHead(500).end()
    })
  })
  server.listen(port, host)
  await once(server, 'listening').catch((error: unknown) => {
    throw portFault(error, 'METRICS_PORT', { host, port })
  })
  return async () => {
    server.close()
    server.closeAllConnections()
  }
}

function hostnameOf({ headers }: IncomingMessage): string {
  const url = `http://${headers.host ?? ''}`
  return URL.canParse(url) ? new URL(url).hostname : ''
}
