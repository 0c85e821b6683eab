import { createServer, type IncomingMessage, type Server, ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { type WebSocket, WebSocketServer } from 'ws'
import { BodyBroken, BodyTooLarge } from '../body.ts'
import { JournalUnavailable } from '../journal.ts'
import type { PaymentReceived } from '../node/events.ts'
import { type Faults, SLOW_MS } from '../node/faults.ts'
import type { LightningNode } from '../node/node.ts'
import { sameSecret } from '../secret.ts'
import { ApiFault } from './parameters.ts'
import { type Access, type Answer, type ApiRoute, callOf, routesOf } from './routes.ts'

export type Passwords = { full: string; limited: string }

const UNAUTHORIZED = new ApiFault(401, 'Invalid authentication (use basic auth with the http password set in phoenix.conf)')
const UNKNOWN_ENDPOINT = new ApiFault(404, 'Unknown endpoint (check api doc)')
const WRONG_METHOD = new ApiFault(405, 'Invalid http method (use the correct GET/POST)')
const PING_MS = 10_000
const WEBSOCKET_PATH = '/websocket'
/** Events that a client does not read are dropped with the client, not collected for it. */
const MAX_UNREAD_BYTES = 1024 * 1024

function accessOf(password: string, passwords: Passwords): Access | undefined {
  if (sameSecret(password, passwords.full)) return 'full'
  if (sameSecret(password, passwords.limited)) return 'limited'
  return undefined
}

/** The user name is ignored. */
function basicAccess(request: IncomingMessage, passwords: Passwords): Access | undefined {
  const encoded = /^Basic ([A-Za-z0-9+/=]+)$/i.exec(request.headers.authorization ?? '')?.[1]
  if (encoded === undefined) return undefined
  const credentials = Buffer.from(encoded, 'base64').toString('utf8')
  const colon = credentials.indexOf(':')
  return colon < 0 ? undefined : accessOf(credentials.slice(colon + 1), passwords)
}

function protocolsOf(request: IncomingMessage): string[] {
  return (request.headers['sec-websocket-protocol'] ?? '').split(',').map((protocol) => protocol.trim())
}

function websocketAccess(request: IncomingMessage, passwords: Passwords): Access | undefined {
  const basic = basicAccess(request, passwords)
  if (basic) return basic
  return protocolsOf(request)
    .map((protocol) => accessOf(protocol, passwords))
    .find(Boolean)
}

/** The named parts of the path, or undefined when it is another path. */
function match(route: ApiRoute, path: string): Record<string, string> | undefined {
  const wanted = route.path.split('/')
  const given = path.split('/')
  if (wanted.length !== given.length) return undefined
  const parts: Record<string, string> = {}
  for (const [index, piece] of wanted.entries()) {
    const value = decoded(given[index] ?? '')
    if (piece.startsWith(':') && value !== '') parts[piece.slice(1)] = value
    else if (piece !== value) return undefined
  }
  return parts
}

function decoded(piece: string): string {
  try {
    return decodeURIComponent(piece)
  } catch {
    // "%" that escapes nothing: no such path
    return ''
  }
}

async function gate(faults: Faults): Promise<void> {
  await faults.until(() => faults.answers !== 'hang')
  if (faults.answers === 'slow') await pause(SLOW_MS, undefined, { ref: false })
}

export class ApiServer {
  readonly http: Server
  readonly #node: LightningNode
  readonly #passwords: Passwords
  readonly #routes: ApiRoute[]
  readonly #log: (line: string) => void
  readonly #sockets = new WebSocketServer({ noServer: true, maxPayload: 64 * 1024 })
  readonly #pinger: NodeJS.Timeout

  constructor(node: LightningNode, dataDir: string, passwords: Passwords, log: (line: string) => void) {
    this.#node = node
    this.#passwords = passwords
    this.#routes = routesOf(node, dataDir)
    this.#log = log
    this.http = createServer((request, response) => {
      this.#answer(request)
        .then((answer) => sendAnswer(response, answer))
        .catch((error: unknown) => sendFault(response, this.#faultOf(error)))
    })
    this.http.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => this.#upgrade(request, socket, head))
    this.http.on('clientError', (_error, socket) => {
      if (socket.writable) socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
    })
    this.http.headersTimeout = 30_000
    this.http.requestTimeout = 60_000
    this.http.keepAliveTimeout = 60_000
    this.#pinger = setInterval(() => this.#ping(), PING_MS)
  }

  async #answer(request: IncomingMessage): Promise<Answer> {
    await gate(this.#node.faults)
    // A base only makes the URL parse; a target that is no path ("*", an authority) is no endpoint.
    const url = request.url?.startsWith('/') ? new URL(`http://node${request.url.replace(/^\/+/, '/')}`) : undefined
    if (!url) throw UNKNOWN_ENDPOINT
    if (url.pathname === WEBSOCKET_PATH) throw this.#notAnUpgrade(request)
    const onPath = this.#routes.filter((route) => match(route, url.pathname))
    if (onPath.length === 0) throw UNKNOWN_ENDPOINT
    const route = onPath.find(({ method }) => method === request.method)
    if (!route) throw WRONG_METHOD
    const access = basicAccess(request, this.#passwords)
    if (!access || (route.access === 'full' && access !== 'full')) throw UNAUTHORIZED
    return route.handle(callOf(request, url.searchParams, match(route, url.pathname) ?? {}))
  }

  #notAnUpgrade(request: IncomingMessage): ApiFault {
    if (request.method !== 'GET') return WRONG_METHOD
    return websocketAccess(request, this.#passwords) ? new ApiFault(400, '') : UNAUTHORIZED
  }

  #faultOf(error: unknown): ApiFault {
    if (error instanceof ApiFault) return error
    if (error instanceof BodyTooLarge) return new ApiFault(413, 'Request body is too large')
    if (error instanceof BodyBroken) return new ApiFault(400, '')
    if (error instanceof JournalUnavailable) return new ApiFault(500, error.message)
    const message = error instanceof Error ? error.message : String(error)
    this.#log(`internal error: ${message}`)
    return new ApiFault(500, message)
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    // Node takes its own listener off with the upgrade: without this one a client that resets the connection would end the process.
    socket.on('error', () => socket.destroy())
    if (request.headers.upgrade?.toLowerCase() !== 'websocket') return this.#ignoreUpgrade(request, socket)
    const path = request.url?.split('?')[0]
    if (path !== WEBSOCKET_PATH) return refuseUpgrade(socket, UNKNOWN_ENDPOINT)
    if (!websocketAccess(request, this.#passwords)) return refuseUpgrade(socket, UNAUTHORIZED)
    this.#sockets.handleUpgrade(request, socket, head, (client) => {
      alive.add(client)
      client.on('pong', () => alive.add(client))
      client.on('error', () => client.terminate())
    })
  }

  /** An offer of another protocol (h2c, from "curl --http2") may be ignored: the request is answered as it is. */
  #ignoreUpgrade(request: IncomingMessage, socket: Duplex): void {
    if (request.method !== 'GET') return refuseUpgrade(socket, new ApiFault(400, ''))
    const response = new ServerResponse(request)
    response.shouldKeepAlive = false
    response.assignSocket(socket as Socket)
    response.on('finish', () => socket.end())
    this.http.emit('request', request, response)
  }

  /** A client that did not answer the last ping is gone, whatever TCP believes. */
  #ping(): void {
    for (const client of this.#sockets.clients) {
      if (!alive.delete(client)) client.terminate()
      else client.ping()
    }
  }

  /** To whoever is connected now: there is no replay. Null fields are left out here, unlike in webhooks. */
  broadcast(event: PaymentReceived): void {
    const text = JSON.stringify(event, (_key, value: unknown) => value ?? undefined, 4)
    for (const client of this.#sockets.clients) {
      if (client.bufferedAmount > MAX_UNREAD_BYTES) client.terminate()
      else if (client.readyState === client.OPEN) client.send(text)
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#pinger)
    const closed = new Promise((resolve) => this.http.close(resolve))
    for (const client of this.#sockets.clients) client.close(1001)
    this.http.closeIdleConnections()
    // phoenixd's grace: what has not ended by then is cut off, and the journal decides what of it happened.
    await Promise.race([closed, pause(1_000, undefined, { ref: false })])
    this.http.closeAllConnections()
    for (const client of this.#sockets.clients) client.terminate()
  }
}

const alive = new WeakSet<WebSocket>()

function sendAnswer(response: ServerResponse, answer: Answer): void {
  if (typeof answer === 'string') return sendText(response, 200, answer)
  response.writeHead(200, { 'content-type': 'application/json' })
  response.end(JSON.stringify(answer, null, 4))
}

function sendFault(response: ServerResponse, fault: ApiFault): void {
  if (fault.status === 401) response.setHeader('www-authenticate', 'Basic realm="Ktor Server", charset=UTF-8')
  // The rest of a body that nobody will read would be taken for the next request.
  if (fault.status === 413) response.setHeader('connection', 'close')
  sendText(response, fault.status, fault.message)
}

function sendText(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=UTF-8', 'content-length': Buffer.byteLength(text) })
  response.end(text)
}

function refuseUpgrade(socket: Duplex, fault: ApiFault): void {
  const lines = [
    `HTTP/1.1 ${fault.status} ${STATUS_CODES[fault.status]}`,
    'Content-Type: text/plain; charset=UTF-8',
    `Content-Length: ${Buffer.byteLength(fault.message)}`,
    'Connection: close',
    ...(fault.status === 401 ? ['WWW-Authenticate: Basic realm="Ktor Server", charset=UTF-8'] : []),
  ]
  socket.end(`${lines.join('\r\n')}\r\n\r\n${fault.message}`)
}
