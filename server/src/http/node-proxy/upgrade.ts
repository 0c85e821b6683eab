import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** One side of a websocket: node:http no longer handles its connection, and `head` holds the bytes that followed the handshake. */
export type Upgrading = { socket: Socket; head: Buffer }

/**
 * A request that does not end in a websocket gets an ordinary response, and the connection is closed. Undefined: no response is possible,
 * and the connection is already closed.
 */
export function responseTo(request: IncomingMessage, { socket }: Upgrading): ServerResponse | undefined {
  const cut = (): unknown => socket.destroy()
  socket.on('error', cut)
  const response = new ServerResponse(request)
  try {
    response.assignSocket(socket)
  } catch {
    // An earlier request on this connection is still being answered, and the responses would mix.
    cut()
    return undefined
  }
  response.shouldKeepAlive = false
  response.once('finish', () => socket.destroySoon())
  socket.on('timeout', cut)
  return response
}

/**
 * Forwards bytes both ways until one side ends or nothing has moved for `idleMs`. Each byte passes both sockets, so either timer covers
 * both directions.
 */
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
