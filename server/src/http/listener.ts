import { once } from 'node:events'
import { createServer, IncomingMessage, type RequestListener, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { renderClientError } from './hooks/errors.ts'
import { isWebsocketHandshake } from './node-proxy/headers.ts'
import type { NodeProxy } from './node-proxy/proxy.ts'

const REQUEST_TIMEOUT_MS = 30_000
const CONNECTION_TIMEOUT_MS = 120_000
/** Longer than the 60 seconds that load balancers usually keep an idle connection: if we closed first, a request could be lost. */
const KEEP_ALIVE_MS = 72_000

export type ListenerOptions = {
  /** Everything that is not for a node. */
  service: RequestListener
  /** A function, because the proxy is created after the server. */
  proxy: () => NodeProxy
  connectionTimeoutMs?: number
}

/** One port for the service and its nodes. Each request goes either to the service or to a node, never to both. */
export function createListener({ service, proxy, connectionTimeoutMs = CONNECTION_TIMEOUT_MS }: ListenerOptions): Server {
  /**
   * node:http reads `upgrade` to decide between the events 'upgrade' and 'request'. Only websockets of nodes are upgraded. A server may
   * ignore any other upgrade, and must do so here: Java's client asks for HTTP/2 with the first request of each connection. Node.js 22.21
   * and later have the option `shouldUpgradeCallback` for this.
   */
  class Request extends IncomingMessage {
    declare asksForUpgrade: boolean | null
    get upgrade(): boolean {
      if (!this.asksForUpgrade) return false
      return this.method === 'CONNECT' || (isWebsocketHandshake(this) && proxy().targetOf(this) !== undefined)
    }
    set upgrade(asked: boolean | null) {
      this.asksForUpgrade = asked
    }
  }
  const server = createServer({
    IncomingMessage: Request,
    // We refuse a request without a Host header ourselves: the refusal by node:http has no body.
    requireHostHeader: false,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
  })
  const serve: RequestListener = (request, response) => {
    const target = proxy().targetOf(request)
    if (target) return proxy().handle(request, response, target)
    // The service has no websockets. Bytes after the handshake were meant for a websocket, and must not be parsed as a request.
    if (isWebsocketHandshake(request)) response.shouldKeepAlive = false
    service(request, response)
  }
  server.on('request', serve)
  // Expectations other than 100-continue may be ignored; the refusal by node:http has no body.
  server.on('checkExpectation', serve)
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    const target = proxy().targetOf(request)
    if (target) proxy().upgrade(request, { socket, head }, target)
    else socket.destroy()
  })
  return server.setTimeout(connectionTimeoutMs)
}

/** Fastify binds both addresses of `localhost` only for servers that it creates itself. */
export function listenOnBothLoopbacks(app: FastifyInstance, create: () => Server): void {
  const second = create()
  second.on('clientError', renderClientError)
  app.addHook('onListen', async () => {
    const { address, port } = app.server.address() as AddressInfo
    const other = address === '::1' ? '127.0.0.1' : '::1'
    second.listen(port, other)
    await once(second, 'listening').catch((error: unknown) =>
      app.log.warn({ err: error }, `cannot listen on ${other}; the service is reachable only at ${address}`),
    )
  })
  app.addHook('preClose', async () => void second.close())
}
