import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { paymentIdOf } from '../../protocol/src/payment-id.ts'
import { storeOf } from '../../server/test/support/gateway.ts'
import { NOWHERE } from '../../server/test/support/payments.ts'
import { eventually } from '../../server/test/support/server.ts'
import { Boltyard } from '../src/boltyard.ts'
import { paywall as expressPaywall } from '../src/paywall/adapters/express.ts'
import { paywall as nextPaywall } from '../src/paywall/adapters/next.ts'
import { challengesIn, Market, present } from './paywall-harness.ts'
import { type Opening, SHOPS, type Shop } from './paywall-shops.ts'

/** Rules of every paywall that need to be tested in only one framework. */

const open = SHOPS[0]?.[1] as Opening
let market: Market
beforeAll(async () => {
  market = await Market.open()
})
beforeEach(() => market.renew())
afterEach(() => {
  vi.restoreAllMocks()
  vi.unstubAllEnvs()
})

const types = (): string[] => market.events.map(({ type }) => type)
const asked = (): string[] => market.wire.seen.map(({ path }) => path.split('/').at(-1) ?? '')
const idIn = (credential: string): string => paymentIdOf(credential) ?? ''

describe('selling 1: the quoted price is honored', () => {
  async function movingShop(options: object = {}): Promise<{ shop: Shop; price: { sat: number }; url: string }> {
    const price = { sat: 100 }
    const shop = await open({ ...market.terms, amountSat: () => price.sat, ...options })
    return { shop, price, url: shop.url('/jokes/1') }
  }

  test.each([90, 99, 100, 101, 111])('D1: paid at 100, the price is %i now: served', async (sat) => {
    const { price, url } = await movingShop()
    const credential = await market.buy(url)
    price.sat = sat
    expect((await present(url, credential)).status).toBe(200)
  })

  test('D1: a larger price increase is 409 without a challenge; the payment stays unused and is listed', async () => {
    const { price, url } = await movingShop()
    const credential = await market.buy(url)
    price.sat = 112
    const answer = await present(url, credential)
    expect([answer.status, challengesIn(answer), answer.headers.get('cache-control')]).toEqual([409, [], 'no-store'])
    expect(await answer.json()).toMatchObject({ detail: expect.stringMatching(/Do not pay again/), paymentId: idIn(credential) })
    expect(market.events.at(-1)).toMatchObject({ type: 'refused', code: 'price_changed', paymentIds: [] })
    const { payments } = await market.client.payments.list({ status: 'settled' })
    expect(payments.map(({ id }) => id)).toContain(idIn(credential))
    price.sat = 100
    expect((await present(url, credential)).status).toBe(200)
  })

  test('with a custom resource there is no tolerance by default', async () => {
    const strict = await movingShop({ resource: 'a joke' })
    const credential = await market.buy(strict.url)
    strict.price.sat = 101
    expect((await present(strict.url, credential)).status).toBe(409)
    const lenient = await movingShop({ resource: 'a joke', priceTolerance: 0.5 })
    lenient.price.sat = 200
    expect((await present(lenient.url, credential)).status).toBe(200)
  })

  test('the price function is called once per request', async () => {
    for (const protocol of ['mpp', 'l402'] as const) {
      let asked = 0
      const shop = await open({ ...market.terms, protocol, amountSat: () => 100 + ++asked * 0 })
      const credential = await market.buy(shop.url('/jokes/1'))
      await present(shop.url('/jokes/1'), credential)
      await present(shop.url('/jokes/1'), credential)
      expect([protocol, asked]).toEqual([protocol, 3])
    }
  })

  test('D1: a used credential that no longer covers the price gets a new challenge, for MPP and reusable L402', async () => {
    for (const protocol of ['mpp', 'l402'] as const) {
      const { price, url } = await movingShop({ protocol })
      const credential = await market.buy(url)
      expect((await present(url, credential)).status).toBe(200)
      price.sat = 200
      const answer = await present(url, credential)
      expect([protocol, answer.status, challengesIn(answer).length]).toEqual([protocol, 402, 1])
    }
  })

  test('D1: a credential whose delivery is in progress gets no challenge if the price rises', async () => {
    const { shop, price } = await movingShop()
    const url = shop.url('/slow')
    const credential = await market.buy(url)
    let resume = (): void => undefined
    shop.work = () =>
      new Promise((resolve) => {
        resume = resolve
      })
    const first = present(url, credential)
    await eventually(() => shop.started === 1, 'the handler to be called')
    price.sat = 200
    const answer = await present(url, credential)
    expect([answer.status, challengesIn(answer)]).toEqual([409, []])
    expect(market.events.at(-1)).toMatchObject({ code: 'delivery_in_progress' })
    resume()
    expect((await first).status).toBe(200)
  })
})

describe('selling 2: the resource binds a payment, the description is for people', () => {
  const lastResource = async (): Promise<string | null | undefined> =>
    (await market.client.payments.list({ limit: 1 })).payments[0]?.resource

  test('default: the route pattern for a constant price, path and query for a function; HEAD counts as GET', async () => {
    const constant = await open(market.terms)
    await fetch(constant.url('/jokes/1?x=1'))
    expect(await lastResource()).toBe('GET /jokes/:id')
    await fetch(constant.url('/jokes/1'), { method: 'HEAD' })
    expect(await lastResource()).toBe('GET /jokes/:id')
    const computed = await open({ ...market.terms, amountSat: () => 10 })
    await fetch(computed.url('/jokes/1?x=1'))
    expect(await lastResource()).toBe('GET /jokes/1?x=1')
  })

  test('longer than 200 characters or not ASCII: a digest of the path, different for each path', async () => {
    const shop = await open({ ...market.terms, amountSat: () => 10 })
    const path = `/jokes/${'x'.repeat(200)}`
    const credential = await market.buy(shop.url(path))
    expect(await lastResource()).toMatch(/^GET sha256:[0-9a-f]{64}$/)
    expect((await present(shop.url(`${path}y`), credential)).status).toBe(402)
    expect((await present(shop.url(path), credential)).status).toBe(200)
    const other = nextPaywall({ ...market.terms, route: '/jokes/für-alle' }, () => new Response('joke'))
    expect((await other(new Request('http://shop/jokes/1'))).status).toBe(402)
    expect(await lastResource()).toMatch(/^GET sha256:[0-9a-f]{64}$/)
  })

  test('the description does not bind: a different one with the same resource is served', async () => {
    const before = await open({ ...market.terms, description: 'A joke' })
    const after = await open({ ...market.terms, description: 'A very good joke' })
    expect((await present(after.url('/jokes/1'), await market.buy(before.url('/jokes/1')))).status).toBe(200)
  })

  test('a payment without a resource is matched by its description', async () => {
    const shop = await open(market.terms)
    const { nodeId, amountSat } = market.terms
    const sold = await market.client.payments.create({ nodeId, amountSat, description: 'GET /jokes/:id' })
    expect((await present(shop.url('/jokes/1'), await market.credentialFor(sold.challenge))).status).toBe(200)
    const other = await market.client.payments.create({ nodeId, amountSat, description: 'GET /jokes' })
    expect((await present(shop.url('/jokes/1'), await market.credentialFor(other.challenge))).status).toBe(402)
  })

  test('D2: a cheap credential does not open an expensive resource on the same route', async () => {
    const shop = await open({ ...market.terms, amountSat: ({ query }: { query: { words?: string } }) => Number(query.words) })
    const cheap = await market.buy(shop.url('/jokes/1?words=100'))
    const answer = await present(shop.url('/jokes/1?words=101'), cheap)
    expect([answer.status, challengesIn(answer).length]).toEqual([402, 1])
    expect((await present(shop.url('/jokes/1?words=100'), cheap)).status).toBe(200)
  })
})

describe('selling 3: a delivery that does not complete', () => {
  const children: ChildProcess[] = []
  afterAll(() => {
    for (const child of children) child.kill('SIGKILL')
  })
  async function shopProcess(more: Record<string, string> = {}): Promise<{ child: ChildProcess; url: (path: string) => string }> {
    const file = fileURLToPath(new URL('paywall-shop-process.ts', import.meta.url))
    const env = {
      ...process.env,
      SERVICE_API_KEY: market.owner.key.key,
      SERVICE_BASE_URL: `${market.server.url}/v1`,
      NODE_ID: market.node.node.id,
      ...more,
    }
    const child = fork(file, { execArgv: ['--import', 'tsx'], env })
    children.push(child)
    const [port] = await once(child, 'message')
    return { child, url: (path) => `http://127.0.0.1:${port}${path}` }
  }

  test('C45: if the shop is killed during a delivery, the customer waits for the hold but does not pay again', async () => {
    const [doomed, other] = await Promise.all([shopProcess(), shopProcess({ ENDLESS: 'no' })])
    const credential = await market.buy(doomed.url('/endless'))
    const working = once(doomed.child, 'message')
    const lost = present(doomed.url('/endless'), credential).catch(() => 'lost')
    expect(await working).toEqual(['working', undefined])
    doomed.child.kill('SIGKILL')
    expect(await lost).toBe('lost')
    const held = await present(other.url('/endless'), credential)
    expect([held.status, challengesIn(held)]).toEqual([409, []])
    // As if the hold of two minutes had ended.
    await storeOf(market.server)`UPDATE paid_payments SET held_until = now() WHERE id = ${idIn(credential)}`
    expect((await present(other.url('/endless'), credential)).status).toBe(200)
    await eventually(async () => (await present(other.url('/endless'), credential)).status === 402, 'the confirmation')
  })

  test('C45: a shop that gets a signal first confirms its deliveries', async () => {
    const shop = await shopProcess()
    const credential = await market.buy(shop.url('/jokes/1'))
    expect((await present(shop.url('/jokes/1'), credential)).status).toBe(200)
    shop.child.kill('SIGTERM')
    expect(await once(shop.child, 'exit')).toEqual([null, 'SIGTERM'])
    const { payments } = await market.client.payments.list({ delivery: 'done' })
    expect(payments.map(({ id }) => id)).toContain(idIn(credential))
  })

  test('C45: a failed confirmation is retried until it succeeds', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => undefined)
    const shop = await open(market.terms)
    const credential = await market.buy(shop.url('/jokes/1'))
    market.wire.faultsOn = /\/delivered$/
    market.wire.faults = Array(6).fill('cut')
    expect((await present(shop.url('/jokes/1'), credential)).status).toBe(200)
    await eventually(async () => {
      const [row] = await storeOf(market.server)`SELECT held_until FROM paid_payments WHERE id = ${idIn(credential)}`
      return row?.held_until === null
    }, 'the confirmation')
    expect(market.wire.faults).toEqual([])
    expect(asked().filter((name) => name === 'delivered').length).toBeGreaterThan(6)
  })

  test('C48: a release with a lost response is retried; a late duplicate does not free another request’s claim', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => undefined)
    const shop = await open(market.terms)
    const credential = await market.buy(shop.url('/missing'))
    // More faults than one call of the client has attempts, so the paywall has to call again.
    market.wire.faultsOn = /\/release$/
    market.wire.faults = Array(6).fill('lose answer')
    expect((await present(shop.url('/missing'), credential)).status).toBe(404)
    await eventually(() => asked().filter((name) => name === 'release').length >= 7, 'the repetitions')
    const [row] = await storeOf(market.server)`
      SELECT released_request_ids AS released FROM paid_payments WHERE id = ${idIn(credential)}`
    expect(row?.released).toHaveLength(1)
    const next = await market.client.payments.redeem(idIn(credential), { credential, requestId: 'another', holdSeconds: 600 })
    expect(next.status).toBe('paid')
    const late = await market.client.payments.release(idIn(credential), { requestId: row?.released[0] }).catch(({ code }) => code)
    expect(late).toBe('not_claimed')
    expect((await present(shop.url('/missing'), credential)).status).toBe(409)
  })

  test('C48: a delivery that keeps failing ends as 409 without a challenge, never as a second payment', async () => {
    const shop = await open(market.terms)
    const credential = await market.buy(shop.url('/missing'))
    const statuses: number[] = []
    for (let time = 0; time < 12; time++) {
      const answer = await present(shop.url('/missing'), credential)
      statuses.push(answer.status)
      expect(challengesIn(answer)).toEqual([])
    }
    expect(statuses).toEqual([...Array(11).fill(404), 409])
  })
})

describe('selling 4: OPTIONS is free and does not run the handler', () => {
  test.each([
    ['the paywall responds', undefined],
    ['with `pass`, the shop’s handler responds', 'pass'],
  ] as const)('%s', async (_name, options) => {
    const { default: express } = await import('express')
    const app = express()
    let calls = 0
    app.all('/joke', expressPaywall({ ...market.terms, options }), (_request, response) => void response.send(String(++calls)))
    app
      .route('/few')
      .get(expressPaywall({ ...market.terms, options }))
      .options(expressPaywall({ ...market.terms, options }))
    const server = app.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const answer = await fetch(`${url}/joke`, { method: 'OPTIONS' })
    if (options === 'pass') expect([answer.status, calls]).toEqual([200, 1])
    else {
      expect([answer.status, calls, answer.headers.get('allow')]).toEqual([
        204,
        0,
        'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS',
      ])
      expect((await fetch(`${url}/few`, { method: 'OPTIONS' })).headers.get('allow')).toBe('GET, HEAD, OPTIONS')
    }
    expect([types(), asked()]).toEqual([[], []])
    server.close()
  })
})

describe('selling 5: misconfiguration is reported', () => {
  const wrong: [name: string, options: () => object, says: RegExp][] = [
    ['a wrong key', () => ({ client: market.newClient('byk_wrong') }), /SERVICE_API_KEY.*gateway:write/],
    [
      'a base URL without /v1',
      () => {
        vi.stubEnv('SERVICE_API_KEY', market.owner.key.key)
        vi.stubEnv('SERVICE_BASE_URL', market.server.url)
        return { client: undefined }
      },
      /base URL.*\/v1/,
    ],
    [
      'a base URL of something else',
      () => ({ client: new Boltyard({ apiKey: market.owner.key.key, baseUrl: `${market.server.url}/elsewhere/v1` }) }),
      /no Boltyard API at the base URL/,
    ],
    ['an unknown node', () => ({ nodeId: 'node_typo' }), /node_typo.*`nodeId`/],
    ['no node', () => ({ nodeId: '' }), /`nodeId` is missing/],
    ['a description that is too long', () => ({ description: 'x'.repeat(501) }), /description/],
    ['a description of two lines', () => ({ description: 'a\nb' }), /description/],
    [
      'nothing listening',
      () => ({ client: new Boltyard({ apiKey: 'byk_x', baseUrl: `${NOWHERE}/v1`, maxRetries: 0 }) }),
      /could not be reached/,
    ],
  ]
  test.each(wrong)(
    'D5: %s: one line on stderr says what to change, ready() says the same, and customers do not see it',
    async (_name, options, says) => {
      const lines: string[] = []
      vi.spyOn(console, 'error').mockImplementation((line) => void lines.push(String(line)))
      // More than a minute after any warning from another test, so that none is suppressed.
      vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 61_000 * ++minutes)
      const charge = nextPaywall({ ...market.terms, ...options() }, () => new Response('free'))
      for (let time = 0; time < 2; time++) {
        const answer = await charge(new Request('http://shop/joke'))
        expect([answer.status, challengesIn(answer)]).toEqual([503, []])
        expect(await answer.text()).not.toMatch(/key|node|URL|description/)
      }
      expect(lines).toEqual([expect.stringMatching(says)])
      expect(lines[0]).not.toMatch(/\n|byk_/)
      await expect(charge.ready()).rejects.toThrow(says)
    },
  )
  let minutes = 0

  test('D5: two simultaneous mistakes are two lines, however often each occurs', async () => {
    const lines: string[] = []
    vi.spyOn(console, 'error').mockImplementation((line) => void lines.push(String(line)))
    vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 61_000 * ++minutes)
    const mistakes = [{ description: 'x'.repeat(501) }, { description: 'a\nb' }, { nodeId: '' }, { holdSeconds: 0 }]
    const routes = mistakes.map((options) => nextPaywall({ ...market.terms, ...options }, () => new Response('free')))
    for (const charge of [...routes, ...routes]) expect((await charge(new Request('http://shop/joke'))).status).toBe(503)
    expect(lines).toEqual([/500 characters/, /control/, /nodeId/, /holdSeconds/].map((says) => expect.stringMatching(says)))
  })

  test('ready() is silent if all is well, and reports a key without the scope', async () => {
    await expect(expressPaywall(market.terms).ready()).resolves.toBeUndefined()
    const { key } = await market.server.newKey(['nodes:read'], market.owner.key.accountId)
    const poor = expressPaywall({ ...market.terms, client: market.newClient(key) })
    await expect(poor.ready()).rejects.toThrow(/gateway:write/)
  })
})

describe('selling 6: a visitor never crashes the shop', () => {
  test.each(SHOPS)('D6: %s: an invalid computed price fails that request, and never makes it free', async (_name, openShop) => {
    vi.spyOn(console, 'error').mockImplementation(() => undefined)
    for (const amountSat of [() => Number.NaN, () => Promise.reject(new Error('no rate')), () => 0]) {
      const shop = await openShop({ ...market.terms, amountSat })
      expect([(await fetch(shop.url('/jokes/1'))).status, shop.delivered]).toEqual([500, 0])
      expect((await fetch(shop.url('/jokes/1'))).status).toBe(500)
    }
  })
})

describe('selling 7: the same price buys the same', () => {
  test('with two offers, either buys one delivery; with reuse, an L402 credential works again', async () => {
    const once = await open({ ...market.terms, protocol: 'both' })
    for (const challenge of challengesIn(await fetch(once.url('/jokes/1')))) {
      const credential = await market.credentialFor(challenge)
      expect((await present(once.url('/jokes/1'), credential)).status).toBe(200)
      expect((await present(once.url('/jokes/1'), credential)).status).toBe(402)
    }
    const day = await open({ ...market.terms, protocol: 'both', l402: { reuse: '24h' } })
    const credential = await market.buy(day.url('/jokes/1'))
    for (let time = 0; time < 3; time++) expect((await present(day.url('/jokes/1'), credential)).status).toBe(200)
  })
})

describe('selling 8: a reusable L402 credential is verified in the process', () => {
  test('once the gateway has accepted a credential, it is not asked again', async () => {
    const shop = await open({ ...market.terms, protocol: 'l402' })
    const credential = await market.buy(shop.url('/jokes/1'))
    expect((await present(shop.url('/jokes/1'), credential)).status).toBe(200)
    market.wire.seen.length = 0
    for (let time = 0; time < 4; time++) expect((await present(shop.url('/jokes/1'), credential)).status).toBe(200)
    expect(asked()).toEqual([])
    expect(types()).toEqual(['challenged', ...Array(5).fill('delivered')])
    // A credential with one changed character is not in the cache.
    expect((await present(shop.url('/jokes/1'), `${credential.slice(0, -1)}${credential.endsWith('0') ? 1 : 0}`)).status).toBe(
      402,
    )
  })

  test('a cached credential opens nothing more expensive and nothing else', async () => {
    const price = { sat: 10 }
    const resource = { name: 'cheap' }
    const shop = await open({ ...market.terms, protocol: 'l402', amountSat: () => price.sat, resource: () => resource.name })
    const credential = await market.buy(shop.url('/jokes/1'))
    expect((await present(shop.url('/jokes/1'), credential)).status).toBe(200)
    price.sat = 11
    expect((await present(shop.url('/jokes/1'), credential)).status).toBe(402)
    price.sat = 10
    resource.name = 'another'
    expect((await present(shop.url('/jokes/1'), credential)).status).toBe(402)
    resource.name = 'cheap'
    expect((await present(shop.url('/jokes/1'), credential)).status).toBe(200)
  })
})

describe('selling 10: unpaid visits are limited', () => {
  const visit = (url: string, address: string): Promise<Response> => fetch(url, { headers: { 'x-forwarded-for': address } })
  const payments = async (): Promise<number> => (await storeOf(market.server)`SELECT 1 FROM gateway_payments`).length

  test.each(SHOPS.slice(0, 3))(
    '%s: unpaid visits per address are limited, even if concurrent; a paid one frees its slot',
    async (name, openShop) => {
      vi.spyOn(console, 'error').mockImplementation(() => undefined)
      // Visits are counted per process, so each shop gets its own visitors.
      const [here, there] = [`192.0.2.${SHOPS.findIndex(([shop]) => shop === name)}`, `198.51.100.${name.length}`]
      const shop = await openShop({ ...market.terms, maxOpenVisits: 3 })
      const url = shop.url('/jokes/1')
      const before = await payments()
      const answers = await Promise.all(Array.from({ length: 10 }, () => visit(url, here)))
      const open = answers.filter(({ status }) => status === 402)
      const limited = answers.filter(({ status }) => status === 429)
      expect([open.length, limited.length]).toEqual([3, 7])
      for (const answer of limited) {
        expect([challengesIn(answer), answer.headers.get('cache-control')]).toEqual([[], 'no-store'])
        expect(Number(answer.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
      }
      expect((await payments()) - before).toBe(3)
      expect(types().filter((type) => type === 'limited')).toHaveLength(7)
      expect((await visit(shop.url('/public'), here)).status).toBe(429)
      expect((await visit(url, there)).status).toBe(402)
      const credential = await market.credentialFor(challengesIn(open[0] as Response)[0] ?? '')
      expect((await present(url, credential)).status).toBe(200)
      expect((await visit(url, here)).status).toBe(402)
      expect((await visit(url, here)).status).toBe(429)
    },
  )

  test('without a client address there is no limit; clientAddress can set one', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => undefined)
    const unknown = nextPaywall({ ...market.terms, maxOpenVisits: 1 }, () => new Response('joke'))
    const clientAddress = (request: Request): string | undefined => request.headers.get('x-real-ip') ?? undefined
    const known = nextPaywall({ ...market.terms, maxOpenVisits: 1, clientAddress }, () => new Response('joke'))
    const request = (): Request => new Request('http://shop/joke', { headers: { 'x-real-ip': '2001:db8::1' } })
    expect([(await unknown(request())).status, (await unknown(request())).status]).toEqual([402, 402])
    expect([(await known(request())).status, (await known(request())).status]).toEqual([402, 429])
  })
})
