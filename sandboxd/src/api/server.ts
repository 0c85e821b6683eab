import { randomBytes } from 'node:crypto'
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
import { ApiFault } from './faults.ts'
import { basicCredentials, requireJsonAccepted } from './headers.ts'
import { type Access, type Answer, type ApiRoute, callOf, routesOf } from './routes.ts'

export type Passwords = { full: string; limited: string }

const UNAUTHORIZED = new ApiFault(401, 'Invalid authentication (use basic auth with the http password set in phoenix.conf)')
const UNKNOWN_ENDPOINT = new ApiFault(404, 'Unknown endpoint (check api doc)')
const WRONG_METHOD = new ApiFault(405, 'Invalid http method (use the correct GET/POST)')
const CHALLENGE = 'Basic realm="Ktor Server", charset=UTF-8'
const PING_MS = 10_000
/** Node adds a second to this, so idle connections are closed after 45 s. */
const IDLE_MS = 44_000
/** The limit for the request line and for each header. Node's lower limit for their sum is raised. */
const MAX_LINE = 8_192
const MAX_HEADERS_BYTES = 64 * 1024
const WEBSOCKET_PATH = '/websocket'
/** A client with more unread bytes than this is disconnected, because its events would fill the memory. */
const MAX_UNREAD_BYTES = 1024 * 1024

function accessOf(password: string, passwords: Passwords): Access | undefined {
  if (sameSecret(password, passwords.full)) return 'full'
  if (sameSecret(password, passwords.limited)) return 'limited'
  return undefined
}

/** The user name is ignored. */
function basicAccess(request: IncomingMessage, passwords: Passwords): Access | undefined {
  const credentials = basicCredentials(request.headers.authorization)
  if (credentials === undefined) return undefined
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

/** The path parameters, or undefined if the path does not match. */
function match(route: ApiRoute, path: string): Map<string, string> | undefined {
  const wanted = route.path.split('/')
  const given = path.split('/')
  if (wanted.length !== given.length) return undefined
  const parts = new Map<string, string>()
  for (const [index, piece] of wanted.entries()) {
    const value = decoded(given[index] ?? '')
    if (piece.startsWith(':') && value !== '') parts.set(piece.slice(1).toLowerCase(), value)
    else if (piece !== value) return undefined
  }
  return parts
}

function decoded(piece: string): string {
  try {
    return decodeURIComponent(piece)
  } catch {
    // an invalid percent escape: the path does not exist
    return ''
  }
}

/** The text of the 400 response to a request that Node could not parse. */
function reasonFor(error: NodeJS.ErrnoException & { rawPacket?: Buffer }): string {
  if (error.code === 'HPE_HEADER_OVERFLOW') return `Line exceeds limit of ${MAX_LINE} characters`
  const line = error.rawPacket?.toString('latin1').split(/\r?\n/)[0] ?? ''
  const version = line.trim().split(/\s+/).at(-1) ?? ''
  return version === '' || version.startsWith('HTTP/1.') ? '' : `Failed to parse version: ${version}`
}

function hasLongLine({ method = '', url = '', rawHeaders }: IncomingMessage): boolean {
  const lengths = rawHeaders.map((name, at) => (at % 2 === 0 ? `${name}: ${rawHeaders[at + 1]}`.length : 0))
  return Math.max(`${method} ${url} HTTP/1.1`.length, ...lengths) > MAX_LINE
}

function refuseRaw(socket: Duplex, reason: string): void {
  if (!socket.writable) return
  const head = `HTTP/1.0 400 Bad Request\r\nConnection: close\r\nContent-Length: ${Buffer.byteLength(reason)}`
  socket.end(`${head}\r\n\r\n${reason}`)
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
  readonly #sockets = new WebSocketServer({
    noServer: true,
    maxPayload: 64 * 1024,
    // phoenixd accepts the password as a sub-protocol but names none in its response, so clients that require one fail here, too.
    handleProtocols: () => false,
  })
  readonly #pinger: NodeJS.Timeout

  constructor(node: LightningNode, dataDir: string, passwords: Passwords, log: (line: string) => void) {
    this.#node = node
    this.#passwords = passwords
    this.#routes = routesOf(node, dataDir)
    this.#log = log
    this.http = createServer({ requireHostHeader: false, maxHeaderSize: MAX_HEADERS_BYTES }, (request, response) => {
      if (hasLongLine(request)) return refuseRaw(request.socket, `Line exceeds limit of ${MAX_LINE} characters`)
      this.#answer(request)
        .then((answer) => sendAnswer(response, answer))
        .catch((error: unknown) => sendFault(response, this.#faultOf(error)))
    })
    this.http.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => this.#upgrade(request, socket, head))
    this.http.on('clientError', (error, socket) => refuseRaw(socket, reasonFor(error)))
    this.http.headersTimeout = 30_000
    this.http.requestTimeout = 60_000
    this.http.keepAliveTimeout = IDLE_MS
    this.#pinger = setInterval(() => this.#ping(), PING_MS)
  }

  async #answer(request: IncomingMessage): Promise<Answer> {
    await gate(this.#node.faults)
    const [, path = '', query = ''] = /^\/*(\/[^?#]*)\??([^#]*)/.exec(request.url ?? '') ?? []
    // A target that is not a path ("*", an authority) is not an endpoint.
    if (path === '') throw UNKNOWN_ENDPOINT
    // A request for the websocket without an upgrade is a bad request, whatever its method and password.
    if (path === WEBSOCKET_PATH) throw new ApiFault(400, '')
    const onPath = this.#routes.filter((route) => match(route, path))
    if (onPath.length === 0) throw UNKNOWN_ENDPOINT
    const route = onPath.find(({ method }) => method === request.method)
    if (!route) throw WRONG_METHOD
    const access = basicAccess(request, this.#passwords)
    if (!access || (route.access === 'full' && access !== 'full')) throw UNAUTHORIZED
    const answer = await route.handle(callOf(request, query, match(route, path) ?? new Map()))
    if (typeof answer !== 'string') requireJsonAccepted(request.headers.accept)
    return answer
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
    // Node removes its error listener on upgrade. Without this one, a client that resets the connection would crash the process.
    socket.on('error', () => socket.destroy())
    if (request.headers.upgrade?.toLowerCase() !== 'websocket') return this.#ignoreUpgrade(request, socket)
    const path = request.url?.split('?')[0]
    if (path !== WEBSOCKET_PATH) return refuseUpgrade(socket, UNKNOWN_ENDPOINT)
    // No WWW-Authenticate if there were no credentials, because the password may also be sent as a sub-protocol.
    if (!this.#mayListen(request)) return refuseUpgrade(socket, UNAUTHORIZED, request.headers.authorization !== undefined)
    this.#sockets.handleUpgrade(request, socket, head, (client) => {
      alive.add(client)
      client.on('pong', () => alive.add(client))
      client.on('error', () => client.terminate())
    })
  }

  #mayListen(request: IncomingMessage): boolean {
    try {
      return websocketAccess(request, this.#passwords) !== undefined
    } catch (error) {
      if (error instanceof ApiFault) return false
      throw error
    }
  }

  /** An upgrade offer for another protocol (h2c, from "curl --http2") is ignored, and the request is handled normally. */
  #ignoreUpgrade(request: IncomingMessage, socket: Duplex): void {
    if (request.method !== 'GET') return refuseUpgrade(socket, new ApiFault(400, ''))
    const response = new ServerResponse(request)
    response.shouldKeepAlive = false
    response.assignSocket(socket as Socket)
    response.on('finish', () => socket.end())
    this.http.emit('request', request, response)
  }

  /** A client that did not answer the last ping is considered gone, even if the TCP connection is open. */
  #ping(): void {
    for (const client of this.#sockets.clients) {
      if (!alive.delete(client)) client.terminate()
      else client.ping(`[ping ${randomBytes(32).toString('hex')} ping]`)
    }
  }

  /** Sends to the clients connected now; there is no replay. Null fields are left out, unlike in webhooks. */
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
    // phoenixd's grace period. Requests that have not finished by then are aborted; the journal decides their outcome.
    await Promise.race([closed, pause(1_000, undefined, { ref: false })])
    this.http.closeAllConnections()
    for (const client of this.#sockets.clients) client.terminate()
  }
}

const alive = new WeakSet<WebSocket>()

function sendAnswer(response: ServerResponse, answer: Answer): void {
  if (typeof answer === 'string') return sendText(response, 200, answer)
  send(response, 200, 'application/json', JSON.stringify(answer, null, 4))
}

function sendFault(response: ServerResponse, fault: ApiFault): void {
  if (fault.status === 401) response.setHeader('WWW-Authenticate', CHALLENGE)
  // Otherwise the unread rest of the body would be parsed as the next request.
  if (fault.status === 413) response.setHeader('Connection', 'close')
  sendText(response, fault.status, fault.message)
}

/** An error without a message has no content type either. */
function sendText(response: ServerResponse, status: number, text: string): void {
  send(response, status, text === '' ? undefined : 'text/plain; charset=UTF-8', text)
}

/** phoenixd sends neither Date nor Keep-Alive headers. */
function send(response: ServerResponse, status: number, contentType: string | undefined, text: string): void {
  response.sendDate = false
  if (!response.hasHeader('Connection') && response.shouldKeepAlive) response.removeHeader('Connection')
  response.setHeader('Content-Length', Buffer.byteLength(text))
  if (contentType !== undefined) response.setHeader('Content-Type', contentType)
  response.writeHead(status)
  response.end(text)
}

function refuseUpgrade(socket: Duplex, fault: ApiFault, challenged = false): void {
  const lines = [
    `HTTP/1.1 ${fault.status} ${STATUS_CODES[fault.status]}`,
    'Content-Type: text/plain; charset=UTF-8',
    `Content-Length: ${Buffer.byteLength(fault.message)}`,
    'Connection: close',
    ...(challenged ? [`WWW-Authenticate: ${CHALLENGE}`] : []),
  ]
  socket.end(`${lines.join('\r\n')}\r\n\r\n${fault.message}`)
}
