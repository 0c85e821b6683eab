/// <reference types="node" />
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { Boltyard } from '../boltyard.ts'
import { closeWithConnection } from '../paywall/adapters/node-response.ts'
import { METHODS } from '../paywall/answers.ts'
import type { EventHook } from '../paywall/events.ts'
import { warn } from '../paywall/trouble.ts'
import type { ProxyConfig, ProxyRoute } from './config/config.ts'
import { type RequestTarget, targetOf } from './config/path.ts'
import { matchesPath, takesMethod } from './config/pattern.ts'
import type { Route } from './config/route.ts'
import { type Settings, settingsOf } from './config/settings.ts'
import { forward } from './http/forward.ts'
import { type ClientOf, clientOf } from './http/forwarded.ts'
import { type HeaderRewriter, requestHeaders } from './http/headers.ts'
import { hasBody, refusal, respond } from './http/respond.ts'
import { guarded, isWebSocket, responseOn, tunnel } from './http/tunnel.ts'
import { Upstream } from './http/upstream.ts'
import { type Incoming, PaidRoute, type Passed } from './paid-route.ts'

export type ProxyOptions = {
  /** Default: a new client, with the key from `SERVICE_API_KEY`. The key needs only the scope `gateway:write`. */
  client?: Boltyard | undefined
  onEvent?: EventHook | undefined
  /** How long to keep asking whether a credential was paid. Default: 10,000. */
  patienceMs?: number | undefined
}

export type ProxyServer = {
  /** In the order in which they are tried. */
  readonly routes: readonly ProxyRoute[]
  /** Starts to listen, and returns the address. */
  listen(): Promise<{ host: string; port: number }>
  /** Rejects with what to change if payments cannot be accepted. Creates a payment for each set of protocols. */
  ready(): Promise<void>
  /** Rejects if the upstream does not accept a connection, or its certificate is not valid. */
  reachUpstream(): Promise<void>
  /** How many requests and WebSockets are in progress. */
  readonly inProgress: number
  /** Stops listening, waits for responses in progress, and tells the gateway what was delivered. */
  close(options?: { graceMs?: number }): Promise<void>
}

/** Concurrent calls to the gateway, which may have to wait for a node. */
const AT_ONCE = 64
/** Longer than load balancers keep an idle connection, so that they never use one that is being closed. */
const KEEP_ALIVE_MS = 65_000
const GRACE_MS = 10_000
const SETTLE_MS = 5_000

/** Charges for the routes of a program that knows nothing about payments. Throws a `ProxyConfigError` if the configuration is invalid. */
export function createProxy(config: ProxyConfig, options: ProxyOptions = {}): ProxyServer {
  return new PaidProxy(settingsOf(config), options)
}

type Matched = { route: Route; paid: PaidRoute | undefined }

class PaidProxy implements ProxyServer {
  readonly routes: readonly ProxyRoute[]
  readonly #settings: Settings
  readonly #matched: readonly Matched[]
  readonly #upstream: Upstream
  readonly #server: Server
  readonly #clientOf: ClientOf
  readonly #headersOf: HeaderRewriter
  readonly #tunnels = new Set<Duplex>()
  readonly #responses = new Set<ServerResponse>()
  readonly #forwardings = new Set<Promise<void>>()
  #isClosing = false

  constructor(settings: Settings, { client: given, onEvent, patienceMs }: ProxyOptions) {
    const { routes, upstream, set, remove, trustProxy, publicUrl } = settings
    this.#settings = settings
    this.routes = routes.map(({ listed }) => listed)
    const isPaid = ({ listed }: Route): boolean => listed.access === 'paid'
    const client = given ?? (routes.some(isPaid) ? new Boltyard({ maxConcurrency: AT_ONCE }) : undefined)
    this.#matched = routes.map((route) => ({
      route,
      paid: client && isPaid(route) ? new PaidRoute(route, settings, { client, onEvent, patienceMs }) : undefined,
    }))
    this.#upstream = new Upstream(upstream)
    this.#clientOf = clientOf(trustProxy, publicUrl)
    this.#headersOf = requestHeaders({ upstreamHost: this.#upstream.host, set, remove })
    this.#server = createServer({ insecureHTTPParser: false, keepAliveTimeout: KEEP_ALIVE_MS })
    this.#server.on('request', (request, response) => this.#handle(request, response, false))
    this.#server.on('checkContinue', (request, response) => this.#handle(request, response, true))
    this.#server.on('upgrade', (request, socket, head) => this.#takeOver(socket, () => this.#upgrade(request, socket, head)))
    this.#server.on('connect', (_request, socket) => this.#takeOver(socket, () => void socket.destroy()))
  }

  listen(): Promise<{ host: string; port: number }> {
    const { host, port } = this.#settings.listen
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(port, host, () => {
        this.#server.removeListener('error', reject)
        const { address, port: actual } = this.#server.address() as AddressInfo
        resolve({ host: address, port: actual })
      })
    })
  }

  async ready(): Promise<void> {
    const different = new Map(this.#matched.map(({ paid, route }) => [paid && String(route.listed.protocols), paid]))
    await Promise.all([...different.values()].map((paid) => paid?.ready()))
  }

  reachUpstream(): Promise<void> {
    return this.#upstream.reach()
  }

  get inProgress(): number {
    const served = new Set<unknown>([...this.#tunnels, ...[...this.#responses].map((response) => response.socket ?? response)])
    // The upstream may still work for a customer who has left.
    return Math.max(served.size, this.#forwardings.size)
  }

  async close({ graceMs = GRACE_MS }: { graceMs?: number } = {}): Promise<void> {
    this.#isClosing = true
    const closed = new Promise((resolve) => this.#server.close(resolve))
    for (const response of this.#responses) response.shouldKeepAlive = false
    const finished = (): Promise<unknown> => Promise.allSettled(this.#forwardings)
    await within(graceMs, closed.then(finished))
    for (const socket of this.#tunnels) socket.destroy()
    this.#server.closeAllConnections()
    this.#upstream.close()
    const settled = (): Promise<unknown> => Promise.all(this.#matched.map(({ paid }) => paid?.settled()))
    await within(SETTLE_MS, finished().then(settled))
  }

  #handle(request: IncomingMessage, response: ServerResponse, isExpecting: boolean): void {
    this.#track(response)
    closeWithConnection(response)
    const { shouldKeepAlive } = response
    let isWaiting = isExpecting
    // A client that is refused without a 100 may send its body or its next request, and the proxy cannot tell which it is.
    if (isWaiting) response.shouldKeepAlive = false
    const askForBody = (): void => {
      if (!isWaiting) return
      isWaiting = false
      response.shouldKeepAlive = shouldKeepAlive && !this.#isClosing
      response.writeContinue()
    }
    try {
      this.#serve(request, response, askForBody)
    } catch (error) {
      this.#fail(response, error)
    }
  }

  #serve(request: IncomingMessage, response: ServerResponse, askForBody: () => void): void {
    const { maxBodyBytes, documents } = this.#settings
    const { method = 'GET', headers } = request
    const target = targetOf(request.url ?? '')
    if (!target)
      return respond(
        response,
        refusal(400, 'The path of the request is ambiguous: not all servers would read it in the same way.'),
      )
    if (method === 'TRACE') return respond(response, refusal(405, 'TRACE is not supported.'))
    const encoding = headers['transfer-encoding']
    if (encoding !== undefined && encoding.toLowerCase() !== 'chunked')
      return respond(response, refusal(501, 'The only supported Transfer-Encoding is chunked.'))
    const document = documents?.answer(method, target.path)
    if (document) return respond(response, document)
    const matched = this.#find(method, target)
    if (!matched || matched.route.listed.access === 'denied') return respond(response, denial(matched))
    if (Number(headers['content-length'] ?? 0) > maxBodyBytes) {
      response.shouldKeepAlive = false
      return respond(response, refusal(413, `The body may have at most ${maxBodyBytes} bytes.`))
    }
    const incoming = { request, response, target, client: this.#clientOf(request), askForBody }
    const { paid } = matched
    if (!paid) return this.#forward(matched, incoming, { delivery: undefined })
    const remembered = paid.recall(incoming)
    if (remembered) return this.#forward(matched, incoming, remembered)
    paid
      .admit(incoming, this.#methodsFor(target))
      .then((passed) => passed && this.#forward(matched, incoming, passed))
      .catch((error) => this.#fail(response, error))
  }

  /** The first route that matches. The proxy responds to OPTIONS for paid routes, whatever their methods. */
  #find(method: string, { segments }: RequestTarget): Matched | undefined {
    return this.#matched.find(
      ({ route: { pattern }, paid }) =>
        matchesPath(pattern, segments) && (takesMethod(pattern, method) || (paid !== undefined && method === 'OPTIONS')),
    )
  }

  /** For the response to OPTIONS. */
  #methodsFor({ segments }: RequestTarget): string[] {
    const patterns = this.#matched
      .filter(({ route }) => route.listed.access !== 'denied' && matchesPath(route.pattern, segments))
      .map(({ route }) => route.pattern)
    return METHODS.filter((method) => method === 'OPTIONS' || patterns.some((pattern) => takesMethod(pattern, method)))
  }

  #forward({ route }: Matched, incoming: Incoming, { delivery }: Passed): void {
    const { request, response, target, client, askForBody } = incoming
    const requiresAuth = route.config.requiresAuth === true
    const headers = this.#headersOf(request, { client, requiresAuth, payment: delivery?.payment })
    const { maxBodyBytes } = this.#settings
    if (hasBody(request)) askForBody()
    const forwarding = forward(this.#upstream, {
      request,
      response,
      url: target.url,
      headers,
      delivery,
      firstByteMs: route.firstByteMs,
      maxBodyBytes,
    })
    this.#forwardings.add(forwarding)
    const end = (): unknown => this.#forwardings.delete(forwarding)
    void forwarding.catch((error) => this.#fail(response, error)).then(end)
  }

  /** For a connection that Node hands over, and whose errors it no longer handles. */
  #takeOver(socket: Duplex, act: () => void): void {
    socket.on('error', () => socket.destroy())
    // With an error, so that an incomplete response counts as aborted by the customer.
    for (const { req } of this.#responses)
      if (req.socket === socket) return void socket.destroy(new Error('another protocol in the middle of a response'))
    this.#tunnels.add(socket)
    socket.once('close', () => this.#tunnels.delete(socket))
    guarded(socket, act)
  }

  /** Only free routes have WebSockets: a connection without an end is not a delivery. */
  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const target = targetOf(request.url ?? '')
    const matched = target && this.#find(request.method ?? 'GET', target)
    if (target && matched?.route.listed.access === 'free' && isWebSocket(request)) {
      const client = this.#clientOf(request)
      const headers = this.#headersOf(request, { client, requiresAuth: false, payment: undefined })
      return tunnel(this.#upstream, { request, socket, head, url: target.url, headers, firstByteMs: matched.route.firstByteMs })
    }
    const response = responseOn(request, socket)
    if (isWebSocket(request) && matched?.paid)
      return respond(response, refusal(400, 'This route is paid, and only free routes support WebSockets.'))
    // Node does not read the body of an upgrade.
    if (hasBody(request)) return respond(response, refusal(400, 'An upgrade with a body is not supported.'))
    this.#handle(request, response, false)
  }

  #track(response: ServerResponse): void {
    if (this.#isClosing) response.shouldKeepAlive = false
    this.#responses.add(response)
    response.on('error', () => response.destroy())
    response.once('close', () => {
      this.#responses.delete(response)
      // Later, because the connection is not idle yet.
      if (this.#isClosing) setImmediate(() => this.#server.closeIdleConnections())
    })
  }

  #fail(response: ServerResponse, error: unknown): void {
    warn('proxy', `A request failed: ${error instanceof Error ? error.message : String(error)}`, 'proxy')
    try {
      if (!response.headersSent) return respond(response, refusal(500, 'The request could not be handled.'))
    } catch {
      // The error response could not be sent either.
    }
    response.destroy()
  }
}

function denial(matched: Matched | undefined) {
  const status = matched?.route.listed.status ?? 404
  return refusal(status, status === 404 ? 'There is nothing at this path.' : 'This path is not available.')
}

async function within(ms: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  await Promise.race([work, late])
  clearTimeout(timer)
}
