import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { createContext, runInContext } from 'node:vm'
import { build } from 'esbuild'
import { afterEach, expect, test } from 'vitest'
import { eventually } from '../../server/test/support/server.ts'
import manifest from '../package.json' with { type: 'json' }
import { Boltyard, type BoltyardOptions, ConnectionError, TimeoutError, UncertainOutcomeError } from '../src/index.ts'
import { type PaywallEvent, paywall } from '../src/paywall/index.ts'

/** How connections are used, with a server that handles each request as the test demands. */

type Seen = { method: string; path: string; socket: Socket; headers: IncomingMessage['headers']; body: string }
type Treatment = (response: ServerResponse, request: IncomingMessage) => unknown
const answer: Treatment = (response) => response.setHeader('content-type', 'application/json').end('{"nodes":[]}')
const hangUp: Treatment = (_response, request) => request.socket.destroy()

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close().closeAllConnections()
})

async function service(): Promise<{ seen: Seen[]; treatments: Treatment[]; client: (more?: BoltyardOptions) => Boltyard }> {
  const seen: Seen[] = []
  const treatments: Treatment[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => {
      body += chunk
    })
    request.on('end', () => {
      const { method = '', url: path = '', socket, headers } = request
      seen.push({ method, path, socket, headers, body })
      const treat = treatments.shift() ?? answer
      treat(response, request)
    })
  }).listen(0, '127.0.0.1')
  // The server keeps idle connections open, however long a busy machine pauses between two requests.
  server.keepAliveTimeout = 0
  servers.push(server)
  await once(server, 'listening')
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  return { seen, treatments, client: (more) => new Boltyard({ apiKey: 'byk_x', baseUrl, maxRetries: 0, ...more }) }
}

const fails = (call: Promise<unknown>): Promise<any> =>
  call.then(
    () => expect.fail('it did not fail'),
    (error) => error,
  )

test('selling 9: connections are reused by all clients of the process; fetch is not used', async () => {
  const { seen, client } = await service()
  const fetchBefore = globalThis.fetch
  globalThis.fetch = () => Promise.reject(new Error('not this one'))
  try {
    for (let count = 0; count < 5; count++) await client().nodes.list()
  } finally {
    globalThis.fetch = fetchBefore
  }
  expect(seen).toHaveLength(5)
  expect(new Set(seen.map(({ socket }) => socket)).size).toBe(1)
})

test('selling 9: a custom fetch is used and gets the same request', async () => {
  const { seen, client } = await service()
  let count = 0
  const counting: typeof fetch = (...request) => {
    count++
    return fetch(...request)
  }
  await client().nodes.rename('node_1', 'näme')
  await client({ fetch: counting }).nodes.rename('node_1', 'näme')
  expect(count).toBe(1)
  const [own, given] = seen.map(({ method, path, headers, body }) => {
    const { authorization, accept, 'content-type': type, 'user-agent': agent, 'content-length': length } = headers
    return { method, path, body, authorization, accept, type, agent, length }
  })
  expect(own).toEqual(given)
  expect(own?.body).toBe('{"name":"näme"}')
})

test('D15: the user agent names the package and its version', async () => {
  const { seen, client } = await service()
  await client().nodes.list()
  expect(seen[0]?.headers['user-agent']).toBe(`boltyard-sdk/${manifest.version}`)
})

test('selling 9: if a reused connection was closed, a repeatable request is sent again immediately', async () => {
  const { seen, treatments, client } = await service()
  await client().nodes.list()
  treatments.push(hangUp)
  expect(await client().nodes.list()).toEqual([])
  expect(seen).toHaveLength(3)
  expect(seen[1]?.socket).toBe(seen[0]?.socket)
})

test('selling 9: a repeatable request is sent again only once; a second failure is an error', async () => {
  const { seen, treatments, client } = await service()
  await client().nodes.list()
  treatments.push(hangUp, hangUp)
  expect(await fails(client().nodes.list())).toBeInstanceOf(ConnectionError)
  expect(seen).toHaveLength(3)
})

test('C41: a creation that was sent again may have arrived the first time, whatever became of the second', async () => {
  const { seen, treatments, client } = await service()
  const refuse: Treatment = (response) => response.writeHead(401).end('{"error":{"code":"unauthorized","message":"No."}}')
  const stop: Treatment = (_response, request) => {
    for (const server of servers) server.close()
    request.socket.destroy()
  }
  for (const [first, code] of [
    [hangUp, 'unauthorized'],
    [stop, 'connection_failed'],
  ] as const) {
    await client().nodes.list()
    treatments.push(first, refuse)
    const { code: got, details } = await fails(client().nodes.create())
    const key = seen.find(({ method }) => method === 'POST')?.headers['idempotency-key']
    expect([got, details]).toEqual([code, { idempotencyKey: key }])
    seen.length = 0
  }
})

test('selling 9: a request that must not be repeated never uses a kept connection and is not sent again', async () => {
  const { seen, treatments, client } = await service()
  await client().nodes.list()
  treatments.push(answer, hangUp)
  await client().nodes.restart('node_1')
  expect(await fails(client().nodes.restart('node_1'))).toBeInstanceOf(UncertainOutcomeError)
  expect(seen.map(({ method }) => method)).toEqual(['GET', 'POST', 'POST'])
  expect(new Set(seen.map(({ socket }) => socket)).size).toBe(3)
})

test('selling 9: a response that is cut off is an error', async () => {
  const { seen, treatments, client } = await service()
  await client().nodes.list()
  const breakOff: Treatment = (response) => {
    response.writeHead(200, { 'content-length': '100' })
    response.write('{"nodes":[]}', () => response.socket?.destroy())
  }
  treatments.push(breakOff)
  expect(await fails(client().nodes.list())).toMatchObject({ code: 'connection_failed' })
  expect(seen).toHaveLength(2)
})

test('selling 9: a timeout or abort does not wait for a response that has started, and closes the connection', async () => {
  const { seen, treatments, client } = await service()
  const begin: Treatment = (response) => response.writeHead(200).write('{')
  treatments.push(begin, begin)
  expect(await fails(client({ timeoutMs: 100 }).nodes.list())).toBeInstanceOf(TimeoutError)
  // On a busy machine, the first request may not have arrived.
  const before = seen.length
  const abort = new AbortController()
  const listing = fails(client().nodes.list({ signal: abort.signal }))
  await eventually(() => seen.length > before, 'the second request')
  const reason = new Error('enough')
  abort.abort(reason)
  expect(await listing).toBe(reason)
  await eventually(() => seen.every(({ socket }) => socket.destroyed), 'the connections to be closed')
})

test('redirects are not followed, so the key is not sent elsewhere', async () => {
  const { seen, treatments, client } = await service()
  treatments.push((response) => response.writeHead(307, { location: '/v1/elsewhere' }).end())
  expect(await fails(client().nodes.list())).toMatchObject({ code: 'unexpected_answer', status: 307 })
  expect(seen).toHaveLength(1)
})

test('characters split across chunks are decoded correctly', async () => {
  const { treatments, client } = await service()
  const whole = Buffer.from('{"nodes":["ä"]}')
  const inPieces: Treatment = (response) => {
    response.writeHead(200)
    response.write(whole.subarray(0, 12), () => setImmediate(() => response.end(whole.subarray(12))))
  }
  treatments.push(inPieces)
  expect(await client().nodes.list()).toEqual(['ä'])
})

test('D13: in a Worker, where there is no `process`, it loads, and no request waits for another', async () => {
  const entry = fileURLToPath(new URL('../src/index.ts', import.meta.url))
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    platform: 'browser',
    format: 'iife',
    globalName: 'sdk',
    write: false,
  })
  const waiting: ((response: Response) => void)[] = []
  const workers = createContext({
    WebSocketPair: class {},
    fetch: () => new Promise<Response>((resolve) => waiting.push(resolve)),
    ...{ AbortController, TextDecoder, TextEncoder, URL, clearTimeout, crypto, setTimeout },
  })
  runInContext(outputFiles[0]?.text ?? '', workers)
  expect(runInContext('typeof process', workers)).toBe('undefined')
  const client: Boltyard = runInContext(`new sdk.Boltyard({ apiKey: 'byk_x', baseUrl: 'https://x/v1' })`, workers)
  const listing = Promise.all(Array.from({ length: 12 }, () => client.nodes.list()))
  await eventually(() => waiting.length === 12, 'all to be under way')
  for (const resolve of waiting) resolve(Response.json({ nodes: [] }))
  expect(await listing).toHaveLength(12)
  expect(() => runInContext('new sdk.Boltyard()', workers)).toThrow(
    /^No API key\. .*`client: new Boltyard\(\{ apiKey: env\.SERVICE_API_KEY \}\)`/,
  )
})

test('D14: a rate-limited shop tells its customer immediately how long to wait', async () => {
  const { seen, treatments, client } = await service()
  const limited: Treatment = (response) =>
    response.writeHead(429, { 'retry-after': '30' }).end('{"error":{"code":"rate_limited","message":"rate limit exceeded"}}')
  treatments.push(limited)
  const events: PaywallEvent[] = []
  const options = {
    client: client({ maxRetries: 3 }),
    nodeId: 'node_1',
    amountSat: 1,
    patienceMs: 25_000,
    onEvent: (event: PaywallEvent) => events.push(event),
  }
  const answer = await paywall(options, () => new Response('free'))(new Request('http://shop/'))
  expect([answer.status, answer.headers.get('retry-after'), answer.headers.get('www-authenticate')]).toEqual([503, '30', null])
  expect(events).toMatchObject([{ type: 'unavailable', code: 'rate_limited' }])
  expect(seen).toHaveLength(1)
})
