import { get } from 'node:http'
import type { Request as ExpressRequest } from 'express'
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { preimageFrom, storeOf, x402Credential } from '../../../server/test/support/gateway.ts'
import { eventually } from '../../../server/test/support/server.ts'
import { paywall as nextPaywall } from '../../src/paywall/adapters/next.ts'
import { challengesIn, Market, present } from '../paywall-harness.ts'
import { type Opening, SHOPS, type Shop } from '../paywall-shops.ts'
import { ALL, buyX402, payX402, presentX402, requiredBy } from './x402-buyer.ts'

/** The rules of every paywall, for a customer who pays by x402. */

const open = SHOPS[0]?.[1] as Opening
let market: Market
let shop: Shop
let url: string
beforeAll(async () => {
  market = await Market.open()
})
beforeEach(async () => {
  await market.renew()
  shop = await open({ ...market.terms, protocols: ALL })
  url = shop.url('/jokes/1')
})
afterEach(() => vi.restoreAllMocks())

const MAINNET = 'lnbtc:000000000019d6689c085ae165831e93'
const types = (): string[] => market.events.map(({ type }) => type)
const offers = (answer: Response): number => challengesIn(answer).length + (answer.headers.has('payment-required') ? 1 : 0)
const redemptions = () => market.wire.seen.filter(({ path }) => path.endsWith('/redeem'))

describe('selling 1: the quoted price is honored', () => {
  async function movingShop(): Promise<{ price: { sat: number }; at: string; moving: Shop }> {
    const price = { sat: 100 }
    const moving = await open({ ...market.terms, protocols: ALL, amountSat: () => price.sat })
    return { price, at: moving.url('/jokes/1'), moving }
  }

  test.each([90, 111])('D1: paid at 100, the price is %i now: served', async (sat) => {
    const { price, at } = await movingShop()
    const credential = await buyX402(market, at)
    price.sat = sat
    expect((await presentX402(at, credential)).status).toBe(200)
  })

  test('D1: a larger increase is 409 without a challenge; the payment is unused, and can be used later than x402 would accept it', async () => {
    const { price, at } = await movingShop()
    const credential = await buyX402(market, at)
    price.sat = 112
    const answer = await presentX402(at, credential)
    expect([answer.status, offers(answer)]).toEqual([409, 0])
    const { paymentId } = (await answer.json()) as { paymentId: string }
    expect(market.events.at(-1)).toMatchObject({ type: 'refused', code: 'price_changed', presented: paymentId, paymentIds: [] })
    const paid = await market.client.payments.get(paymentId)
    expect([paid.protocol, paid.status, paid.redeemedAt]).toEqual(['x402', 'paid', null])
    price.sat = 100
    expect((await presentX402(at, credential)).status).toBe(200)
    price.sat = 112
    const used = await presentX402(at, credential)
    expect([used.status, offers(used)]).toEqual([402, 3])
  })

  test('D1: a delivery in progress gets no challenge if the price rises', async () => {
    const { price, moving } = await movingShop()
    const credential = await buyX402(market, moving.url('/slow'))
    let resume = (): void => undefined
    moving.work = () =>
      new Promise((resolve) => {
        resume = resolve
      })
    const first = presentX402(moving.url('/slow'), credential)
    await eventually(() => moving.started === 1, 'the handler to be called')
    price.sat = 200
    const second = await presentX402(moving.url('/slow'), credential)
    expect([second.status, offers(second)]).toEqual([409, 0])
    resume()
    expect((await first).status).toBe(200)
  })
})

describe('a payment for something else', () => {
  test('selling 2: another resource is refused with new challenges, and does not use it up', async () => {
    const credential = await buyX402(market, url)
    const dear = await open({ ...market.terms, protocols: ALL, resource: 'A better joke', publicUrl: new URL(url).origin })
    for (const at of [shop.url('/public'), dear.url('/jokes/2'), dear.url('/jokes/1')]) {
      const answer = await presentX402(at, credential)
      expect([at, answer.status, offers(answer)]).toEqual([at, 402, 3])
    }
    expect(market.events.at(-1)).toMatchObject({ code: 'other_terms', presented: expect.stringMatching(/^pay_/) })
    expect((await presentX402(url, credential)).status).toBe(200)
  })

  test('selling 1: another form of the request is 409 without a challenge; the payment is unused, until it was used', async () => {
    const credential = await buyX402(market, url)
    for (const at of [shop.url('/jokes/2'), shop.url('/jokes/1?x')])
      for (const method of ['GET', 'HEAD']) {
        const answer = await presentX402(at, credential, { method })
        expect([at, answer.status, offers(answer)]).toEqual([at, 409, 0])
      }
    expect(market.events.at(-1)).toMatchObject({
      code: 'other_request',
      presented: expect.stringMatching(/^pay_/),
      paymentIds: [],
    })
    expect((await presentX402(url, credential)).status).toBe(200)
    expect((await presentX402(shop.url('/jokes/2'), credential)).status).toBe(402)
  })

  test('selling 1: a customer who paid is not asked again after a deploy that changes the public URL or the bound headers', async () => {
    const credential = await buyX402(market, url)
    for (const change of [
      { publicUrl: 'https://shop.example' },
      { bindHeaders: ['x-tier'] },
      { publicUrl: 'https://x.example', amountSat: 20 },
    ]) {
      const deployed = await open({ ...market.terms, protocols: ALL, ...change })
      const answer = await presentX402(deployed.url('/jokes/1'), credential)
      expect([change, answer.status, offers(answer)]).toEqual([change, 409, 0])
      expect(await answer.json()).toMatchObject({ detail: expect.stringMatching(/Do not pay again.*pay_/) })
    }
    expect((await presentX402(url, credential)).status).toBe(200)
  })

  test('C69: a header that is bound changes what is sold; its name is in the requirements', async () => {
    const german = await open({ ...market.terms, protocols: ['x402'], bindHeaders: ['X-Tier', 'Accept-Language'] })
    const at = german.url('/jokes/1')
    const headers = { 'accept-language': 'de' }
    const unpaid = await fetch(at, { headers })
    expect(requiredBy(unpaid).accepts[0].extra.requestBindingParams).toEqual({ headers: ['accept-language', 'x-tier'] })
    const credential = await payX402(market, unpaid.headers.get('payment-required') ?? '')
    for (const other of [{ 'accept-language': 'en' }, { ...headers, 'x-tier': '' }])
      expect((await presentX402(at, credential, { headers: other })).status).toBe(409)
    expect((await presentX402(at, credential, { headers })).status).toBe(200)
    const odd = await fetch(at, { headers: { 'accept-language': 'dé' } })
    expect([odd.status, odd.headers.has('payment-required')]).toEqual([400, false])
  })

  test.each([
    ['invalid base64', '!!!'],
    ['not a payment', Buffer.from('{"x402Version":1}').toString('base64')],
    ['without an invoice', x402Credential({ scheme: 'exact' }, 'x')],
    ['12 KB of letters', 'A'.repeat(12_000)],
  ])('C69: PAYMENT-SIGNATURE is %s: 402 without asking the gateway about it', async (_what, credential) => {
    const answer = await presentX402(url, credential)
    expect([answer.status, requiredBy(answer).error]).toEqual([402, 'invalid_payload'])
    expect(await answer.json()).toMatchObject({ type: 'https://paymentauth.org/problems/invalid-payload' })
    expect(market.wire.seen.map(({ path }) => path)).toEqual(['/v1/gateway/payments/batch'])
  })

  test.each<[string, Record<string, string>, string]>([
    ['of another scheme', { scheme: 'upto' }, 'unsupported_scheme'],
    ['of another network', { network: 'eip155:8453' }, 'unsupported_network'],
    ['on another Lightning network', { network: MAINNET }, 'invalid_exact_lnbtc_invoice_currency_mismatch'],
    ['for an unreadable invoice', { invoice: 'lnbcrt10n1invented' }, 'invalid_exact_lnbtc_invoice_decode_failed'],
  ])(
    'C79: an x402 payment %s gets its reason without asking the gateway about it',
    async (_what, { invoice, ...other }, reason) => {
      const [required] = requiredBy(await fetch(url)).accepts
      const extra = { ...required.extra, ...(invoice ? { invoice } : {}) }
      const answer = await presentX402(url, x402Credential({ ...required, ...other, extra }, '0'.repeat(64)))
      expect([answer.status, requiredBy(answer).error]).toEqual([402, reason])
      expect(redemptions()).toEqual([])
    },
  )

  test('C69: a shop that does not offer x402 refuses it with its own challenges', async () => {
    const mpp = await open(market.terms)
    const answer = await presentX402(mpp.url('/jokes/1'), await buyX402(market, url))
    expect([answer.status, challengesIn(answer).length, answer.headers.has('payment-required')]).toEqual([402, 1, false])
  })
})

describe('selling 3: one payment, one delivery', () => {
  test('C45: of twenty concurrent requests with one payment, one is served', async () => {
    const credential = await buyX402(market, url)
    const answers = await Promise.all(Array.from({ length: 20 }, () => presentX402(url, credential)))
    expect([answers.filter(({ status }) => status === 200).length, shop.delivered]).toEqual([1, 1])
    for (const answer of answers) if (answer.status === 409) expect(offers(answer)).toBe(0)
  })

  test('C45: a customer who returns right after the response is not told that the delivery is in progress', async () => {
    const credential = await buyX402(market, url)
    market.wire.holdMs = 200
    expect((await presentX402(url, credential)).status).toBe(200)
    expect((await presentX402(url, credential)).status).toBe(402)
  })

  test('C45: a lost response of the gateway claims nothing twice', async () => {
    const credential = await buyX402(market, url)
    market.wire.faultsOn = /\/redeem$/
    market.wire.faults = ['lose answer']
    expect((await presentX402(url, credential)).status).toBe(200)
    expect(new Set(redemptions().map(({ body }) => body)).size).toBe(1)
    expect([redemptions().length, shop.delivered]).toEqual([2, 1])
  })

  test('C48: a claim whose response never came is released, and the same payment is served', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => undefined)
    const hurried = await open({ ...market.terms, protocols: ALL, patienceMs: 3_000 })
    const at = hurried.url('/jokes/1')
    const credential = await buyX402(market, at)
    market.wire.faultsOn = /\/redeem$/
    market.wire.faults = Array(100).fill('lose answer')
    const answer = await presentX402(at, credential)
    expect([answer.status, offers(answer)]).toEqual([503, 0])
    market.wire.faults = []
    await eventually(async () => (await presentX402(at, credential)).status === 200, 'the release')
    expect(market.wire.seen.filter(({ path }) => path.endsWith('/release'))).not.toEqual([])
    expect(hurried.delivered).toBe(1)
  })

  test('C48: such a claim is also released if the gateway stays unreachable for a while', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => undefined)
    const credential = await buyX402(market, url)
    market.wire.faultsOn = /\/(redeem|validate)$/
    market.wire.faults = Array(1_000).fill('lose answer')
    const controller = new AbortController()
    const left = presentX402(url, credential, { signal: controller.signal }).catch(({ name }) => name)
    await eventually(() => redemptions().length > 0, 'the redemption')
    controller.abort()
    expect(await left).toBe('AbortError')
    // More than the attempts of one call of the client.
    const validations = () => market.wire.seen.filter(({ path }) => path.endsWith('/validate'))
    await eventually(() => validations().length > 4, 'the repetitions')
    market.wire.faults = []
    await eventually(async () => (await presentX402(url, credential)).status === 200, 'the release')
    expect(shop.delivered).toBe(1)
  })
})

describe('money that has not arrived, or arrived too late', () => {
  test('C63: until the node confirms the settlement, the response is 503 without a challenge', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => undefined)
    const hurried = await open({ ...market.terms, protocols: ALL, patienceMs: 3_000 })
    const unpaid = await fetch(hurried.url('/jokes/1'))
    const challenge = unpaid.headers.get('payment-required') ?? ''
    const credential = x402Credential(requiredBy(unpaid).accepts[0], await preimageFrom(market.node, { challenge }))
    const answer = await presentX402(hurried.url('/jokes/1'), credential)
    expect([answer.status, offers(answer), hurried.delivered]).toEqual([503, 0, 0])
  })

  test('C64, C68: what was paid and is too late for x402 gets 409 and no challenge; what was not paid gets a new one', async () => {
    const credential = await buyX402(market, url)
    market.wire.faultsOn = /\/redeem$/
    const late = (settled: boolean) => ({
      status: 410,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ error: { code: 'payment_expired', message: '', settled, paymentId: 'pay_late' } }),
    })
    market.wire.faults = [late(true), late(false)]
    const paid = await presentX402(url, credential)
    expect([paid.status, offers(paid)]).toEqual([409, 0])
    expect(((await paid.json()) as { detail: string }).detail).toMatch(/Do not pay again.*pay_late/)
    const unpaid = await presentX402(url, credential)
    expect([unpaid.status, offers(unpaid)]).toEqual([402, 3])
  })
})

describe('the URL and the body of a request', () => {
  const lastUrl = async (at: string, headers: Record<string, string> = {}): Promise<string> =>
    requiredBy(await fetch(at, { headers })).resource.url

  test('C69: the URL is the one that customers use: from a trusted proxy, or as configured', async () => {
    const proxied = { 'x-forwarded-host': 'shop.example:8443', 'x-forwarded-proto': 'https' }
    for (const [name, openShop] of SHOPS.slice(0, 3)) {
      const trusting = await openShop({ ...market.terms, protocols: ALL })
      expect([name, await lastUrl(trusting.url('/jokes/1?a=%2f'), proxied)]).toEqual([
        name,
        'https://shop.example:8443/jokes/1?a=%2f',
      ])
    }
    const [, openPlain] = SHOPS.find(([name]) => name === 'node:http') ?? []
    const wary = await (openPlain as Opening)({ ...market.terms, protocols: ALL })
    expect(await lastUrl(wary.url('/jokes/1'), proxied)).toBe(wary.url('/jokes/1'))
    const named = await open({ ...market.terms, protocols: ALL, publicUrl: 'https://api.example/v2/' })
    expect(await lastUrl(named.url('/jokes/1?a=b'))).toBe('https://api.example/v2/jokes/1?a=b')
    const computed = await open({
      ...market.terms,
      protocols: ALL,
      publicUrl: (request: { originalUrl: string }) => `https://x.example${request.originalUrl}`,
    })
    expect(await lastUrl(computed.url('/jokes/1'))).toBe('https://x.example/jokes/1')
  })

  test('C69: with `publicUrl`, an encoded path is bound as it was sent, in every framework', async () => {
    for (const [name, openShop] of SHOPS) {
      const named = await openShop({ ...market.terms, protocols: ['x402'], publicUrl: 'https://api.example/v2' })
      for (const path of ['/jokes/caf%C3%A9?q=%20', '/jokes/a%2Cb'])
        expect([name, await lastUrl(named.url(path))]).toEqual([name, `https://api.example/v2${path}`])
    }
  })

  test('C69: a Host that would change the path is not bound', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => undefined)
    const [, openPlain] = SHOPS.find(([name]) => name === 'node:http') ?? []
    const plain = await (openPlain as Opening)({ ...market.terms, protocols: ['x402'] })
    const { port } = new URL(plain.url('/'))
    for (const host of ['shop.example/jokes', 'shop.example?', 'shop.example#', 'me@shop.example']) {
      const status = await new Promise((resolve) => {
        get({ host: '127.0.0.1', port, path: '/jokes/1', headers: { host } }, (answer) => {
          answer.resume()
          resolve([answer.statusCode, answer.headers['payment-required']])
        })
      })
      expect([host, status]).toEqual([host, [400, undefined]])
    }
  })

  test('C69: a URL that x402 cannot bind leaves the other offers', async () => {
    const long = await fetch(shop.url(`/jokes/${'x'.repeat(1_000)}`))
    expect([long.status, challengesIn(long).length, long.headers.has('payment-required')]).toEqual([402, 2, false])
  })

  test('C69: a body that was already parsed leaves the other offers and says what to change; with its bytes kept, x402 is offered', async () => {
    const lines: string[] = []
    vi.spyOn(console, 'error').mockImplementation((line) => void lines.push(String(line)))
    const options = { ...market.terms, protocols: ALL, publicUrl: 'https://shop.example' }
    const charge = nextPaywall(options, (request: Request) => new Response(request.url))
    const sent = (): Request => new Request('https://shop.example/a', { method: 'POST', body: 'x' })
    const parsed = sent()
    await parsed.text()
    const answer = await charge(parsed)
    expect([answer.status, offers(answer)]).toEqual([402, 2])
    expect(lines).toEqual([expect.stringMatching(/before the parser.*rawBody/)])
    expect(offers(await charge(sent()))).toBe(3)
  })

  test('C69: Next, Request → Response: without `publicUrl`, x402 is bound to whatever URL the server reports, which is said once', async () => {
    const lines: string[] = []
    vi.spyOn(console, 'error').mockImplementation((line) => void lines.push(String(line)))
    const sell = (more: object): ((request: Request) => Promise<Response>) =>
      nextPaywall({ ...market.terms, ...more }, () => new Response('sold'))
    const sure = [
      {},
      { protocols: ALL, publicUrl: 'https://shop.example' },
      { protocols: ALL, publicUrl: (one: Request) => one.url },
    ]
    for (const more of sure) await sell(more)(new Request('http://container/'))
    expect(lines).toEqual([])
    const unsure = sell({ protocols: ALL })
    for (let time = 0; time < 2; time++) await unsure(new Request('http://container/'))
    expect(lines).toEqual([expect.stringMatching(/`publicUrl`/)])
  })

  test('C69: Express keeps the bytes for a price that depends on the body', async () => {
    const { default: express } = await import('express')
    const { paywall } = await import('../../src/paywall/adapters/express.ts')
    const app = express()
    const keep = express.json({
      verify: (request, _response, bytes) => {
        Object.assign(request, { rawBody: bytes })
      },
    })
    const words = (request: ExpressRequest): number => request.body.text.split(' ').length
    const resource = (request: ExpressRequest): string => `${words(request)} words`
    app.post('/', keep, paywall({ ...market.terms, protocols: ['x402'], amountSat: words, resource }), (request, response) => {
      response.json(request.body)
    })
    const server = app.listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const at = `http://127.0.0.1:${(server.address() as { port: number }).port}/`
    const sent = (text: string) => ({
      method: 'POST',
      body: JSON.stringify({ text }),
      headers: { 'content-type': 'application/json' },
    })
    const credential = await buyX402(market, at, sent('one two'))
    expect((await presentX402(at, credential, sent('one two three'))).status).toBe(402)
    expect((await presentX402(at, credential, sent('two one'))).status).toBe(409)
    expect(await (await presentX402(at, credential, sent('one two'))).json()).toEqual({ text: 'one two' })
    server.close()
  })
})

test('selling 10: a visit with three offers takes one slot, which any of them frees', async () => {
  vi.spyOn(console, 'error').mockImplementation(() => undefined)
  const clientAddress = (): string => '203.0.113.7'
  const busy = await open({ ...market.terms, protocols: ALL, maxOpenVisits: 1, clientAddress })
  const at = busy.url('/jokes/1')
  const credential = await buyX402(market, at)
  expect((await fetch(at)).status).toBe(429)
  expect((await presentX402(at, credential)).status).toBe(200)
  expect((await fetch(at)).status).toBe(402)
  expect(types()).toEqual(['challenged', 'limited', 'delivered', 'challenged'])
})

test('selling 5: ready() checks that x402 can be offered', async () => {
  const { paywall } = await import('../../src/paywall/adapters/express.ts')
  await expect(paywall({ ...market.terms, protocols: ALL }).ready()).resolves.toBeUndefined()
  const [row] = await storeOf(market.server)`SELECT protocol FROM gateway_payments ORDER BY created_at DESC LIMIT 1`
  expect(row?.protocol).toBe('x402')
})

test('selling 7: with several offers, an L402 credential buys one delivery', async () => {
  const pair = await open({ ...market.terms, protocols: ['l402', 'x402'] })
  const credential = await market.buy(pair.url('/jokes/1'))
  expect((await present(pair.url('/jokes/1'), credential)).status).toBe(200)
  expect((await present(pair.url('/jokes/1'), credential)).status).toBe(402)
})
