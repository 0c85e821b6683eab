import { createHash } from 'node:crypto'
import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { ProxyRouteConfig } from '../../src/proxy/index.ts'
import { ALL, buyX402, presentX402 } from '../dialects/x402-buyer.ts'
import { Market, present } from '../paywall-harness.ts'
import { Backend, type OpenProxy, openProxy, Raw } from './harness.ts'

/** A real gateway, a customer with a wallet, and a program that knows nothing about payments. */

let market: Market
let backend: Backend
beforeAll(async () => {
  market = await Market.open()
  backend = await Backend.open()
})
beforeEach(async () => {
  await market.renew()
  backend.handler = undefined
  backend.seen.length = 0
})

async function open(route: Partial<ProxyRouteConfig>, more: object = {}): Promise<OpenProxy> {
  const { client, nodeId, patienceMs, onEvent } = market.terms
  const priced = route.priceFrom === undefined ? { amountSat: 10 } : {}
  return openProxy(
    {
      upstream: backend.url,
      node: nodeId,
      limits: { openChallengesPerAddress: 0, maxBodyBytes: 1_000 },
      routes: [{ match: '/things/:id', ...priced, ...route }],
      ...more,
    },
    { client, patienceMs, onEvent },
  )
}

const outcomes = (): string[] => market.events.map(({ type }) => type).filter((type) => /delivered/.test(type))

test('C75: a paid request arrives with its payment, without its credential; the response is private and has the receipt', async () => {
  const { url } = await open({}, { headers: { set: { authorization: 'Bearer upstream' } } })
  const unpaid = await fetch(url('/things/1'))
  expect([unpaid.status, unpaid.headers.get('cache-control'), backend.seen]).toEqual([402, 'no-store', []])
  const credential = await market.buy(url('/things/1'))
  const answer = await present(url('/things/1?a=b'), credential)
  expect([answer.status, await answer.text()]).toEqual([200, 'GET /things/1?a=b '])
  expect([answer.headers.get('cache-control'), answer.headers.get('payment-receipt')]).toEqual(['private', expect.any(String)])
  const { headers } = backend.last
  const id = headers['x-payment-id']
  expect(id).toMatch(/^pay_/)
  expect(headers).toMatchObject({ 'x-payment-amount-sat': '10', 'x-payment-protocol': 'mpp', authorization: 'Bearer upstream' })
  expect(JSON.stringify(backend.last)).not.toContain(credential.slice(-40))
  expect((await present(url('/things/1'), credential)).status).toBe(402)
  expect([market.paid, backend.seen.length]).toEqual([1, 1])
  await expect.poll(async () => (await market.client.payments.get(String(id))).redeemedAt).not.toBeNull()
})

describe('what a payment is for', () => {
  test.each<[Partial<ProxyRouteConfig>, string[], string[]]>([
    [{}, ['/things/1', '/things/1?x=1', '/things/%31'], ['/things/2']],
    [{ bind: 'path' }, ['/things/1?x=2'], ['/things/2']],
    [{ bind: 'route' }, ['/things/1', '/things/2?x=1'], []],
    [{ bind: 'url' }, ['/things/1'], ['/things/1?x=1', '/things/2']],
    [{ resource: 'everything' }, ['/things/2'], []],
  ])('C73: %j, bought at /things/1: opens %j and not %j', async (route, opened, closed) => {
    const { url } = await open({ ...route, protocols: ['l402'] })
    const credential = await market.buy(url('/things/1'))
    for (const path of closed) expect((await present(url(path), credential)).status).toBe(402)
    for (const path of opened) expect((await present(url(path), credential)).status).toBe(200)
    for (const path of closed) expect((await present(url(path), credential)).status, 'also from memory').toBe(402)
    expect((await present(url('/things/1'), credential, { method: 'POST' })).status).toBe(route.resource ? 200 : 402)
  })

  test('C73: a payment for a cheap route does not open a dear one, even with the same resource', async () => {
    const { client, nodeId, patienceMs } = market.terms
    const routes = [
      { match: '/cheap', amountSat: 10, resource: 'all', protocols: ['l402'] as const },
      { match: '/dear', amountSat: 100, resource: 'all', protocols: ['l402'] as const },
    ]
    const { url } = await openProxy({ upstream: backend.url, node: nodeId, routes }, { client, patienceMs })
    const credential = await market.buy(url('/cheap'))
    expect((await present(url('/cheap'), credential)).status).toBe(200)
    expect((await present(url('/dear'), credential)).status).not.toBe(200)
    expect(backend.seen.map(({ url: seen }) => seen)).toEqual(['/cheap'])
  })
})

describe('payments that are not used up', () => {
  const CASES: [name: string, handler: RequestListener, status: number][] = [
    ['responds with 500', (_request, response) => void response.writeHead(500).end('broken'), 500],
    ['responds with 404', (_request, response) => void response.writeHead(404).end('missing'), 404],
    ['responds with its own 402', (_request, response) => void response.writeHead(402, { 'www-authenticate': 'Own' }).end(), 402],
    ['hangs up', (request) => void request.socket.destroy(), 502],
    ['is silent', () => undefined, 504],
  ]
  test.each(CASES)('C76: the upstream %s', async (_name, handler, status) => {
    // Only the silent upstream should reach this limit, which is long enough for the second request to be answered.
    const { url } = await open({ timeouts: { firstByteMs: status === 504 ? 3_000 : 60_000 } })
    const credential = await market.buy(url('/things/1'))
    backend.handler = handler
    const answer = await present(url('/things/1'), credential)
    const challenge = answer.headers.get('www-authenticate')
    expect([answer.status, challenge]).toEqual([status, status === 402 ? 'Own' : null])
    expect([answer.headers.get('retry-after'), answer.headers.get('payment-receipt')]).toEqual([status >= 500 ? '5' : null, null])
    backend.handler = undefined
    expect((await present(url('/things/1'), credential)).status).toBe(200)
    expect([market.paid, outcomes()]).toEqual([1, ['undelivered', 'delivered']])
  })

  test('C76: the upstream breaks off in the middle', async () => {
    const { url } = await open({})
    const credential = await market.buy(url('/things/1'))
    backend.handler = (_request, response) => {
      response.write('half')
      setTimeout(() => response.destroy(), 50)
    }
    const answer = await present(url('/things/1'), credential)
    await expect(answer.text()).rejects.toThrow()
    backend.handler = undefined
    expect((await present(url('/things/1'), credential)).status).toBe(200)
    expect(outcomes()).toEqual(['undelivered', 'delivered'])
  })

  test('C76: the upstream is not there', async () => {
    const away = await Backend.open()
    const { url } = await open({}, { upstream: away.url })
    const credential = await market.buy(url('/things/1'))
    const { port } = away
    away.server.close()
    away.server.closeAllConnections()
    const answer = await present(url('/things/1'), credential)
    expect([answer.status, answer.headers.get('retry-after'), answer.headers.get('www-authenticate')]).toEqual([502, '5', null])
    away.server.listen(port, '127.0.0.1')
    await once(away.server, 'listening')
    expect((await present(url('/things/1'), credential)).status).toBe(200)
  })

  test('C76: the customer leaves before the response', async () => {
    const { url, port } = await open({})
    const credential = await market.buy(url('/things/1'))
    const closed = new Promise((resolve) => {
      backend.handler = (_request, response) => void response.once('close', resolve)
    })
    const arrived = once(backend.server, 'request')
    const raw = new Raw(port).write('GET /things/1 HTTP/1.1', 'Host: shop', `Authorization: ${credential}`, '', '')
    await arrived
    raw.socket.destroy()
    await closed
    await expect.poll(outcomes).toEqual(['undelivered'])
    backend.handler = undefined
    expect((await present(url('/things/1'), credential)).status).toBe(200)
  })

  test('C76: the body is too large, and its length was unknown', async () => {
    const { url } = await open({})
    const init = { method: 'POST', body: 'a'.repeat(100) }
    const unpaid = await fetch(url('/things/1'), init)
    const credential = await market.credentialFor(unpaid.headers.get('www-authenticate') ?? '')
    const stream = new Blob(['a'.repeat(2_000)]).stream()
    const large = { method: 'POST', headers: { authorization: credential }, body: stream, duplex: 'half' } as RequestInit
    expect((await fetch(url('/things/1'), large)).status).toBe(413)
    const answer = await fetch(url('/things/1'), { ...init, headers: { authorization: credential } })
    expect([answer.status, await answer.text()]).toEqual([200, `POST /things/1 ${'a'.repeat(100)}`])
  })
})

test('C76: with releaseOnDisconnect: false, the upstream may finish after the customer has left, and its status decides', async () => {
  const { url, port } = await open({ releaseOnDisconnect: false })
  for (const [status, outcome] of [
    [500, 'undelivered'],
    [200, 'delivered'],
  ] as const) {
    market.events.length = 0
    const credential = await market.buy(url('/things/1'))
    let finish = (): void => undefined
    const arrived = new Promise<void>((resolve) => {
      backend.handler = (_request, response) => {
        finish = () => void response.writeHead(status).end('done')
        resolve()
      }
    })
    const raw = new Raw(port).write('GET /things/1 HTTP/1.1', 'Host: shop', `Authorization: ${credential}`, '', '')
    await arrived
    raw.socket.destroy()
    await raw.closed
    await new Promise((resolve) => setTimeout(resolve, 100))
    finish()
    await expect.poll(outcomes).toEqual([outcome])
  }
})

test('C76: a customer who leaves during a stream has received a part of it, and the upstream’s request is aborted', async () => {
  const { url } = await open({})
  const credential = await market.buy(url('/things/1'))
  const closed = new Promise((resolve) => {
    backend.handler = (_request, response) => {
      response.write('data: 1\n\n')
      response.once('close', resolve)
    }
  })
  const leaving = new AbortController()
  const answer = await present(url('/things/1'), credential, { signal: leaving.signal })
  await (answer.body as ReadableStream).getReader().read()
  leaving.abort()
  await closed
  await expect.poll(outcomes).toEqual(['delivered'])
  backend.handler = undefined
  expect((await present(url('/things/1'), credential)).status).toBe(402)
})

test('C75: HEAD uses nothing up, and a body arrives after the payment', async () => {
  const { url } = await open({})
  const credential = await market.buy(url('/things/1'))
  expect((await present(url('/things/1'), credential, { method: 'HEAD' })).status).toBe(200)
  expect((await present(url('/things/1'), credential)).status).toBe(200)
  expect(backend.seen.map(({ method }) => method)).toEqual(['HEAD', 'GET'])
})

test('C75: 100 Continue is not sent for an unpaid request, and is sent for a paid one', async () => {
  const { port } = await open({})
  const head = (...more: string[]) =>
    new Raw(port).write('POST /things/1 HTTP/1.1', 'Host: shop', 'Expect: 100-continue', 'Content-Length: 5', ...more, '', '')
  const unpaid = head()
  await unpaid.closed
  expect(unpaid.text).toMatch(/^HTTP\/1\.1 402 /)
  const challenge = /www-authenticate: (.+)\r\n/i.exec(unpaid.text)?.[1] ?? ''
  const paid = head(`Authorization: ${await market.credentialFor(challenge)}`)
  await paid.shows(/^HTTP\/1\.1 100 Continue/)
  paid.write('hello')
  await paid.shows(/200 OK[\s\S]*POST \/things\/1 hello/)
})

test('C75: x402 is bound to the public URL and the body, which arrives', async () => {
  const { url } = await open({ protocols: ALL }, { publicUrl: 'https://api.example.com/shop' })
  const init = { method: 'POST', body: '{"words": 2}' }
  const required = (await fetch(url('/things/%31?b=1'), init)).headers.get('payment-required') ?? ''
  expect(JSON.parse(Buffer.from(required, 'base64').toString()).resource.url).toBe('https://api.example.com/shop/things/%31?b=1')
  const credential = await buyX402(market, url('/things/1'), init)
  expect((await presentX402(url('/things/1'), credential, { ...init, body: 'other' })).status).toBe(409)
  const answer = await presentX402(url('/things/1'), credential, init)
  expect([answer.status, await answer.text()]).toEqual([200, 'POST /things/1 {"words": 2}'])
  expect(backend.last.headers).toMatchObject({ 'x-forwarded-proto': 'https', 'x-forwarded-host': 'api.example.com' })
  expect(backend.last.names.filter((name) => /signature/i.test(name))).toEqual([])
})

test('C75: with requiresAuth, the customer’s login at the upstream goes through, and the credential does not', async () => {
  const { url } = await open({ requiresAuth: true })
  const login = { authorization: 'Bearer customer' }
  const unpaid = await fetch(url('/things/1'), { headers: login })
  const credential = await market.credentialFor(unpaid.headers.get('www-authenticate') ?? '')
  const answer = await fetch(url('/things/1'), { headers: { ...login, 'payment-authorization': credential } })
  expect([answer.status, backend.last.headers.authorization]).toEqual([200, 'Bearer customer'])
  expect(backend.last.headers['payment-authorization']).toBeUndefined()
})

test('C73: open challenges are counted by the address that trusted proxies report', async () => {
  const limits = { openChallengesPerAddress: 2 }
  const { url } = await open({}, { limits, trustProxy: 1 })
  const visit = async (address: string): Promise<number> =>
    (await fetch(url('/things/1'), { headers: { 'x-forwarded-for': `6.6.6.6, ${address}` } })).status
  expect([await visit('203.0.113.1'), await visit('203.0.113.1'), await visit('203.0.113.1')]).toEqual([402, 402, 429])
  expect(await visit('203.0.113.2')).toBe(402)
})

describe('priceFrom', () => {
  let prices: Backend
  const asked: unknown[] = []
  let reply: (ask: any) => unknown = () => ({ amountSat: 7 })
  beforeAll(async () => {
    prices = await Backend.open()
    prices.handler = async (request, response) => {
      let text = ''
      for await (const chunk of request) text += chunk
      asked.push([request.method, JSON.parse(text)])
      const answer = reply(JSON.parse(text))
      if (answer !== undefined) response.end(typeof answer === 'string' ? answer : JSON.stringify(answer))
      else response.writeHead(404).end('{"amountSat": 7}')
    }
  })
  beforeEach(() => {
    asked.length = 0
  })
  const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')
  const openPriced = (more: Partial<ProxyRouteConfig> = {}): Promise<OpenProxy> =>
    open({ priceFrom: `${prices.url}/price`, ...more })

  test('C73: it gets the request and sets price and description; the body still arrives', async () => {
    reply = ({ url }) => ({ amountSat: url.length, description: `A thing at ${url}` })
    const { url } = await openPriced()
    const init = { method: 'POST', body: 'hello' }
    const unpaid = await fetch(url('/things/%31?x=1'), init)
    expect(await unpaid.json()).toMatchObject({ amountSat: 13, description: 'A thing at /things/1?x=1' })
    expect(asked).toEqual([['POST', { method: 'POST', url: '/things/1?x=1', bodySha256: sha256('hello') }]])
    const authorization = await market.credentialFor(unpaid.headers.get('www-authenticate') ?? '')
    const answer = await fetch(url('/things/1?x=1'), { ...init, headers: { authorization } })
    expect([answer.status, await answer.text()]).toEqual([200, 'POST /things/1?x=1 hello'])
    expect(backend.last.headers['x-payment-amount-sat']).toBe('13')
  })

  test('C73: HEAD has the price of GET, and OPTIONS none', async () => {
    reply = () => ({ amountSat: 7 })
    const { url } = await openPriced()
    expect((await fetch(url('/things/1'), { method: 'HEAD' })).status).toBe(402)
    expect((await fetch(url('/things/1'), { method: 'OPTIONS' })).status).toBe(204)
    expect(asked).toEqual([['POST', { method: 'GET', url: '/things/1', bodySha256: sha256('') }]])
  })

  test('C73: a payment for a cheap thing does not open a dear one at another URL', async () => {
    reply = ({ url }) => ({ amountSat: Number(url.split('=')[1]) })
    const { url } = await openPriced({ protocols: ['l402'] })
    const credential = await market.buy(url('/things/1?sat=5'))
    expect((await present(url('/things/1?sat=500'), credential)).status).toBe(402)
    expect((await present(url('/things/1?sat=5'), credential)).status).toBe(200)
  })

  test.each<[name: string, reply: () => unknown]>([
    ['another status', () => undefined],
    ['no JSON', () => 'ten'],
    ['no object', () => '7'],
    ['no price', () => ({})],
    ['a price of 0', () => ({ amountSat: 0 })],
    ['a negative price', () => ({ amountSat: -1 })],
    ['a price with decimals', () => ({ amountSat: 1.5 })],
    ['a price as text', () => ({ amountSat: '7' })],
    ['a description that is not text', () => ({ amountSat: 7, description: 7 })],
    ['a description that is too long', () => ({ amountSat: 7, description: 'a'.repeat(501) })],
    ['a response that is too long', () => JSON.stringify({ amountSat: 7, more: 'a'.repeat(70_000) })],
  ])('C73: %s is 503 with Retry-After, without a challenge, and nothing is used up', async (_name, bad) => {
    reply = () => ({ amountSat: 7 })
    const { url } = await openPriced()
    const credential = await market.buy(url('/things/1'))
    reply = bad
    for (const headers of [{}, { authorization: credential }]) {
      const answer = await fetch(url('/things/1'), { headers })
      expect([answer.status, answer.headers.get('retry-after'), answer.headers.get('www-authenticate')]).toEqual([503, '5', null])
    }
    expect(backend.seen).toEqual([])
    reply = () => ({ amountSat: 7 })
    expect((await present(url('/things/1'), credential)).status).toBe(200)
  })

  test('C73: no response within 2 s, or none at all, is 503', async () => {
    const silent = await Backend.open()
    silent.handler = () => undefined
    const slow = await open({ priceFrom: silent.url })
    expect((await fetch(slow.url('/things/1'))).status).toBe(503)
    silent.server.close()
    silent.server.closeAllConnections()
    expect((await fetch(slow.url('/things/1'))).status).toBe(503)
  })

  test('C73: a response that switches to another protocol is 503', async () => {
    const odd = await Backend.open()
    const switching = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: own\r\n\r\n'
    odd.handler = ({ socket }) => void socket.write(switching)
    const { url } = await open({ priceFrom: odd.url })
    expect((await fetch(url('/things/1'))).status).toBe(503)
  })

  test('C73: a body that is too large for its hash is 413, and has no price', async () => {
    const { url } = await openPriced()
    const stream = new Blob(['a'.repeat(2_000)]).stream()
    const large = { method: 'POST', body: stream, duplex: 'half' } as RequestInit
    expect((await fetch(url('/things/1'), large)).status).toBe(413)
    expect(asked).toEqual([])
  })
})
