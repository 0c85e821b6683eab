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
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { basic, eventually, FULL, LIMITED, send, startNetwork, type TestNode } from '../../../sandboxd/test/harness.ts'
import { acceptOnlyJson } from '../../src/http/hooks/body.ts'
import { renderProblems } from '../../src/http/hooks/errors.ts'
import { rewriteNodeHost } from '../../src/http/hooks/hosts.ts'
import { addLimits } from '../../src/http/hooks/rate-limit.ts'
import { addNodeProxy, PROXY_LIMITS, type ProxyLimits } from '../../src/http/node-proxy/proxy.ts'
import type { NodeAddress } from '../../src/lightning/phoenixd/client.ts'

const MIB = 1024 * 1024
const MOST = 64 * 1024
const DOMAIN = 'nodes.test'
const servers: (Server | TcpServer)[] = []
const sockets: { destroy?: () => unknown; terminate?: () => unknown }[] = []
const apps: FastifyInstance[] = []

type Service = {
  port: number
  app: FastifyInstance
  log: () => string
  close: () => void
  nodes: Map<string, NodeAddress | 'down' | (() => Promise<NodeAddress>)>
}

/** The service as far as the proxy knows it: its errors, its bodies, its ids, and routes of its own that no node's host may reach. */
async function service(limits: Partial<ProxyLimits>, { domain = DOMAIN, isByName = false } = {}): Promise<Service> {
  const nodes: Service['nodes'] = new Map()
  const lookUp = async (id: string): Promise<NodeAddress | 'not found' | 'down'> => {
    const known = nodes.get(id) ?? 'not found'
    return typeof known === 'function' ? known() : known
  }
  const log = new PassThrough()
  const lines: string[] = []
  log.on('data', (chunk) => lines.push(String(chunk)))
  const serializers = { req: (request: { url: string }) => ({ path: request.url.split('?')[0] }) }
  const app = fastify({
    bodyLimit: 64 * 1024,
    rewriteUrl: rewriteNodeHost(domain),
    logger: { level: 'debug', stream: log, serializers },
    forceCloseConnections: true,
    // Shorter than the time of a paying call in these tests, as it may be in production.
    connectionTimeout: 800,
  })
  acceptOnlyJson(app)
  renderProblems(app)
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', `ours-${request.id}`)
  })
  for (const url of ['/v1/thing', '/operator/v1/thing', '/']) app.get(url, async () => 'OF THE SERVICE')
  app.post('/v1/echo', async ({ body }) => body)
  const calls = await addLimits(app, { max: 1, windowSeconds: 1, gatewayMax: 0 }, undefined)
  const options = { lookUp, nodeDomain: isByName ? domain : undefined, calls }
  const { close } = await addNodeProxy(app, options, { ...PROXY_LIMITS, ...limits })
  apps.push(app)
  await app.listen({ port: 0, host: '127.0.0.1' })
  return { port: (app.server.address() as AddressInfo).port, app, log: () => lines.join(''), close, nodes }
}

type Seen = { method: string; url: string; headers: [string, string][]; body: Buffer }
type FakeNode = NodeAddress & { seen: Seen[]; connections: () => number }

const pairsOf = (raw: string[]): [string, string][] =>
  raw.flatMap((name, index) => (index % 2 === 0 ? [[name.toLowerCase(), raw[index + 1] ?? ''] as [string, string]] : []))

async function listenOn(server: Server | TcpServer): Promise<NodeAddress> {
  servers.push(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { host: '127.0.0.1', port: (server.address() as AddressInfo).port }
}

/** An honest HTTP server that writes down what it gets, and answers as told. */
async function fakeNode(answer: RequestListener = (_request, response) => response.end('of the node')): Promise<FakeNode> {
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

/** A node that sees its requests before their bodies. */
const eagerNode = (answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<NodeAddress> =>
  listenOn(createServer(answer))

/** A node that answers any connection with these bytes, once it was asked for something. */
const rawNode = (reply: (socket: Socket) => void): Promise<NodeAddress> =>
  listenOn(
    createTcpServer((socket) => {
      sockets.push(socket)
      socket.on('error', () => undefined)
      socket.once('data', () => reply(socket))
    }),
  )

/** These bytes as they are; all that comes back until the other side closes. */
async function raw(port: number, bytes: string | Buffer): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  sockets.push(socket)
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(chunk))
  socket.on('error', () => undefined)
  socket.write(bytes, 'latin1')
  await once(socket, 'close').catch(() => undefined)
  return Buffer.concat(chunks).toString('latin1')
}

const statusOf = (text: string): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0)

/** A request whose answer is not awaited to its end. */
async function opened(port: number, path: string, options: { method?: string; headers?: Record<string, string> } = {}) {
  const outgoing = httpRequest({ host: '127.0.0.1', port, path, agent: false, ...options })
  sockets.push(outgoing)
  outgoing.on('error', () => undefined)
  return outgoing
}

async function textOf(stream: Readable): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

const DOWN = { error: { code: 'payment_service_unavailable', message: 'The node cannot be reached at the moment.' } }

let main: Service
let node: FakeNode
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
  // Whatever was done: nothing failed inside.
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
async function withLimits(limits: Partial<ProxyLimits>, names?: { domain?: string; isByName?: boolean }): Promise<Service> {
  const one = await service(limits, names)
  running.push(one)
  return one
}

describe('C28: a real daemon behind the proxy', () => {
  let payer: TestNode
  let payee: TestNode
  const at = (path: string): string => `/n/node_payee${path}`
  beforeAll(async () => {
    ;({ payer, payee } = await startNetwork())
    main.nodes.set('node_payee', { host: '127.0.0.1', port: payee.port })
  })

  test('C28: getinfo with either password is what the node says, and without one its own refusal', async () => {
    for (const password of [FULL, LIMITED]) {
      const headers = { authorization: basic(password) }
      const answer = await send(main.port, 'GET', at('/getinfo'), { headers })
      expect([answer.status, answer.json()]).toEqual([200, (await payee.get('/getinfo', password)).json()])
      expect(answer.json().nodeId).toBe(payee.nodeId)
    }
    const refused = await send(main.port, 'GET', at('/getinfo'))
    const direct = await send(payee.port, 'GET', '/getinfo')
    expect([refused.status, refused.text, refused.headers['www-authenticate']]).toEqual([
      direct.status,
      direct.text,
      direct.headers['www-authenticate'],
    ])
    expect(refused.status).toBe(401)
  })

  test('C28: the same by host name', async () => {
    const headers = { authorization: basic(FULL), host: `payee.${DOMAIN}:8080` }
    expect((await send(main.port, 'GET', '/getinfo', { headers })).json().nodeId).toBe(payee.nodeId)
  })

  test('C28: forms, urlencoded and multipart, arrive as they were written', async () => {
    const description = 'ünï & = +%'
    const form = new URLSearchParams({ description, amountSat: '21' }).toString()
    const multipart = ['description', 'amountSat']
      .map(
        (name) => `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${name === 'amountSat' ? 21 : description}\r\n`,
      )
      .join('')
    for (const [type, body] of [
      ['application/x-www-form-urlencoded', form],
      ['multipart/form-data; boundary=b', `${multipart}--b--\r\n`],
    ] as const) {
      const headers = { authorization: basic(FULL), 'content-type': type }
      const answer = await send(main.port, 'POST', at('/createinvoice'), { headers, body })
      expect([answer.status, answer.json().amountSat]).toEqual([200, 21])
      expect((await payee.incoming(answer.json().paymentHash)).description).toBe(description)
    }
  })

  test('C28: payments are made, and events come by websocket, by path and by host, with either way to authenticate', async () => {
    main.nodes.set('node_payer', { host: '127.0.0.1', port: payer.port })
    const authorization = basic(FULL)
    const open = [
      new WebSocket(`ws://127.0.0.1:${main.port}${at('/websocket')}`, { headers: { authorization } }),
      new WebSocket(`ws://127.0.0.1:${main.port}/websocket`, { headers: { authorization, host: `payee.${DOMAIN}` } }),
    ]
    sockets.push(...open)
    await Promise.all(open.map((socket) => once(socket, 'open')))
    const events = open.map((socket) => once(socket, 'message'))
    const { serialized, paymentHash } = await payee.invoice({ amountSat: 5 })
    const headers = { authorization, 'content-type': 'application/x-www-form-urlencoded' }
    const paid = await send(main.port, 'POST', '/n/node_payer/payinvoice', { headers, body: `invoice=${serialized}` })
    expect(paid.json().paymentHash).toBe(paymentHash)
    for (const [data] of await Promise.all(events)) expect(JSON.parse(String(data)).paymentHash).toBe(paymentHash)
  })

  test('C28: a websocket that the node refuses is refused with the node’s own answer', async () => {
    const socket = new WebSocket(`ws://127.0.0.1:${main.port}${at('/websocket')}`)
    const [, response] = await once(socket, 'unexpected-response')
    expect([response.statusCode, response.headers['content-security-policy']]).toEqual([401, "sandbox; default-src 'none'"])
  })
})

describe('C28: what the node gets', () => {
  test.each([
    ['', '/'],
    ['/', '/'],
    ['?a=b', '/?a=b'],
    ['/x?', '/x?'],
    ['//x//y/', '//x//y/'],
    ['/../v1/thing', '/../v1/thing'],
    ['/%2e%2e/..;/v1', '/%2e%2e/..;/v1'],
    ['/a%2Fb%20c%C3%A9?d=%zz&e=+f', '/a%2Fb%20c%C3%A9?d=%zz&e=+f'],
    ['/n/node_b/x', '/n/node_b/x'],
    ['/http://elsewhere/@x', '/http://elsewhere/@x'],
    ["/x'()*!$,;:@[]{}|^`~", "/x'()*!$,;:@[]{}|^`~"],
  ])('C28: the path after the prefix, byte for byte: %s', async (asked, got) => {
    const bytes = `GET /n/node_a${asked} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`
    expect(statusOf(await raw(main.port, Buffer.from(bytes, 'latin1')))).toBe(200)
    expect(node.seen.map(({ url }) => url)).toEqual([got])
  })

  test('C28: every method, HEAD and OPTIONS included', async () => {
    for (const method of ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'QUERY'])
      expect([method, (await send(main.port, method, '/n/node_a/x')).status]).toEqual([method, 200])
    expect(node.seen.map(({ method }) => method).join()).toBe('GET,HEAD,OPTIONS,POST,PUT,PATCH,DELETE,TRACE,QUERY')
  })

  test('C28: what has no body gets none on the way, nor chunks', async () => {
    for (const method of ['GET', 'POST', 'PUT', 'DELETE'])
      await raw(main.port, `${method} /n/node_a/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    const framing = node.seen.map(({ headers }) => headers.filter(([name]) => /^(content-length|transfer-encoding)$/.test(name)))
    expect(framing.filter((one) => one.some(([name, value]) => name !== 'content-length' || value !== '0'))).toEqual([])
    expect(framing).toHaveLength(4)
  })

  test('C28: bodies untouched, of any type or none, with a length or in chunks, also where nobody expects one', async () => {
    const body = Buffer.from([...Array(256).keys()])
    const types = ['application/json', 'text/plain; charset=utf-16', 'nonsense', '']
    for (const type of types)
      for (const method of ['POST', 'DELETE', 'GET']) {
        const framing = method === 'DELETE' ? { 'transfer-encoding': 'chunked' } : { 'content-length': '256' }
        await send(main.port, method, '/n/node_a/x', { headers: { ...(type ? { 'content-type': type } : {}), ...framing }, body })
        const seen = node.seen.at(-1)
        expect(seen?.body.equals(body)).toBe(true)
        expect(seen?.headers.find(([name]) => name === 'content-type')?.[1] ?? '').toBe(type)
      }
    expect(node.seen).toHaveLength(12)
  })

  test('C28: no cookies, nothing of the hop, nothing of who forwarded; everything else, repeated or not, stays', async () => {
    const headers = [
      'Host: evil.example',
      'Cookie: session=1',
      'Connection: X-Hop, close, Content-Length',
      'X-Hop: 1',
      'Keep-Alive: timeout=5',
      'Proxy-Authorization: Basic eDp5',
      'Proxy-Anything: 1',
      'TE: trailers',
      'Trailer: X-T',
      'Upgrade: h2c',
      'Forwarded: for=1.2.3.4',
      'X-Forwarded-For: 1.2.3.4',
      'x-forwarded-proto: https',
      'X-Real-IP: 1.2.3.4',
      'Via: 1.1 x',
      `Authorization: ${basic(FULL)}`,
      'X-Request-Id: theirs',
      'X-Twice: 1',
      'X-Twice: 2',
      'Accept: */*',
      'Content-Length: 2',
    ]
    const answer = await raw(main.port, `POST /n/node_a/x HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\nok`)
    expect(statusOf(answer)).toBe(200)
    expect(node.seen[0]?.body.toString()).toBe('ok')
    expect(node.seen[0]?.headers.filter(([name]) => name !== 'connection')).toEqual([
      ['host', `127.0.0.1:${node.port}`],
      ['authorization', basic(FULL)],
      ['x-request-id', 'theirs'],
      ['x-twice', '1'],
      ['x-twice', '2'],
      ['accept', '*/*'],
      ['content-length', '2'],
    ])
  })

  test.each([
    ['Bearer sk_secret'],
    ['bEaReR sk_secret'],
    ['bearer'],
    ['Basic eDp5, Bearer sk_secret'],
    [basic(FULL), basic(FULL)],
    [basic(FULL), 'Bearer sk_secret'],
  ])('C28: an API key, or more than one authorization, is refused and not forwarded: %s %s', async (...values) => {
    const lines = values.filter(Boolean).map((value) => `Authorization: ${value}\r\n`)
    const before = node.connections()
    for (const upgrade of [
      '',
      'Upgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n',
    ]) {
      const connection = upgrade ? 'Upgrade' : 'close'
      const head = `GET /n/node_a/x HTTP/1.1\r\nHost: x\r\nConnection: ${connection}\r\n${upgrade}${lines.join('')}\r\n`
      const answer = await raw(main.port, head)
      expect(statusOf(answer)).toBe(401)
      expect(JSON.parse(answer.split('\r\n\r\n')[1] ?? '').error.code).toBe('unauthorized')
    }
    expect([node.seen.length, node.connections()]).toEqual([0, before])
    expect(main.log()).not.toContain('sk_secret')
  })
})

const HANDSHAKE_LINES =
  'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n'

/** The same as an ordinary request and as a handshake. */
async function bothWays(service: Service, target: string, lines: string): Promise<string[]> {
  return [
    await raw(service.port, `GET ${target} HTTP/1.1\r\nConnection: close\r\n${lines}\r\n`),
    await raw(service.port, `GET ${target} HTTP/1.1\r\n${HANDSHAKE_LINES}${lines}\r\n`),
  ]
}

describe('security 28: an API key reaches no node, wherever it stands', () => {
  const key = `byk_${'a1B2'.repeat(9)}`
  test.each([
    ['without a scheme', '/x', `Authorization: ${key}`],
    ['in a header of another name', '/x', `X-Api-Key: ${key}`],
    ['within a header', '/x', `X-Anything: a=${key}; b`],
    ['as the password of a node', '/x', `Authorization: Basic ${Buffer.from(`:${key}`).toString('base64')}`],
    ['as the user of a node', '/x', `Authorization: basic ${Buffer.from(`${key}:`).toString('base64')}`],
    ['in the query', `/x?key=${key}`, 'Accept: */*'],
    ['in the query, escaped', `/x?key=%62y%6B_${key.slice(4)}`, 'Accept: */*'],
    ['in the path', `/${key}`, 'Accept: */*'],
  ])('security 28: %s', async (_where, path, line) => {
    const before = node.connections()
    for (const answer of await bothWays(main, `/n/node_a${path}`, `Host: x\r\n${line}\r\n`)) {
      expect(statusOf(answer)).toBe(401)
      expect(JSON.parse(answer.split('\r\n\r\n')[1] ?? '').error.code).toBe('unauthorized')
    }
    expect([node.seen.length, node.connections()]).toEqual([0, before])
  })

  test('security 28: in a cookie it refuses nobody, since no cookie is passed on', async () => {
    for (const answer of await bothWays(main, '/n/node_a/getinfo', `Host: x\r\nCookie: other=${key}\r\n`))
      expect(statusOf(answer)).toBe(200)
    expect(node.seen).toHaveLength(2)
    expect(JSON.stringify(node.seen.map(({ headers }) => headers))).not.toContain(key)
  })
})

describe('C49: pages of other sites', () => {
  const other = [
    ['127.0.0.1:1', 'Origin: http://evil.example'],
    ['127.0.0.1:1', 'Origin: http://127.0.0.1:2'],
    ['127.0.0.1:1', 'Origin: http://127.0.0.1'],
    ['127.0.0.1:1', 'Origin: null'],
    ['127.0.0.1:1', 'Origin: file://'],
    ['127.0.0.1:1', 'Origin: x://127.0.0.1:1'],
    ['127.0.0.1:1', 'Origin: '],
    ['127.0.0.1:1', 'Origin: http://127.0.0.1:1\r\nOrigin: http://evil.example'],
    ['127.0.0.1:1', 'Sec-Fetch-Site: cross-site'],
    ['127.0.0.1:1', 'Sec-Fetch-Site: same-site'],
    ['127.0.0.1:1', 'Origin: http://127.0.0.1:1\r\nSec-Fetch-Site: cross-site'],
    ['127.0.0.1:1', 'Sec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site'],
    [`a.${DOMAIN}`, `Origin: https://b.${DOMAIN}`],
    [`a.${DOMAIN}`, `Origin: https://${DOMAIN}`],
    [`a.${DOMAIN}`, `Origin: https://a.${DOMAIN}.evil.example`],
  ]
  test.each(other)('C49: on %s, %s is 403, and nothing is forwarded', async (host, lines) => {
    const before = node.connections()
    const target = host === `a.${DOMAIN}` ? '/getinfo' : '/n/node_a/getinfo'
    for (const answer of await bothWays(main, target, `Host: ${host}\r\nAuthorization: ${basic(FULL)}\r\n${lines}\r\n`)) {
      expect(statusOf(answer)).toBe(403)
      expect(JSON.parse(answer.split('\r\n\r\n')[1] ?? '').error.code).toBe('forbidden_origin')
    }
    expect([node.seen.length, node.connections()]).toEqual([0, before])
  })

  test.each([
    ['127.0.0.1:1', 'Origin: http://127.0.0.1:1\r\nSec-Fetch-Site: same-origin'],
    ['yard.example', 'Origin: https://yard.example'],
    ['yard.example:443', 'Origin: https://yard.example'],
    ['YARD.example', 'Origin: http://yard.example'],
    ['127.0.0.1:1', 'Sec-Fetch-Site: none'],
    ['127.0.0.1:1', 'Accept: */*'],
  ])('C49: on %s, %s is forwarded', async (host, lines) => {
    for (const answer of await bothWays(main, '/n/node_a/getinfo', `Host: ${host}\r\n${lines}\r\n`))
      expect(statusOf(answer)).toBe(200)
    expect(node.seen).toHaveLength(2)
  })

  test('security 4: a form that another site’s page submits with the browser’s password pays nothing', async () => {
    const headers = {
      authorization: basic(FULL),
      origin: 'http://evil.example',
      'content-type': 'application/x-www-form-urlencoded',
    }
    const answer = await send(main.port, 'POST', '/n/node_a/payinvoice', { headers, body: 'invoice=lnbcrt1' })
    expect([answer.status, answer.json().error.code, node.seen.length]).toEqual([403, 'forbidden_origin', 0])
  })
})

describe('C49: how many calls', () => {
  const times = async (count: number, call: (index: number) => Promise<{ status: number }>): Promise<number[]> => {
    const statuses: number[] = []
    for (let done = 0; done < count; done += 50)
      statuses.push(
        ...(await Promise.all(Array.from({ length: Math.min(50, count - done) }, (_, index) => call(done + index)))).map(
          ({ status }) => status,
        ),
      )
    return statuses
  }
  const all = (count: number, status: number): number[] => Array.from({ length: count }, () => status)

  test('C49: 600 a minute for a node, then 429; those that it refuses are not counted, and other nodes go on', async () => {
    const one = await withLimits({})
    const busy = await fakeNode(({ headers }, response) => response.writeHead(headers.authorization ? 200 : 401).end())
    one.nodes.set('node_busy', busy)
    one.nodes.set('node_a', node)
    const headers = { authorization: basic(FULL) }
    const call = () => send(one.port, 'GET', '/n/node_busy/getinfo', { headers })
    expect(await times(100, () => send(one.port, 'GET', '/n/node_busy/getinfo'))).toEqual(all(100, 401))
    expect(await times(600, call)).toEqual(all(600, 200))
    const refused = await call()
    expect([refused.status, refused.json()]).toEqual([429, { error: { code: 'rate_limited', message: 'rate limit exceeded' } }])
    expect(refused.headers).toMatchObject({ 'x-ratelimit-limit': '600', 'x-ratelimit-remaining': '0' })
    expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(1)
    const handshake = await raw(one.port, `GET /n/node_busy/websocket HTTP/1.1\r\nHost: x\r\n${HANDSHAKE_LINES}\r\n`)
    expect(statusOf(handshake)).toBe(429)
    expect(busy.seen).toHaveLength(700)
    expect((await send(one.port, 'GET', '/n/node_a/')).status).toBe(200)
  })

  test('C49: 1,200 a minute for an address, whatever they ask for, and then no look at the store', async () => {
    const one = await withLimits({})
    let looks = 0
    one.nodes.set('node_counted', async () => {
      looks++
      return node
    })
    expect(await times(1_199, () => send(one.port, 'GET', '/n/node_none/'))).toEqual(all(1_199, 404))
    expect((await send(one.port, 'GET', '/n/node_counted/')).status).toBe(200)
    const refused = await send(one.port, 'GET', '/n/node_counted/')
    expect([refused.status, refused.headers['x-ratelimit-limit'], looks]).toEqual([429, '1200', 1])
    expect((await send(one.port, 'GET', '/v1/thing')).status).toBe(200)
  })
})

describe('C28: what the client gets', () => {
  test('C28, C49: nothing that a browser would keep or believe, and our own headers', async () => {
    const hostile = await fakeNode((_request, response) =>
      response
        .writeHead(418, 'Short and stout', [
          ...['Set-Cookie', 'a=1', 'Set-Cookie', 'b=2', 'Clear-Site-Data', '"*"', 'Service-Worker-Allowed', '/'],
          ...['Connection', 'X-Hop', 'X-Hop', '1', 'Keep-Alive', 'timeout=77', 'Proxy-Authenticate', 'Basic'],
          ...['Content-Security-Policy', "default-src 'self'", 'X-Content-Type-Options', 'sniff', 'X-Request-Id', 'theirs'],
          ...['WWW-Authenticate', 'Basic', 'X-Twice', '1', 'X-Twice', '2', 'Constructor', 'x', 'Location', '/', 'ETag', '"x"'],
          ...['Strict-Transport-Security', 'max-age=1', 'Alt-Svc', 'h2=":1"', 'NEL', '{}', 'Report-To', '{}', 'Accept-CH', 'DPR'],
          ...['Reporting-Endpoints', 'a="/"', 'Refresh', '0', 'Link', '</x>; rel=preload', 'Access-Control-Allow-Origin', '*'],
          ...[
            'Content-Type',
            'text/x',
            'Content-Encoding',
            'x',
            'Retry-After',
            '1',
            'Cache-Control',
            'no-cache',
            'Sec-Fetch-X',
            '1',
          ],
        ])
        .end('tea'),
    )
    main.nodes.set('node_hostile', hostile)
    const { rawHeaders, statusCode, statusMessage } = await new Promise<IncomingMessage>((resolve) =>
      opened(main.port, '/n/node_hostile/').then((outgoing) => outgoing.on('response', resolve).end()),
    )
    const headers = pairsOf(rawHeaders)
    const values = (name: string): string[] => headers.filter(([one]) => one === name).map(([, value]) => value)
    expect([statusCode, statusMessage]).toEqual([418, 'Short and stout'])
    expect(values('content-security-policy')).toEqual(["sandbox; default-src 'none'"])
    expect(values('x-content-type-options')).toEqual(['nosniff'])
    expect(values('x-request-id')).toEqual([expect.stringMatching(/^ours-/)])
    expect(values('www-authenticate')).toEqual(['Basic'])
    const passed = [...new Set(headers.map(([name]) => name))].sort()
    // Connection and framing are of our own connection.
    expect(passed).toEqual([
      ...['cache-control', 'connection', 'content-encoding', 'content-security-policy', 'content-type', 'date'],
      ...['retry-after', 'transfer-encoding', 'www-authenticate', 'x-content-type-options', 'x-request-id'],
    ])
    expect(values('keep-alive')).not.toContain('timeout=77')
  })

  test('C28, C49: redirects are not followed, and lead no browser anywhere', async () => {
    const canary = await fakeNode()
    const location = `http://127.0.0.1:${canary.port}/`
    main.nodes.set('node_redirect', await fakeNode((_request, response) => response.writeHead(307, { location }).end()))
    const answer = await send(main.port, 'POST', '/n/node_redirect/x', { body: 'b' })
    expect([answer.status, answer.headers.location, canary.connections()]).toEqual([307, undefined, 0])
  })

  test('C28: answers without a body, of a known length, and in chunks keep their framing', async () => {
    const framed = await fakeNode((request, response) => {
      if (request.url === '/204') response.writeHead(204).end()
      else if (request.url === '/304') response.writeHead(304, { etag: '"x"' }).end()
      else if (request.url === '/length')
        response.writeHead(200, { 'content-length': 5 }).end(request.method === 'GET' ? 'hello' : '')
      else response.end('hello')
    })
    main.nodes.set('node_framed', framed)
    const ask = async (method: string, path: string) => {
      const { status, headers, text } = await send(main.port, method, `/n/node_framed${path}`)
      return [status, headers['content-length'], text]
    }
    expect(await ask('GET', '/204')).toEqual([204, undefined, ''])
    expect(await ask('GET', '/304')).toEqual([304, undefined, ''])
    expect(await ask('GET', '/length')).toEqual([200, '5', 'hello'])
    expect(await ask('HEAD', '/length')).toEqual([200, '5', ''])
  })
})

describe('C28: streams', () => {
  test('C28: each byte is passed on at once, both ways', async () => {
    main.nodes.set('node_echo', await eagerNode((request, response) => void request.pipe(response)))
    const outgoing = await opened(main.port, '/n/node_echo/', { method: 'POST' })
    outgoing.write('first')
    const [response] = await once(outgoing, 'response')
    expect(String((await once(response, 'data'))[0])).toBe('first')
    outgoing.write('second')
    expect(String((await once(response, 'data'))[0])).toBe('second')
    outgoing.end()
    await once(response, 'end')
  })

  test('C28: the head of an answer arrives before its body exists', async () => {
    main.nodes.set('node_head', await eagerNode((_request, response) => response.flushHeaders()))
    const outgoing = await opened(main.port, '/n/node_head/')
    outgoing.end()
    expect((await once(outgoing, 'response'))[0].statusCode).toBe(200)
  })

  test('C28: a client that reads slowly slows the node down; nothing is collected in between, and nothing lost', async () => {
    const one = await withLimits({ responseBytes: 512 * MIB })
    const total = 128 * MIB
    let written = 0
    const big = await eagerNode((_request, response) => {
      const piece = Buffer.alloc(MIB)
      const more = (): void => {
        while (written < total) {
          written += piece.length
          if (!response.write(piece)) return void response.once('drain', more)
        }
        response.end()
      }
      more()
    })
    one.nodes.set('node_big', big)
    const outgoing = await opened(one.port, '/n/node_big/')
    outgoing.end()
    const [response] = await once(outgoing, 'response')
    let last = -1
    await eventually(async () => {
      const before = last
      last = written
      await new Promise((resolve) => setTimeout(resolve, 200))
      return before === last
    }, 'the node to stall')
    expect(written).toBeLessThan(total / 2)
    let received = 0
    for await (const chunk of response) received += (chunk as Buffer).length
    expect(received).toBe(total)
  })

  test('C28: a node that reads slowly slows the client down', async () => {
    const one = await withLimits({ requestBytes: 512 * MIB })
    let incoming: IncomingMessage | undefined
    one.nodes.set(
      'node_slow',
      await eagerNode((request, response) => {
        incoming = request.pause()
        request.once('end', () => response.end('done'))
      }),
    )
    const outgoing = await opened(one.port, '/n/node_slow/', { method: 'POST' })
    let sent = 0
    const piece = Buffer.alloc(MIB)
    let last = -1
    await eventually(async () => {
      for (let index = 0; index < 64 && !outgoing.writableNeedDrain; index++) {
        sent += piece.length
        outgoing.write(piece)
      }
      const before = last
      last = sent
      await new Promise((resolve) => setTimeout(resolve, 200))
      return before === last && incoming
    }, 'the client to stall')
    expect(sent).toBeLessThan(64 * MIB)
    outgoing.end()
    let received = 0
    incoming?.on('data', (chunk: Buffer) => {
      received += chunk.length
    })
    incoming?.resume()
    const [response] = await once(outgoing, 'response')
    expect([await textOf(response), received]).toEqual(['done', sent])
  })
})

describe('C28: times', () => {
  let one: Service
  beforeAll(async () => {
    one = await withLimits({ answerMs: 400, payingAnswerMs: 1_500 })
  })

  test('C28: the real limits are 10 s, 120 s for paying calls, two idle minutes for websockets, 64 KiB and 16 MiB', () => {
    expect(PROXY_LIMITS).toEqual({
      answerMs: 10_000,
      payingAnswerMs: 120_000,
      websocketIdleMs: 120_000,
      requestBytes: 64 * 1024,
      responseBytes: 16 * MIB,
      concurrent: 64,
    })
  })

  test('C28: a silent node, and one that trickles its headers: 502 in time, and its connection is closed', async () => {
    let closed = 0
    const silent = createTcpServer((socket) =>
      socket
        .on('error', () => undefined)
        .on('close', () => closed++)
        .resume(),
    )
    const trickling = createTcpServer((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n')
      const timer = setInterval(() => socket.write('x-more: 1\r\n'), 50)
      socket
        .on('error', () => undefined)
        .on('close', () => clearInterval(timer))
        .on('close', () => closed++)
        .resume()
    })
    for (const server of [silent, trickling]) {
      one.nodes.set('node_slow', await listenOn(server))
      const start = performance.now()
      const answer = await send(one.port, 'GET', '/n/node_slow/')
      expect([answer.status, answer.json()]).toEqual([502, DOWN])
      expect(performance.now() - start).toBeGreaterThan(350)
      expect(performance.now() - start).toBeLessThan(4_000)
    }
    await eventually(() => closed === 2, 'both connections to end')
  })

  test('C28: a node that falls silent within its answer is cut off; one that goes on slowly is not', async () => {
    one.nodes.set('node_slow', await eagerNode((_request, response) => void response.write('half')))
    const outgoing = await opened(one.port, '/n/node_slow/')
    outgoing.end()
    const [response] = await once(outgoing, 'response')
    await expect(textOf(response)).rejects.toThrow('aborted')
    const patient = await eagerNode((_request, response) => {
      let left = 8
      const timer = setInterval(() => {
        response.write('x')
        if (--left > 0) return
        clearInterval(timer)
        response.end()
      }, 100)
    })
    one.nodes.set('node_patient', patient)
    expect((await send(one.port, 'GET', '/n/node_patient/')).text).toBe('xxxxxxxx')
  })

  test('C28: paying calls may take longer, longer even than a silent connection may last; only by POST and only those', async () => {
    const slow = await fakeNode((_request, response) => void setTimeout(() => response.end('paid'), 1_000))
    one.nodes.set('node_slow', slow)
    const calls = ['payinvoice', 'payoffer', 'paylnaddress', 'lnurlpay', 'sendtoaddress', 'bumpfee', 'closechannel']
    const paid = await Promise.all(calls.map((call) => send(one.port, 'POST', `/n/node_slow/${call}?x=1`, { body: 'a=b' })))
    expect(paid.map(({ status }) => status)).toEqual(calls.map(() => 200))
    const others = [
      ['GET', 'payinvoice'],
      ['POST', 'payinvoice/x'],
      ['POST', 'createinvoice'],
    ] as const
    const late = await Promise.all(others.map(([method, path]) => send(one.port, method, `/n/node_slow/${path}`)))
    expect(late.map(({ status }) => status)).toEqual([502, 502, 502])
  })

  test('C28: paying calls have a limit as well', async () => {
    one.nodes.set('node_silent', await rawNode(() => undefined))
    expect((await send(one.port, 'POST', '/n/node_silent/payinvoice', { body: 'a=b' })).status).toBe(502)
  })

  test('C28: a client that stops sending, or reading, is let go, and so is the node', async () => {
    const seen: IncomingMessage[] = []
    one.nodes.set('node_any', await eagerNode((request) => void seen.push(request.resume().on('error', () => undefined))))
    const answer = await raw(one.port, 'POST /n/node_any/ HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab')
    expect([statusOf(answer), answer.includes('"bad_request"')]).toEqual([400, true])
    await eventually(() => seen[0]?.destroyed, 'the node to lose the request')

    let response: ServerResponse | undefined
    const big = await eagerNode((_request, answering) => {
      response = answering
      answering.on('error', () => undefined).write(Buffer.alloc(15 * MIB))
    })
    one.nodes.set('node_big', big)
    const deaf = connect(one.port, '127.0.0.1').pause()
    sockets.push(deaf)
    deaf.write('GET /n/node_big/ HTTP/1.1\r\nHost: x\r\n\r\n')
    await eventually(() => response?.destroyed, 'the node to be let go')
  })
})

describe('C28: sizes', () => {
  test('C28, C49: 64 KiB pass; one byte more is refused before the node hears of it', async () => {
    const body = Buffer.alloc(MOST, 'a')
    expect((await send(main.port, 'POST', '/n/node_a/x', { body })).status).toBe(200)
    expect(node.seen[0]?.body.length).toBe(MOST)
    const head = `POST /n/node_a/x HTTP/1.1\r\nHost: x\r\nContent-Length: ${MOST + 1}\r\n\r\n`
    const answer = await raw(main.port, head)
    expect([statusOf(answer), answer.includes('"payload_too_large"'), node.seen.length]).toEqual([413, true, 1])
  })

  test('C28: a body in chunks is cut off at the same size, and the node never sees its end', async () => {
    let received = 0
    const aborted = new Promise<void>((resolve) => {
      void eagerNode((request) => {
        request.on('data', (chunk: Buffer) => {
          received += chunk.length
        })
        request.on('error', () => resolve())
      }).then((address) => main.nodes.set('node_eager', address))
    })
    await eventually(() => main.nodes.has('node_eager'), 'the node')
    const chunk = `10000\r\n${'a'.repeat(0x10000)}\r\n`
    const answer = await raw(
      main.port,
      `POST /n/node_eager/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${chunk.repeat(18)}`,
    )
    expect([0, 413]).toContain(statusOf(answer))
    await aborted
    expect(received).toBeLessThanOrEqual(MOST)
  })

  test('C28: the same when the node has answered already', async () => {
    main.nodes.set(
      'node_early',
      await eagerNode((request, response) => {
        request.resume()
        response.write('early')
      }),
    )
    const outgoing = await opened(main.port, '/n/node_early/', { method: 'POST' })
    outgoing.write('x')
    const [response] = await once(outgoing, 'response')
    outgoing.write(Buffer.alloc(MOST))
    await expect(textOf(response)).rejects.toThrow('aborted')
  })

  test('C28: an answer of 16 MiB passes; a longer one is a 502 when it says so, and cut off when it does not', async () => {
    const big = await fakeNode((request, response) => {
      const size = Number(request.url?.split('/')[2])
      if (request.url?.startsWith('/said')) response.setHeader('content-length', size)
      else response.setHeader('transfer-encoding', 'chunked')
      response.end(Buffer.alloc(size))
    })
    main.nodes.set('node_big', big)
    const most = 16 * MIB
    for (const path of [`said/${most}`, `unsaid/${most}`])
      expect((await send(main.port, 'GET', `/n/node_big/${path}`)).text.length).toBe(most)
    const refused = await send(main.port, 'GET', `/n/node_big/said/${most + 1}`)
    expect([refused.status, refused.json()]).toEqual([502, DOWN])
    await expect(send(main.port, 'GET', `/n/node_big/unsaid/${most + 1}`)).rejects.toThrow('aborted')
    expect((await send(main.port, 'HEAD', `/n/node_big/said/${most + 1}`)).status).toBe(200)
  })

  test('C28: a node has so many requests at a time; more are told to come back, and other nodes do not notice', async () => {
    const one = await withLimits({ concurrent: 3 })
    const held: ServerResponse[] = []
    const hung = await fakeNode((_request, response) => void held.push(response))
    one.nodes.set('node_hung', hung)
    one.nodes.set('node_a', node)
    const waiting = Array.from({ length: 3 }, () => send(one.port, 'GET', '/n/node_hung/'))
    await eventually(() => held.length === 3, 'three requests')
    const refused = await send(one.port, 'GET', '/n/node_hung/')
    expect([refused.status, refused.json().error.code, refused.headers['retry-after']]).toEqual([503, 'service_unavailable', '1'])
    expect((await send(one.port, 'GET', '/n/node_a/')).status).toBe(200)
    for (const response of held) response.end('at last')
    for (const answer of await Promise.all(waiting)) expect(answer.text).toBe('at last')
    const again = send(one.port, 'GET', '/n/node_hung/')
    await eventually(() => held.length === 4, 'the next request')
    held[3]?.end('again')
    expect((await again).text).toBe('again')
    expect(hung.connections()).toBeLessThanOrEqual(3)
  })
})

describe('C28: nodes that are not there, or not well', () => {
  test('C28: no such node', async () => {
    for (const path of [
      '/n/node_b',
      '/n/node_b/getinfo',
      '/n/%6eode_a/',
      '/n/node_a%2f/',
      '/n/node_a;x/',
      '/n/../x',
      '/n//x',
      '/%6e/node_a/',
    ]) {
      const answer = await send(main.port, 'GET', path)
      expect([path, answer.status, answer.json()]).toEqual([
        path,
        404,
        { error: { code: 'node_not_found', message: 'There is no such node.' } },
      ])
    }
    expect(node.seen).toEqual([])
  })

  const GARBAGE: [string, (socket: Socket) => void][] = [
    ['resets', (socket) => socket.resetAndDestroy()],
    ['closes', (socket) => socket.end()],
    ['is not HTTP', (socket) => socket.end('SSH-2.0-OpenSSH_9.6 SECRETBYTES\r\n')],
    ['breaks off its headers', (socket) => socket.end('HTTP/1.1 200 OK\r\nX: ')],
    ['has endless headers', (socket) => socket.write(`HTTP/1.1 200 OK\r\nX: ${'a'.repeat(40_000)}\r\n\r\n`)],
    ['has two lengths', (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab')],
    [
      'has a length and chunks',
      (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'),
    ],
    ['has a control character', (socket) => socket.end('HTTP/1.1 200 OK\r\nX: a\x01b\r\n\r\n')],
    ['has status 000', (socket) => socket.end('HTTP/1.1 000 Zero\r\nContent-Length: 0\r\n\r\n')],
    ['has status 999', (socket) => socket.end('HTTP/1.1 999 Many\r\nContent-Length: 0\r\n\r\n')],
    ['has status 99999', (socket) => socket.end('HTTP/1.1 99999 Many\r\nContent-Length: 0\r\n\r\n')],
    ['switches protocols', (socket) => socket.end('HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n')],
    ['only ever continues', (socket) => socket.end('HTTP/1.1 100 Continue\r\n\r\n'.repeat(1000))],
  ]
  test.each(GARBAGE)('C28: a node that %s: 502 in our shape, to requests and websockets', async (_name, reply) => {
    main.nodes.set('node_bad', await rawNode(reply))
    const answer = await send(main.port, 'POST', '/n/node_bad/x?q=1', { body: 'body' })
    expect([answer.status, answer.json()]).toEqual([502, DOWN])
    if (_name === 'switches protocols') return
    const socket = new WebSocket(`ws://127.0.0.1:${main.port}/n/node_bad/x`)
    const [, response] = await once(socket, 'unexpected-response')
    expect([response.statusCode, JSON.parse(await textOf(response))]).toEqual([502, DOWN])
    expect(main.log()).not.toContain('SECRETBYTES')
  })

  test('C28: a node that is down, or refuses', async () => {
    const gone = await listenOn(createTcpServer())
    servers.at(-1)?.close()
    main.nodes.set('node_gone', gone)
    for (const id of ['node_down', 'node_gone']) {
      const answer = await send(main.port, 'GET', `/n/${id}/getinfo`)
      expect([answer.status, answer.json(), answer.headers['content-type']]).toEqual([
        502,
        DOWN,
        'application/json; charset=utf-8',
      ])
      expect(answer.headers['x-request-id']).toMatch(/^ours-/)
    }
  })

  test('C28: after a failure in the middle of a body the connection serves its next request', async () => {
    main.nodes.set('node_bad', await rawNode((socket) => socket.resetAndDestroy()))
    const socket = connect(main.port, '127.0.0.1')
    sockets.push(socket)
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk
    })
    socket.write(`POST /n/node_bad/ HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n${'a'.repeat(20_000)}`)
    await eventually(() => text.includes('502 Bad Gateway'), 'the 502')
    socket.write(`${'a'.repeat(40_000)}GET /n/node_a/next HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    await once(socket, 'close')
    expect(node.seen.map(({ url }) => url)).toEqual(['/next'])
  })

  test('C28: a node that dies within its answer: the client’s connection is cut, never ended as if all were there', async () => {
    for (const head of ['Content-Length: 100', 'Transfer-Encoding: chunked']) {
      main.nodes.set('node_dying', await rawNode((socket) => socket.end(`HTTP/1.1 200 OK\r\n${head}\r\n\r\n4\r\nhalf\r\n`)))
      await expect(send(main.port, 'GET', '/n/node_dying/')).rejects.toThrow('aborted')
    }
  })

  test('C28: a client that leaves takes its request with it: while it sends, while it waits, while it reads', async () => {
    const gone: Promise<unknown>[] = []
    const arrived: IncomingMessage[] = []
    const patient = await eagerNode((request, response) => {
      arrived.push(request)
      gone.push(new Promise((resolve) => request.socket.once('close', resolve)))
      request.on('error', () => undefined).resume()
      if (request.url === '/reading') response.write('some')
    })
    main.nodes.set('node_patient', patient)
    for (const [path, body] of [
      ['sending', 'Content-Length: 9\r\n\r\nhalf'],
      ['waiting', '\r\n'],
      ['reading', '\r\n'],
    ] as const) {
      const socket = connect(main.port, '127.0.0.1')
      socket.write(`POST /n/node_patient/${path} HTTP/1.1\r\nHost: x\r\n${body}`)
      if (path === 'reading') await once(socket, 'data')
      await eventually(() => arrived.at(-1)?.url === `/${path}`, 'the request to arrive')
      socket.destroy()
    }
    await Promise.all(gone)
    expect(gone).toHaveLength(3)
  })
})

test('C28: the request of a client that left while its node was looked up is not made', async () => {
  let find: (address: NodeAddress) => void = () => undefined
  const found = new Promise<NodeAddress>((resolve) => {
    find = resolve
  })
  const asked = new Promise<void>((resolve) => {
    main.nodes.set('node_later', () => {
      resolve()
      return found
    })
  })
  const accepted = once(main.app.server, 'connection')
  const socket = connect(main.port, '127.0.0.1')
  socket.write('GET /n/node_later/left HTTP/1.1\r\nHost: x\r\n\r\n')
  const [[atServer]] = await Promise.all([accepted, asked])
  socket.destroy()
  await once(atServer, 'close')
  const late = await fakeNode()
  find(late)
  expect((await send(main.port, 'GET', '/n/node_later/stayed')).status).toBe(200)
  expect([late.seen.map(({ url }) => url), late.connections()]).toEqual([['/stayed'], 1])
})

test('C28: requests that wait behind another of their connection end with it, and leave their places', async () => {
  const one = await withLimits({ concurrent: 4 })
  const urls: (string | undefined)[] = []
  const closed: Promise<unknown>[] = []
  const slow = await eagerNode((request, response) => {
    urls.push(request.url)
    closed.push(once(request.socket, 'close'))
    if (request.url !== '/1') response.write('x'.repeat(1000))
  })
  one.nodes.set('node_slow', slow)
  const socket = connect(one.port, '127.0.0.1')
  socket.write([1, 2, 3, 4].map((path) => `GET /n/node_slow/${path} HTTP/1.1\r\nHost: x\r\n\r\n`).join(''))
  await eventually(() => urls.length === 4, 'all four')
  expect((await send(one.port, 'GET', '/n/node_slow/')).status).toBe(503)
  socket.destroy()
  await Promise.all(closed)
  const outgoing = await opened(one.port, '/n/node_slow/')
  outgoing.end()
  expect((await once(outgoing, 'response'))[0].statusCode).toBe(200)
})

test('C28: a client that asks before it sends is told to go on, and the node is not asked again', async () => {
  const outgoing = await opened(main.port, '/n/node_a/x', {
    method: 'POST',
    headers: { expect: '100-continue', 'content-length': '2' },
  })
  outgoing.flushHeaders()
  await once(outgoing, 'continue')
  outgoing.end('ok')
  expect((await once(outgoing, 'response'))[0].statusCode).toBe(200)
  expect(node.seen.map(({ body, headers }) => [body.toString(), new Map(headers).has('expect')])).toEqual([['ok', false]])
})

describe('C28: node hosts', () => {
  test.each([
    ['abc.nodes.test', '/x?y', '/n/node_abc/x?y'],
    ['ABC.Nodes.TEST:8080', '/', '/n/node_abc/'],
    ['abc.nodes.test.', '/x', '/n/node_abc/x'],
    ['abc.nodes.test..:1', '/x', '/n/node_abc/x'],
    ['abc.nodes.test', '//v1', '/n/node_abc//v1'],
    ['abc.nodes.test', '/n/node_b/x', '/n/node_abc/n/node_b/x'],
    ['abc.nodes.test', '/../../v1', '/n/node_abc/../../v1'],
    ['abc.nodes.test', '*', '/n/node_abc*'],
    ['abc.nodes.test', 'http://x/v1', '/n/node_abchttp://x/v1'],
    ['a.b.nodes.test', '/v1', '/n/./v1'],
    ['user@abc.nodes.test', '/v1', '/n/./v1'],
    ['a/../v1?.nodes.test', '/v1', '/n/./v1'],
    ['nodes.test', '/v1', '/v1'],
    ['abcnodes.test', '/v1', '/v1'],
    ['abc.nodes.test.example', '/v1', '/v1'],
    [undefined, '/v1', '/v1'],
  ])('C28: %s %s becomes %s', (host, url, expected) => {
    expect(rewriteNodeHost(DOMAIN)({ url, headers: host === undefined ? {} : { host } })).toBe(expected)
    expect(rewriteNodeHost(undefined)({ url, headers: host === undefined ? {} : { host } })).toBe(url)
  })

  test.each([
    '/v1/thing',
    '//v1/thing',
    '/../v1/thing',
    '/%2e%2e/%2e%2e/v1/thing',
    '/..%2f..%2fv1/thing',
    '/operator/v1/thing',
    '/n/node_b/thing',
    '/../node_b/thing',
    '//n/node_b/thing',
    '/',
    '?x',
    '/;/../v1/thing',
    '/#/v1/thing',
    'http://service.test/v1/thing',
    'http://service.test/n/node_b/thing',
    'http://a.nodes.test/v1/thing',
    '*',
    '/%zz',
  ])('C28: on a node’s host the service and other nodes are out of reach: %s', async (target) => {
    const other = await fakeNode()
    main.nodes.set('node_b', other)
    const ask = (path: string, more = ''): string => `${path} HTTP/1.1\r\nHost: a.${DOMAIN}\r\n${more}\r\n`
    const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'
    for (const method of ['GET', 'POST'])
      for (const more of ['Connection: close\r\n', ...(method === 'GET' ? [upgrade] : [])]) {
        const answer = await raw(main.port, `${method} ${ask(target, more)}`)
        expect(answer).not.toContain('OF THE SERVICE')
        expect([200, 400, 404]).toContain(statusOf(answer))
        if (statusOf(answer) === 200) expect(answer).toContain('of the node')
      }
    expect(other.connections()).toBe(0)
    for (const { url } of node.seen) expect(`/n/node_a${url}`).toBe(`/n/node_a${target.startsWith('?') ? '/' : ''}${target}`)
  })

  test('C28: any other host is the service', async () => {
    for (const host of ['service.test', DOMAIN])
      expect((await send(main.port, 'GET', '/v1/thing', { headers: { host } })).text).toBe('OF THE SERVICE')
  })
})

describe('C51: with a domain for nodes', () => {
  test('C51: a node answers under its own name only; /n/ on another host is 404, however it is written', async () => {
    const one = await withLimits({}, { isByName: true })
    one.nodes.set('node_a', node)
    expect((await send(one.port, 'GET', '/getinfo', { headers: { host: `a.${DOMAIN}:8080` } })).status).toBe(200)
    for (const host of ['127.0.0.1', DOMAIN, 'service.test'])
      for (const path of ['/n/node_a', '/n/node_a/getinfo', '/%6e/node_a/getinfo', '/n/node_none/'])
        for (const answer of await bothWays(one, path, `Host: ${host}\r\n`)) {
          expect(statusOf(answer)).toBe(404)
          expect(answer).toContain('"not_found"')
        }
    expect(node.seen).toHaveLength(1)
  })

  test('security 16: a domain with a port is matched by its name, whatever the port of the request', async () => {
    const one = await withLimits({}, { domain: 'nodes.test:8443', isByName: true })
    one.nodes.set('node_a', node)
    for (const host of ['a.nodes.test:8443', 'a.nodes.test', 'A.nodes.test.:1'])
      expect((await send(one.port, 'GET', '/getinfo', { headers: { host } })).status).toBe(200)
    expect(node.seen.map(({ url }) => url)).toEqual(['/getinfo', '/getinfo', '/getinfo'])
  })
})

describe('C28: smuggling', () => {
  const SECOND = 'GET /n/node_a/smuggled HTTP/1.1\r\nHost: x\r\n\r\n'
  const body = `0\r\n\r\n${SECOND}`
  const CASES: [string, string][] = [
    [
      'length and chunks',
      `POST /n/node_a/x HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\nTransfer-Encoding: chunked\r\n\r\n${body}`,
    ],
    [
      'chunks and length',
      `POST /n/node_a/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n${body}`,
    ],
    [
      'two lengths',
      `POST /n/node_a/x HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: ${SECOND.length}\r\n\r\n${SECOND}`,
    ],
    ['a list of lengths', `POST /n/node_a/x HTTP/1.1\r\nHost: x\r\nContent-Length: 0, ${SECOND.length}\r\n\r\n${SECOND}`],
    ['a length with a sign', `POST /n/node_a/x HTTP/1.1\r\nHost: x\r\nContent-Length: +0\r\n\r\n${SECOND}`],
    [
      'a folded coding',
      `POST /n/node_a/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\r\n chunked\r\nContent-Length: 4\r\n\r\n${body}`,
    ],
    ['a space before the colon', `POST /n/node_a/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n${body}`],
    ['another coding', `POST /n/node_a/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n${body}`],
    ['gzip, then chunks', `POST /n/node_a/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n${body}`],
    ['chunks, then identity', `POST /n/node_a/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, identity\r\n\r\n${body}`],
    [
      'two codings',
      `POST /n/node_a/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n${body}`,
    ],
    [
      'a broken chunk size',
      `POST /n/node_a/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n`,
    ],
    ['a line feed in the path', `GET /n/node_a/x\nX: y HTTP/1.1\r\nHost: x\r\n\r\n`],
    ['CRLF in the path', `GET /n/node_a/x\r\nX: y HTTP/1.1\r\nHost: x\r\n\r\n`],
    ['a bare carriage return', `GET /n/node_a/x HTTP/1.1\r\nHost: x\r\nA: b\rTransfer-Encoding: chunked\r\n\r\n`],
    ['a null byte', `GET /n/node_a/x HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n`],
    ['an absolute URI', 'GET http://evil.example/n/node_a/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'],
    ['an absolute URI of the proxy', 'GET http://127.0.0.1/n/node_a/x HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n'],
    ['an authority', 'CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['a user in the path', 'GET /n/node_a@evil.example/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'],
    ['no version', 'GET /n/node_a/x\r\n\r\n'],
    ['another version', 'GET /n/node_a/x HTTP/2.0\r\nHost: x\r\n\r\n'],
    [
      'chunks in HTTP/1.0, which has none (security 22)',
      `POST /n/node_a/x HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`,
    ],
  ]
  test.each(CASES)('C28: %s: refused, or the connection closed; the node sees one request at most', async (_name, bytes) => {
    const status = statusOf(await raw(main.port, bytes))
    expect(status === 0 || (status >= 400 && status < 500)).toBe(true)
    expect(node.seen.length).toBeLessThanOrEqual(1)
    expect(node.seen.filter(({ url, body: got }) => url.includes('smuggled') || got.length > 0)).toEqual([])
  })

  test('C28: a folded header, and bytes in hex, reach the node as one request with one meaning', async () => {
    for (const path of ['/missing/%0d%0aX:%20y', '/missing/..;/%2e%2e//']) {
      node.seen.length = 0
      const answer = await raw(main.port, `GET /n/node_a${path} HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\nConnection: close\r\n\r\n`)
      const status = statusOf(answer)
      expect(status === 0 || (status >= 400 && status < 500)).toBe(true)
      for (const { url, headers } of node.seen) {
        expect(url).toBe(path)
        expect(headers.map(([name]) => name).filter((name) => name !== 'connection')).toEqual(['host', 'a'])
      }
      expect(node.seen.length).toBeLessThanOrEqual(1)
    }
  })
})

describe('C28: websockets and other upgrades', () => {
  const KEY = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n'
  const HANDSHAKE = `Host: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${KEY}`

  /** A node whose websockets send back what they get. */
  async function echoing(): Promise<NodeAddress & { handshakes: [string, string][][]; server: WebSocketServer }> {
    const http = createServer((_request, response) => response.writeHead(404).end('no'))
    const server = new WebSocketServer({ server: http, path: '/echo' })
    const handshakes: [string, string][][] = []
    server.on('headers', (headers) => headers.push('Set-Cookie: a=b', 'X-Request-Id: theirs'))
    server.on('connection', (socket, request) => {
      handshakes.push(pairsOf(request.rawHeaders))
      socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }))
    })
    return { ...(await listenOn(http)), handshakes, server }
  }

  test('C28: bytes pass both ways, and the handshake has the same hygiene', async () => {
    const echo = await echoing()
    main.nodes.set('node_echo', echo)
    const headers = { cookie: 'a=b', 'x-forwarded-for': '1.2.3.4', authorization: basic(LIMITED), 'x-kept': '1' }
    const socket = new WebSocket(`ws://127.0.0.1:${main.port}/n/node_echo/echo?a=b`, { headers })
    sockets.push(socket)
    const [[response]] = await Promise.all([once(socket, 'upgrade'), once(socket, 'open')])
    expect(response.headers['set-cookie']).toBeUndefined()
    expect(response.headers['x-request-id']).toMatch(/^ours-/)
    expect(response.headers['x-content-type-options']).toBe('nosniff')
    const data = Buffer.alloc(4 * MIB, 'x')
    socket.send(data)
    expect(((await once(socket, 'message'))[0] as Buffer).equals(data)).toBe(true)
    const got = new Map(echo.handshakes[0])
    expect([got.get('cookie'), got.get('x-forwarded-for')]).toEqual([undefined, undefined])
    expect([got.get('authorization'), got.get('x-kept'), got.get('host')]).toEqual([
      basic(LIMITED),
      '1',
      `127.0.0.1:${echo.port}`,
    ])
    socket.close(4001, 'bye')
    const [code] = await once([...echo.server.clients][0] as WebSocket, 'close')
    expect(code).toBe(4001)
  })

  test('C28: the end of either side is the end of the other', async () => {
    const echo = await echoing()
    main.nodes.set('node_echo', echo)
    const open = async (): Promise<WebSocket> => {
      const socket = new WebSocket(`ws://127.0.0.1:${main.port}/n/node_echo/echo`)
      await once(socket, 'open')
      return socket
    }
    const first = await open()
    const [atNode] = [...echo.server.clients]
    first.terminate()
    await once(atNode as WebSocket, 'close')
    const second = await open()
    for (const client of echo.server.clients) client.terminate()
    await once(second, 'close')
    // The same when the connection does not end but breaks.
    const reset = (socket: any): void => socket._socket.resetAndDestroy()
    const third = await open()
    const ended = once([...echo.server.clients][0] as WebSocket, 'close')
    reset(third.on('error', () => undefined))
    await ended
    const fourth = await open()
    for (const client of echo.server.clients) reset(client.on('error', () => undefined))
    await once(fourth, 'close')
  })

  test('C28: bytes that came together with either side of the handshake are not lost', async () => {
    const got: Promise<unknown[]>[] = []
    const hasty = await rawNode((socket) => {
      got.push(once(socket, 'data'))
      socket.write('HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: WebSocket\r\n\r\nfrom the node')
    })
    main.nodes.set('node_hasty', hasty)
    const socket = connect(main.port, '127.0.0.1')
    sockets.push(socket)
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk
    })
    socket.write(`GET /n/node_hasty/x HTTP/1.1\r\n${HANDSHAKE}\r\nfrom the client`)
    await eventually(() => text.endsWith('\r\n\r\nfrom the node'), 'the first bytes of the node')
    expect(String((await got[0])?.[0])).toBe('from the client')
  })

  test('C28: an idle websocket is closed, a busy one is not', async () => {
    const one = await withLimits({ websocketIdleMs: 400 })
    one.nodes.set('node_echo', await echoing())
    const socket = new WebSocket(`ws://127.0.0.1:${one.port}/n/node_echo/echo`)
    await once(socket, 'open')
    const start = performance.now()
    for (let index = 0; index < 8; index++) {
      socket.send('x')
      await once(socket, 'message')
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    await once(socket, 'close')
    expect(performance.now() - start).toBeGreaterThan(1_050)
  })

  test('C28: what follows a refused handshake never becomes a request', async () => {
    const answer = await raw(
      main.port,
      `GET /n/node_a/missing HTTP/1.1\r\n${HANDSHAKE}\r\nGET /n/node_a/smuggled HTTP/1.1\r\nHost: x\r\n\r\n`,
    )
    expect([statusOf(answer), answer.match(/HTTP\/1\.1 /g)?.length]).toEqual([404, 1])
    expect(node.seen.map(({ url }) => url)).toEqual(['/missing'])
  })

  test('C28: websockets of a node are limited, apart from its requests', async () => {
    const one = await withLimits({ concurrent: 1 })
    one.nodes.set('node_echo', await echoing())
    const url = `ws://127.0.0.1:${one.port}/n/node_echo/echo`
    const first = new WebSocket(url)
    await once(first, 'open')
    const [, refused] = await once(new WebSocket(url), 'unexpected-response')
    expect([refused.statusCode, refused.headers['retry-after']]).toEqual([503, '1'])
    expect((await send(one.port, 'GET', '/n/node_echo/')).status).toBe(404)
    first.terminate()
    await eventually(async () => {
      const next = new WebSocket(url)
      next.on('error', () => undefined)
      const isOpen = await Promise.race([once(next, 'open').then(() => true), once(next, 'close').then(() => false)])
      next.terminate()
      return isOpen
    }, 'the place to be free again')
  })

  test('C28: a wish for HTTP/2 is ignored, here and at the service, also with a body and for the connection’s next request', async () => {
    const wish = 'Host: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n'
    const post = (path: string): string =>
      `POST ${path} HTTP/1.1\r\n${wish}Content-Type: application/json\r\nContent-Length: 7\r\n\r\n{"a":1}`
    const last = 'GET /n/node_a/last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
    const answer = await raw(
      main.port,
      `${post('/n/node_a/first')}${post('/v1/echo')}`.slice(0, post('/n/node_a/first').length) + last,
    )
    expect(answer.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(2)
    expect(node.seen.map(({ url, body }) => [url, body.toString()])).toEqual([
      ['/first', '{"a":1}'],
      ['/last', ''],
    ])
    expect(node.seen[0]?.headers.map(([name]) => name)).not.toContain('http2-settings')
    const own = await raw(main.port, `${post('/v1/echo')}GET /v1/thing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    expect(own).toContain('{"a":1}')
    expect(own).toContain('OF THE SERVICE')
  })

  test.each([
    ['with a body', `GET /n/node_a/missing HTTP/1.1\r\n${HANDSHAKE}Content-Length: 5\r\n\r\nhello`],
    ['with chunks', `GET /n/node_a/missing HTTP/1.1\r\n${HANDSHAKE}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`],
    ['by POST', `POST /n/node_a/missing HTTP/1.1\r\n${HANDSHAKE}Content-Length: 5\r\n\r\nhello`],
  ])('C28: a handshake %s is an ordinary request', async (_name, bytes) => {
    const socket = connect(main.port, '127.0.0.1')
    sockets.push(socket)
    socket.write(bytes)
    expect(statusOf(String((await once(socket, 'data'))[0]))).toBe(404)
    expect(node.seen.map(({ body, headers }) => [body.toString(), new Map(headers).has('upgrade')])).toEqual([['hello', false]])
  })

  test('C28: a handshake behind an unanswered request ends the connection and nothing else', async () => {
    main.nodes.set('node_silent', await rawNode(() => undefined))
    for (const kind of ['websocket', 'h2c'])
      expect(
        await raw(
          main.port,
          `GET /n/node_silent/ HTTP/1.1\r\nHost: x\r\n\r\nGET /n/node_a/x HTTP/1.1\r\n${HANDSHAKE.replace('websocket', kind)}\r\n`,
        ),
      ).toBe('')
    expect((await send(main.port, 'GET', '/n/node_a/')).status).toBe(200)
  })

  test('C28: a client that resets during the handshake harms nobody', async () => {
    const held: Socket[] = []
    main.nodes.set('node_silent', await rawNode((socket) => void held.push(socket)))
    const socket = connect(main.port, '127.0.0.1')
    socket.write(`GET /n/node_silent/x HTTP/1.1\r\n${HANDSHAKE}\r\n`)
    await eventually(() => held.length === 1, 'the handshake')
    const closed = once(held[0] as Socket, 'close')
    socket.resetAndDestroy()
    await closed
    expect((await send(main.port, 'GET', '/n/node_a/')).status).toBe(200)
  })

  test('C28: closing ends the websockets, and the app need not wait for them', async () => {
    for (const how of ['close', 'app'] as const) {
      const one = await withLimits({})
      one.nodes.set('node_echo', await echoing())
      const socket = new WebSocket(`ws://127.0.0.1:${one.port}/n/node_echo/echo`)
      await once(socket, 'open')
      const closed = once(socket, 'close')
      if (how === 'close') one.close()
      else await one.app.close()
      await closed
    }
  })
})

test('C28: neither passwords nor queries nor bodies are in the log', async () => {
  const headers = { authorization: basic('PASSWORDCANARY'), 'content-type': 'text/plain', cookie: 'COOKIECANARY=1' }
  for (const id of ['node_a', 'node_down', 'node_none', 'node_bad'])
    await send(main.port, 'POST', `/n/${id}/x?q=QUERYCANARY`, { headers, body: 'BODYCANARY' })
  await eventually(() => main.log().includes('/n/node_bad/x'), 'the log')
  for (const secret of ['PASSWORDCANARY', basic('PASSWORDCANARY').slice(6), 'COOKIECANARY', 'QUERYCANARY', 'BODYCANARY'])
    expect(main.log()).not.toContain(secret)
})
