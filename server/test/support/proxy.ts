import { once } from 'node:events'
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http'
import { type AddressInfo, connect, createServer as createTcpServer, type Socket, type Server as TcpServer } from 'node:net'
import { PassThrough, type Readable } from 'node:stream'
import fastify, { type FastifyInstance } from 'fastify'
import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { PATIENCE_MS } from '../../../testing/eventually.ts'
import { readConfig } from '../../src/config.ts'
import { type Edge, edgeOf } from '../../src/http/edge.ts'
import { acceptOnlyJson } from '../../src/http/hooks/body.ts'
import { renderProblems } from '../../src/http/hooks/errors.ts'
import { addLimits } from '../../src/http/hooks/rate-limit.ts'
import { createListener } from '../../src/http/listener.ts'
import { NodeProxy, PROXY_LIMITS, type ProxyLimits } from '../../src/http/node-proxy/proxy.ts'
import { nodeTargets, type TargetOf } from '../../src/http/node-proxy/target.ts'
import type { NodeAddress } from '../../src/platform/node-agent.ts'

/** The real proxy in front of fake nodes that answer as a test wants. Everything a test opens is closed when its file has run. */

export const MIB = 1024 * 1024
export const MOST = 64 * 1024
export const DOMAIN = 'nodes.test'
export const servers: (Server | TcpServer)[] = []
export const sockets: { destroy?: () => unknown; terminate?: () => unknown }[] = []
const apps: FastifyInstance[] = []

export type Service = {
  port: number
  app: FastifyInstance
  log: () => string
  close: () => void
  nodes: Map<string, NodeAddress | 'down' | (() => Promise<NodeAddress>)>
  /** The nodes that were reported as silent. */
  silences: Set<string>
}

type ServiceOptions = { domain?: string; isByName?: boolean; connectionTimeoutMs?: number }

/** The proxy with the service's error format and body parser, and with routes of the service that no node's host may reach. */
async function service(
  limits: Partial<ProxyLimits>,
  { domain = DOMAIN, isByName = false, ...listening }: ServiceOptions = {},
): Promise<Service> {
  const nodes: Service['nodes'] = new Map()
  const lookUp = async (id: string): Promise<NodeAddress | 'not found' | 'down'> => {
    const known = nodes.get(id) ?? 'not found'
    return typeof known === 'function' ? known() : known
  }
  const log = new PassThrough()
  const lines: string[] = []
  log.on('data', (chunk) => lines.push(String(chunk)))
  const serializers = { req: (request: { url: string }) => ({ path: request.url.split('?')[0] }) }
  const createServer = (service: RequestListener): Server => createListener({ service, proxy: () => proxy, ...listening })
  const app = fastify({
    serverFactory: createServer,
    bodyLimit: 64 * 1024,
    logger: { level: 'debug', stream: log, serializers },
    forceCloseConnections: true,
  })
  acceptOnlyJson(app)
  renderProblems(app)
  for (const url of ['/v1/thing', '/operator/v1/thing', '/']) app.get(url, async () => 'OF THE SERVICE')
  app.post('/v1/echo', async ({ body }) => body)
  const calls = await addLimits(app, { max: 1, windowSeconds: 1, gatewayMax: 0 }, undefined)
  const [byName, byPath] = [nodeTargets(domain), nodeTargets(undefined)]
  const targetOf: TargetOf = (request) => byName(request) ?? (isByName ? undefined : byPath(request))
  const silences = new Set<string>()
  const reportSilence = (nodeId: string): void => void silences.add(nodeId)
  const options = { targetOf, lookUp, reportSilence, calls, edge: testEdge(), log: app.log }
  const proxy = new NodeProxy(options, { ...PROXY_LIMITS, answerMs: PATIENCE_MS, ...limits })
  app.addHook('preClose', async () => proxy.closeWebsockets())
  apps.push(app)
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo
  return { port, app, log: () => lines.join(''), close: () => proxy.close(), nodes, silences }
}

/** The service's edge, except that it allows any host and that its request ids cannot be mistaken for those of a node. */
function testEdge(): Edge {
  let last = 0
  return {
    ...edgeOf(readConfig({}), () => false),
    requestIdOf: () => `ours-${last++}`,
    refusal: () => undefined,
  }
}

type Seen = { method: string; url: string; headers: [string, string][]; body: Buffer }
type FakeNode = NodeAddress & { seen: Seen[]; connections: () => number }

export const pairsOf = (raw: string[]): [string, string][] =>
  raw.flatMap((name, index) => (index % 2 === 0 ? [[name.toLowerCase(), raw[index + 1] ?? ''] as [string, string]] : []))

export async function listenOn(server: Server | TcpServer): Promise<NodeAddress> {
  servers.push(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { host: '127.0.0.1', port: (server.address() as AddressInfo).port }
}

/** A well-behaved HTTP server that records what it receives before it answers. */
export async function fakeNode(answer: RequestListener = (_request, response) => response.end('of the node')): Promise<FakeNode> {
  const seen: Seen[] = []
  let connections = 0
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { method = '', url = '' } = request
    seen.push({ method, url, headers: pairsOf(request.rawHeaders), body: Buffer.concat(chunks) })
    answer(request, response)
  })
  server.on('connection', () => connections++)
  return { ...(await listenOn(server)), seen, connections: () => connections }
}

/** A node that can answer before it has received the body of a request. */
export const eagerNode = (answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<NodeAddress> =>
  listenOn(createServer(answer))

/** A node that can send any bytes once a request begins to arrive. */
export const rawNode = (reply: (socket: Socket) => void): Promise<NodeAddress> =>
  listenOn(
    createTcpServer((socket) => {
      sockets.push(socket)
      socket.on('error', () => undefined)
      socket.once('data', () => reply(socket))
    }),
  )

/** Sends these bytes unchanged; returns everything received until the other side closes. */
export async function raw(port: number, bytes: string | Buffer): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  sockets.push(socket)
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(chunk))
  socket.on('error', () => undefined)
  socket.write(bytes, 'latin1')
  await once(socket, 'close').catch(() => undefined)
  return Buffer.concat(chunks).toString('latin1')
}

export const statusOf = (text: string): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0)

/** A request whose response is not read to its end. */
export async function opened(port: number, path: string, options: { method?: string; headers?: Record<string, string> } = {}) {
  const outgoing = httpRequest({ host: '127.0.0.1', port, path, agent: false, ...options })
  sockets.push(outgoing)
  outgoing.on('error', () => undefined)
  return outgoing
}

export async function textOf(stream: Readable): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

export const DOWN = { error: { code: 'payment_service_unavailable', message: 'The node cannot be reached right now.' } }
export const UNKNOWN = {
  error: {
    code: 'payment_service_unavailable',
    message: 'The node returned no valid response. It may have carried out the request: check its payments before you repeat it.',
    reason: 'outcome_unknown',
  },
}

export let main: Service
export let node: FakeNode
beforeAll(async () => {
  main = await withLimits({})
  node = await fakeNode((request, response) => {
    if (request.url?.startsWith('/missing')) response.statusCode = 404
    response.end(request.method === 'HEAD' ? undefined : 'of the node')
  })
  main.nodes.set('node_a', node)
  main.nodes.set('node_down', 'down')
})
afterEach(() => {
  node.seen.length = 0
  // Whatever a test sends, it must not cause an internal error.
  for (const { log } of running) expect(log()).not.toContain('internal error')
})
afterAll(async () => {
  for (const socket of sockets) (socket.terminate ?? socket.destroy)?.call(socket)
  for (const server of servers) {
    server.close()
    if ('closeAllConnections' in server) server.closeAllConnections()
  }
  await Promise.all(apps.map((app) => app.close()))
})
const running: Service[] = []
export async function withLimits(limits: Partial<ProxyLimits>, options: ServiceOptions = {}): Promise<Service> {
  const one = await service(limits, options)
  running.push(one)
  return one
}

export const HANDSHAKE_LINES =
  'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n'

/** Sends the same headers with an ordinary request and with a websocket handshake. */
export async function bothWays(service: Service, target: string, lines: string): Promise<string[]> {
  return [
    await raw(service.port, `GET ${target} HTTP/1.1\r\nConnection: close\r\n${lines}\r\n`),
    await raw(service.port, `GET ${target} HTTP/1.1\r\n${HANDSHAKE_LINES}${lines}\r\n`),
  ]
}
