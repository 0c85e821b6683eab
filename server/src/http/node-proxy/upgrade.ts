import { type IncomingMessage, type Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { isWebsocketHandshake, tokens } from './headers.ts'

/** A client that asked for a websocket: its connection is no longer node:http's, and these bytes came after the handshake. */
export type Upgrading = { socket: Socket; head: Buffer }

/**
 * Handshakes go through the app like every other request, so that ids, hooks, logs and refusals are the same for them; the
 * handler finds the connection in the map. What does not end in a websocket is answered as usual, and the connection closed.
 */
export function routeUpgrades(app: FastifyInstance, upgrading: WeakMap<IncomingMessage, Upgrading>): void {
  const server = app.server as Server
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    const cut = (): unknown => socket.destroy()
    socket.on('error', cut)
    const response = new ServerResponse(request)
    try {
      response.assignSocket(socket)
    } catch {
      // An earlier request of this connection is still being answered, and the answers would mix.
      return cut()
    }
    if (!isWebsocketHandshake(request)) {
      response.detachSocket(socket)
      socket.off('error', cut)
      return readAgainWithoutUpgrade(server, request, socket, head)
    }
    response.shouldKeepAlive = false
    response.once('finish', () => socket.destroySoon())
    socket.on('timeout', cut)
    upgrading.set(request, { socket, head })
    app.routing(request, response)
  })
}

/**
 * Once somebody listens for upgrades, node:http gives up every connection on which one is asked for; yet a server may ignore the
 * wish, and some clients (Java's) ask for HTTP/2 with every first request. So the request is read once more, without the wish.
 */
function readAgainWithoutUpgrade(server: Server, request: IncomingMessage, socket: Socket, head: Buffer): void {
  const wish = ['upgrade', 'http2-settings']
  const lines = [`${request.method} ${request.url} HTTP/${request.httpVersion}`]
  for (let index = 0; index < request.rawHeaders.length; index += 2) {
    const [name = '', value = ''] = request.rawHeaders.slice(index, index + 2)
    const lower = name.toLowerCase()
    if (wish.includes(lower)) continue
    const rest =
      lower === 'connection'
        ? tokens(value)
            .filter((token) => !wish.includes(token))
            .join(', ')
        : value
    lines.push(`${name}: ${rest}`)
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]))
  server.emit('connection', socket)
}

/** Bytes both ways until one side ends, or neither has moved one for `idleMs`: each byte passes both sockets. */
export function tunnel(client: Upgrading, node: Upgrading, idleMs: number): Promise<void> {
  return new Promise((resolve) => {
    const ways = [
      [client, node],
      [node, client],
    ] as const
    for (const [from, to] of ways) {
      from.socket.on('error', () => from.socket.destroy())
      from.socket.once('close', () => to.socket.destroySoon())
      from.socket.setTimeout(idleMs, () => {
        from.socket.destroy()
        to.socket.destroy()
      })
      if (from.head.length > 0) to.socket.write(from.head)
      from.socket.pipe(to.socket)
    }
    node.socket.once('close', resolve)
  })
}
