import { type IncomingMessage, type OutgoingHttpHeader, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { warn } from '../../paywall/trouble.ts'
import { type HeaderList, responseHeaders } from './headers.ts'
import { failure, respond } from './respond.ts'
import type { Upstream } from './upstream.ts'

/** Only WebSockets: other protocols, such as `h2c`, are offers that a server may ignore. */
export const isWebSocket = ({ method, headers }: IncomingMessage): boolean =>
  method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket'

/** A response on a connection that Node has handed over. The connection is closed after it. */
export function responseOn(request: IncomingMessage, socket: Duplex): ServerResponse {
  const response = new ServerResponse(request)
  response.shouldKeepAlive = false
  // Node's own type is for TCP, which every connection here is.
  response.assignSocket(socket as Socket)
  // As Node itself does. Otherwise a client that does not close its side would keep the connection forever.
  response.once('finish', () => (socket as Socket).destroySoon())
  // Node itself does the following only for connections that it has not handed over.
  socket.on('drain', () => response.emit('drain'))
  socket.once('end', () => socket.destroy())
  socket.resume()
  return response
}

/** For event listeners, in which an exception would end the process. */
export function guarded(socket: Duplex, act: () => void): void {
  try {
    act()
  } catch (error) {
    warn('proxy', `A request failed: ${error instanceof Error ? error.message : String(error)}`, 'proxy')
    socket.destroy()
  }
}

export type Tunnel = {
  request: IncomingMessage
  socket: Duplex
  head: Buffer
  url: string
  headers: HeaderList
  firstByteMs: number
}

/** Connects the client with the upstream, if the upstream agrees to the upgrade. Otherwise, sends its response to the client. */
export function tunnel(upstream: Upstream, { request, socket, head, url, headers, firstByteMs }: Tunnel): void {
  const outgoing = upstream.send(request, url, [...headers, 'connection', 'upgrade', 'upgrade', 'websocket'], true)
  let isRefused = false
  const refuse = (status: number, detail: string): void => {
    if (isRefused || socket.destroyed) return
    isRefused = true
    outgoing.destroy()
    guarded(socket, () => respond(responseOn(request, socket), failure(status, detail)))
  }
  const timer = setTimeout(() => refuse(504, `The upstream did not respond within ${firstByteMs} ms.`), firstByteMs)
  const leave = (): void => void outgoing.destroy()
  socket.once('close', leave)
  outgoing.once('upgrade', (answer: IncomingMessage, other: Duplex, first: Buffer) => {
    clearTimeout(timer)
    socket.write(headOf(answer))
    join(socket, head, other, first)
  })
  outgoing.once('response', (answer) => {
    clearTimeout(timer)
    isRefused = true
    answer.once('error', () => socket.destroy())
    guarded(socket, () => {
      const response = responseOn(request, socket)
      response.writeHead(answer.statusCode ?? 502, responseHeaders(answer, false) as OutgoingHttpHeader[])
      answer.pipe(response)
    })
  })
  outgoing.on('error', () => {
    clearTimeout(timer)
    refuse(502, 'The upstream could not be reached.')
  })
  outgoing.end()
}

function headOf(answer: IncomingMessage): string {
  const headers = [...responseHeaders(answer, false), 'Connection', 'Upgrade', 'Upgrade', 'websocket']
  const lines = headers.flatMap((name, at) => (at % 2 === 0 ? [`${name}: ${headers[at + 1]}`] : []))
  return ['HTTP/1.1 101 Switching Protocols', ...lines, '', ''].join('\r\n')
}

/** When one side is closed, closes the other too. */
function join(socket: Duplex, head: Buffer, other: Duplex, first: Buffer): void {
  other.on('error', () => other.destroy())
  socket.once('close', () => other.destroy())
  other.once('close', () => socket.destroy())
  if (first.length > 0) socket.write(first)
  if (head.length > 0) other.write(head)
  socket.pipe(other)
  other.pipe(socket)
}
