import { type Agent, type ClientRequest, type IncomingMessage, type ServerResponse, request as startRequest } from 'node:http'
import type { Socket } from 'node:net'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Logger } from '../../platform/log.ts'
import type { NodeAddress } from '../../platform/node-agent.ts'
import { Problem } from '../../problems.ts'
import { headersTowardsClient, headersTowardsNode } from './headers.ts'
import type { Upgrading } from './upgrade.ts'

/** One request to a node and its response. Nothing is buffered: each side is read only as fast as the other accepts data. */

/** `why` goes to the log. It must not be an error of node:http, which may contain received bytes, and thus a secret. */
export const nodeDown = (why: string): Problem =>
  new Problem('payment_service_unavailable', 'The node cannot be reached right now.', { cause: why })

/** For a request that may have reached the node: a caller who believed that it did not would pay again. */
const noAnswer = (why: string): Problem =>
  new Problem(
    'payment_service_unavailable',
    'The node returned no valid response. It may have carried out the request: check its payments before you repeat it.',
    { cause: why, details: { reason: 'outcome_unknown' } },
  )

export const bodyTooLarge = (): Problem =>
  new Problem('payload_too_large', 'The body is larger than 64 KiB.', { headers: { connection: 'close' } })

const bodyStopped = (): Problem => new Problem('bad_request', 'The body is incomplete.', { headers: { connection: 'close' } })

type Target = { address: NodeAddress; path: string; agent: Agent; isWebsocket: boolean }

export function startExchange(request: IncomingMessage, { address, path, agent, isWebsocket }: Target): ClientRequest {
  try {
    const headers = headersTowardsNode(request, address, isWebsocket)
    return startRequest({ ...address, agent, method: request.method, path, headers })
  } catch {
    // Unexpected: node:http can normally write whatever it has parsed.
    throw new Problem('bad_request', 'This request cannot be forwarded to the node.')
  }
}

/** `left` is aborted when the client disconnects. */
export type Bounds = { limitMs: number; maxBytes: number; left: AbortSignal }

/** `node` is set if a websocket was requested and the node agreed. */
export type NodeAnswer = { response: IncomingMessage; node?: Upgrading }

/** Sends the body and waits for the response headers. Each chunk of the body restarts the timeout. */
export function answerTo(
  outgoing: ClientRequest,
  body: IncomingMessage,
  client: ServerResponse,
  { limitMs, maxBytes, isWebsocket, left }: Bounds & { isWebsocket: boolean },
): Promise<NodeAnswer> {
  return new Promise((resolve, reject) => {
    let size = 0
    let isWaiting = true
    const settle = (answer?: NodeAnswer): void => {
      isWaiting = false
      clearTimeout(timer)
      if (answer) resolve(answer)
    }
    const fail = (problem: Problem): void => {
      if (!isWaiting) return
      settle()
      body.unpipe(outgoing)
      outgoing.destroy()
      // Drain the body so that the connection can be reused; if it is going to be closed, leave the body unread.
      if (problem.headers.connection !== 'close') body.resume()
      reject(problem)
    }
    // Recorded before a failure: afterwards, the socket does not show whether the connection was refused or was lost later.
    let isConnected = false
    outgoing.on('socket', (socket) => {
      isConnected = !socket.connecting
      // A reused connection does not emit `connect` again, so the listener would never be removed.
      if (socket.connecting)
        socket.once('connect', () => {
          isConnected = true
        })
    })
    const failed = (why: string): void => fail(isConnected ? noAnswer(why) : nodeDown(why))
    const isClientLate = (): boolean => !body.complete && !outgoing.writableNeedDrain
    const timer = setTimeout(() => (isClientLate() ? fail(bodyStopped()) : failed('timeout')), limitMs)
    // The server's own timeout for an idle connection may be shorter than a payment takes.
    client.setTimeout(0)
    left.addEventListener('abort', () => failed('the client disconnected'))
    outgoing.on('error', (error: NodeJS.ErrnoException) => failed(error.code ?? error.name))
    outgoing.on('response', (response) => settle({ response }))
    // If the node upgrades without being asked, there is no 'upgrade' listener, and node:http closes the connection silently.
    outgoing.on('close', () => failed('it closed the connection'))
    if (isWebsocket) {
      outgoing.on('upgrade', (response, socket, head) => {
        if (response.headers.upgrade?.toLowerCase() === 'websocket')
          settle({ response, node: { socket: socket as Socket, head } })
        else failed('it switched to another protocol')
      })
      outgoing.end()
      return
    }
    body.on('error', () => undefined)
    body.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size <= maxBytes) return isWaiting && timer.refresh()
      if (isWaiting) fail(bodyTooLarge())
      else body.destroy()
    })
    body.pipe(outgoing)
  })
}

/** The client's side of an exchange. `headers` are the service's own; the node cannot replace them. */
export type Answering = { response: ServerResponse; headers: Record<string, string>; log: Logger }

/** From here on, the response is the node's: after its headers, an error can only be signalled by closing the connection. */
export async function relay(
  outgoing: ClientRequest,
  answer: IncomingMessage,
  body: IncomingMessage,
  { response: client, headers, log }: Answering,
  { limitMs, maxBytes, left }: Bounds,
): Promise<void> {
  try {
    if (body.method !== 'HEAD' && Number(answer.headers['content-length'] ?? 0) > maxBytes) throw noAnswer('answer too large')
    writeHead(answer, client, headers)
    client.flushHeaders()
    // Everything the node sends is written here, so this one timer detects both a silent node and a client that does not read.
    client.setTimeout(limitMs, () => client.destroy())
    await pipeline(answer, upTo(maxBytes), client, { signal: left })
  } catch (error) {
    outgoing.destroy()
    if (!client.headersSent) throw error
    log.info({ why: (error as NodeJS.ErrnoException).code ?? (error as Error).message }, 'the response of a node was cut off')
  } finally {
    // The node responded before it received the whole body, so the rest is not sent.
    if (!outgoing.writableFinished) outgoing.destroy()
    body.unpipe(outgoing)
    body.resume()
  }
}

function writeHead(answer: IncomingMessage, client: ServerResponse, headers: Record<string, string>): void {
  const { statusCode = 0, statusMessage } = answer
  if (statusCode < 200 || statusCode > 599) throw noAnswer(`status ${statusCode}`)
  try {
    client.writeHead(statusCode, statusMessage, headersTowardsClient(answer, headers))
  } catch {
    throw noAnswer('its headers cannot be forwarded')
  }
}

/** A stream, not a generator: a generator that waits for the node would not notice that the client is gone. */
function upTo(maxBytes: number): Transform {
  let size = 0
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      size += chunk.length
      if (size > maxBytes) done(new Error('too large'))
      else done(null, chunk)
    },
  })
}

/** The node agreed to a websocket; from the next byte on, we only forward. */
export function writeSwitch(answer: IncomingMessage, { response, headers: ours }: Answering, { socket }: Upgrading): void {
  response.detachSocket(socket)
  const headers = headersTowardsClient(answer, ours, true)
  const lines = headers.flatMap((name, index) => (index % 2 === 0 ? [`${name}: ${headers[index + 1]}`] : []))
  socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('\r\n')}\r\n\r\n`, 'latin1')
}
