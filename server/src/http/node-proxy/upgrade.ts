import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** A client that asked for a websocket: its connection is no longer node:http's, and these bytes came after the handshake. */
export type Upgrading = { socket: Socket; head: Buffer }

/**
 * What does not end in a websocket is answered like any other request, and the connection closed. Undefined: it cannot be answered,
 * and the connection is closed already.
 */
export function responseTo(request: IncomingMessage, { socket }: Upgrading): ServerResponse | undefined {
  const cut = (): unknown => socket.destroy()
  socket.on('error', cut)
  const response = new ServerResponse(request)
  try {
    response.assignSocket(socket)
  } catch {
    // An earlier request of this connection is still being answered, and the answers would mix.
    cut()
    return undefined
  }
  response.shouldKeepAlive = false
  response.once('finish', () => socket.destroySoon())
  socket.on('timeout', cut)
  return response
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
