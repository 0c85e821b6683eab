import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { WebSocketServer } from 'ws'
import { eventually } from '../../../server/test/support/server.ts'
import { paywall } from '../../src/paywall/adapters/express.ts'
import { Market } from '../paywall-harness.ts'
import { Backend, type OpenProxy, openProxy, Raw } from './harness.ts'

/** Requests that are sent before the response to the previous one has ended. */

let market: Market
let backend: Backend
let proxy: OpenProxy
const thrown: unknown[] = []
/** Removed during the tests: Vitest's own listener would end the run without saying which test failed. */
const others = process.listeners('uncaughtException')
const note = (error: unknown): void => void thrown.push(error)

beforeAll(async () => {
  market = await Market.open()
  backend = await Backend.open()
  const { client, nodeId, patienceMs } = market.terms
  const onEvent = (event: (typeof market.events)[number]): void => void market.events.push(event)
  const routes = [
    { match: '/free/**', free: true as const },
    { match: '/paid', amountSat: 10 },
  ]
  const limits = { openChallengesPerAddress: 0, maxBodyBytes: 1_000 }
  proxy = await openProxy({ upstream: backend.url, node: nodeId, limits, routes }, { client, patienceMs, onEvent })
})
beforeEach(async () => {
  await market.renew()
  backend.handler = (request, response) => {
    request.on('error', () => undefined).resume()
    setTimeout(() => response.end('done'), 20)
  }
  process.removeAllListeners('uncaughtException').on('uncaughtException', note)
})
afterEach(() => {
  process.removeListener('uncaughtException', note)
  for (const listener of others) process.on('uncaughtException', listener)
})

const HOST = 'Host: shop'
const upgradeTo = (name: string): string[] => [HOST, 'Connection: Upgrade', `Upgrade: ${name}`]
const request = (line: string, headers: string[] = [HOST], body = ''): string =>
  [`${line} HTTP/1.1`, ...headers, '', body].join('\r\n')

const FIRST: [string, string][] = [
  ['free', request('GET /free/a')],
  ['unpaid', request('GET /paid')],
  ['unknown', request('GET /none')],
  ['two', request('GET /free/a') + request('GET /free/b')],
  ['HEAD', request('HEAD /free/a')],
  ['POST', request('POST /free/a', [HOST, 'Content-Length: 1'], 'a')],
  ['an offer of h2c', request('GET /free/a', upgradeTo('h2c'))],
  ['a WebSocket', request('GET /free/a', upgradeTo('websocket'))],
]
const SECOND: [string, string][] = [
  ['an offer of h2c', request('GET /none', upgradeTo('h2c'))],
  ['a free offer of h2c', request('GET /free/a', upgradeTo('h2c'))],
  ['a WebSocket on a free route', request('GET /free/a', [...upgradeTo('websocket'), 'Sec-WebSocket-Key: x'])],
  ['a WebSocket on a paid route', request('GET /paid', upgradeTo('websocket'))],
  ['a WebSocket with a strange path', request('GET //a', upgradeTo('websocket'))],
  ['an upgrade with a body', request('POST /free/a', [...upgradeTo('x'), 'Content-Length: 1'], 'a')],
  ['CONNECT', request('CONNECT shop:443')],
  ['TRACE', request('TRACE /free/a')],
  ['an expectation', request('POST /free/a', [HOST, 'Expect: 100-continue', 'Content-Length: 1'])],
  ['a strange expectation', request('POST /free/a', [HOST, 'Expect: a miracle', 'Content-Length: 1'], 'a')],
  ['garbage', '\0\0\r\n\r\n'],
  ['a malformed chunk', request('POST /free/a', [HOST, 'Transfer-Encoding: chunked'], 'zz\r\n')],
  ['two lengths', request('POST /free/a', [HOST, 'Content-Length: 1', 'Content-Length: 2'], 'a')],
  ['an absolute URL', request('GET http://shop:99999/ ')],
]

test.each(FIRST)('selling 6: no request that follows another one ends the process: after %s', async (_name, first) => {
  for (const [, second] of SECOND)
    for (const isOnePacket of [true, false]) {
      const raw = new Raw(proxy.port)
      raw.socket.setNoDelay(true)
      await once(raw.socket, 'connect')
      raw.write(first + (isOnePacket ? second : ''))
      if (!isOnePacket) raw.socket.end(second)
      else if (second.startsWith('GET')) raw.socket.end()
      await Promise.race([raw.closed, once(raw.socket, 'data')])
      raw.socket.destroy()
    }
  expect(thrown.splice(0).map(String)).toEqual([])
  expect(await (await fetch(proxy.url('/free/after'))).text()).toBe('done')
})

/** The outcome for a customer who gets the first half of what they paid for, and then breaks the connection by another request. */
async function outcomeAfter(port: number, next: string): Promise<string | undefined> {
  const unpaid = await fetch(`http://127.0.0.1:${port}/paid`)
  const credential = await market.credentialFor(unpaid.headers.get('www-authenticate') ?? '')
  const raw = new Raw(port).write(request('GET /paid', [HOST, `Authorization: ${credential}`]))
  await raw.shows(/half/)
  raw.write(next)
  await eventually(async () => raw.socket.destroyed || thrown.length > 0, 'the connection to be closed')
  if (thrown.length > 0) return String(thrown)
  const outcome = (): string | undefined => market.events.map(({ type }) => type).find((type) => type.endsWith('delivered'))
  await expect.poll(outcome).toBeDefined()
  return outcome()
}

const BREAKING: [string, string][] = [
  ['CONNECT', request('CONNECT shop:443')],
  ['an upgrade', request('GET /none', upgradeTo('h2c'))],
  ['garbage', '\0\0\r\n\r\n'],
]

test.each(BREAKING)('C76: a customer who breaks their own response off by %s has used their payment up', async (_name, next) => {
  backend.handler = (_request, response) => void response.write('half')
  expect(await outcomeAfter(proxy.port, next)).toBe('delivered')
  expect(thrown.splice(0).map(String)).toEqual([])
})

const [CONNECT, UPGRADE, GARBAGE] = [request('CONNECT shop:443'), request('GET /none', upgradeTo('websocket')), '\0\0\r\n\r\n']
const SHOPS: [string, string, (server: Server) => unknown][] = [
  ['CONNECT', CONNECT, () => undefined],
  ['CONNECT, which the shop refuses', CONNECT, (server) => server.on('connect', (_request, socket) => socket.destroy())],
  ['an upgrade, which the shop refuses', UPGRADE, (server) => server.on('upgrade', (_request, socket) => socket.destroy())],
  ['an upgrade, which ws refuses', UPGRADE, (server) => new WebSocketServer({ server, path: '/ws' })],
  ['garbage', GARBAGE, () => undefined],
  ['garbage, which the shop refuses', GARBAGE, (server) => server.on('clientError', (_error, socket) => socket.destroy())],
]

test.each(SHOPS)(
  'selling 3: on plain node:http, a customer who breaks their own response off by %s has used their payment up',
  async (_name, next, listen) => {
    const charge = paywall(market.terms)
    const server = createServer((incoming, response) => {
      void charge(incoming, response, () => void response.write('half'))
    })
    listen(server)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    expect(await outcomeAfter((server.address() as AddressInfo).port, next)).toBe('delivered')
    server.close()
    server.closeAllConnections()
  },
)

test('selling 3: on plain node:http, a customer who sends CONNECT after another one has used their payment up too', async () => {
  const charge = paywall(market.terms)
  const server = createServer((incoming, response) => {
    void charge(incoming, response, () => void response.write('half'))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const customers: Raw[] = []
  for (let at = 0; at < 2; at++) {
    const credential = await market.buy(`http://127.0.0.1:${port}/paid`)
    const raw = new Raw(port).write(request('GET /paid', [HOST, `Authorization: ${credential}`]))
    await raw.shows(/half/)
    customers.push(raw)
  }
  for (const raw of customers) await raw.write(CONNECT).closed
  const outcomes = (): string[] => market.events.map(({ type }) => type).filter((type) => type.endsWith('delivered'))
  await expect.poll(outcomes).toEqual(['delivered', 'delivered'])
  server.close()
  server.closeAllConnections()
})

test('selling 3: on plain node:http, Node answers an upgrade as a request again when its listener is removed', async () => {
  const charge = paywall(market.terms)
  const server = createServer((incoming, response) => void charge(incoming, response, () => void response.end('whole')))
  const listener = (_request: unknown, socket: Duplex): void => void socket.destroy()
  server.on('upgrade', listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const credential = await market.buy(`http://127.0.0.1:${port}/paid`)
  const paid = (headers: string[]): string => request('GET /paid', [...headers, `Authorization: ${credential}`])
  await new Raw(port).write(paid([HOST])).shows(/whole/)
  server.removeListener('upgrade', listener)
  await new Raw(port).write(request('GET /paid', upgradeTo('websocket'))).closed
  await new Raw(port).write(request('GET /paid', upgradeTo('websocket'))).shows(/402 Payment Required/)
  server.close()
  server.closeAllConnections()
})
