import { beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { eventually, sendRaw } from '../../server/test/harness.ts'
import { challengesIn, Market, present } from './paywall-harness.ts'
import { JOKE, SHOPS, type Shop } from './paywall-shops.ts'

/** The same promises in every framework. */

vi.setConfig({ testTimeout: 60_000 })

let market: Market
beforeAll(async () => {
  market = await Market.open()
}, 60_000)

const receiptOf = (answer: Response): any =>
  JSON.parse(Buffer.from(answer.headers.get('payment-receipt') ?? '', 'base64url').toString())

describe.each(SHOPS)('%s', (_name, open) => {
  let shop: Shop
  let bilingual: Shop
  beforeAll(async () => {
    shop = await open(market.terms)
    bilingual = await open({ ...market.terms, protocol: ['mpp', 'l402'] })
  })
  beforeEach(() => {
    market.events.length = 0
  })

  test('MPP §8: without a credential it answers 402, with a challenge that nobody may keep, and says in plain words what to do', async () => {
    const answer = await fetch(shop.url('/jokes/1'))
    expect(answer.status).toBe(402)
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(answer.headers.get('content-type')).toMatch(/^application\/problem\+json/)
    expect(challengesIn(answer)).toEqual([expect.stringMatching(/^Payment id="/)])
    expect(await answer.json()).toEqual({
      type: 'https://paymentauth.org/problems/payment-required',
      title: 'Payment Required',
      status: 402,
      detail: expect.stringContaining('"GET /jokes/:id" costs 10 sat'),
      amountSat: 10,
      description: 'GET /jokes/:id',
      protocols: ['mpp'],
    })
    expect(market.events).toMatchObject([{ type: 'challenged', amountSat: 10, paymentIds: [expect.any(String)] }])
  })

  test('MPP §8: paid, it delivers once, with the receipt, for nobody else’s cache', async () => {
    const before = shop.delivered
    const credential = await market.buy(shop.url('/jokes/1'))
    const answer = await present(shop.url('/jokes/1'), credential)
    expect([answer.status, await answer.json()]).toEqual([200, { joke: JOKE, id: '1' }])
    expect(answer.headers.get('cache-control')).toBe('private')
    expect(receiptOf(answer)).toMatchObject({ method: 'lightning', status: 'success' })
    const again = await present(shop.url('/jokes/1'), credential)
    expect([again.status, again.headers.get('payment-receipt')]).toEqual([402, null])
    expect(challengesIn(again)).toHaveLength(1)
    expect(((await again.json()) as { detail: string }).detail).toMatch(/used already/)
    expect(shop.delivered).toBe(before + 1)
    expect(market.events.map(({ type }) => type)).toEqual(['challenged', 'delivered', 'refused'])
  })

  test('MPP §9: two offers, L402 first whatever the order of the wish; either is paid for', async () => {
    const url = bilingual.url('/jokes/1')
    const challenges = challengesIn(await fetch(url))
    expect(challenges.map((challenge) => challenge.split(' ')[0])).toEqual(['L402', 'Payment'])
    for (const challenge of challenges) {
      const answer = await present(url, await market.credentialFor(challenge))
      expect([answer.status, await answer.json()]).toEqual([200, { joke: JOKE, id: '1' }])
      expect(answer.headers.has('payment-receipt')).toBe(challenge.startsWith('Payment'))
      expect(answer.headers.get('cache-control')).toBe('private')
    }
  })

  test('C45: a delivery that failed can be repeated with the same credential; until then there is no receipt', async () => {
    const credential = await market.buy(shop.url('/broken'))
    for (let time = 0; time < 2; time++) {
      const answer = await present(shop.url('/broken'), credential)
      expect(answer.status).toBe(500)
      expect(answer.headers.get('payment-receipt')).toBeNull()
    }
  })

  test('MPP §8: what the handler says of caches counts as far as it keeps others out', async () => {
    const answer = await present(shop.url('/public'), await market.buy(shop.url('/public')))
    expect([answer.status, await answer.text()]).toEqual([200, 'public'])
    expect(answer.headers.get('cache-control')).toBe('max-age=60, private')
  })

  test('a customer who leaves is not worked for any more', async () => {
    market.wire.holdMs = 1_500
    const controller = new AbortController()
    const left = present(shop.url('/jokes/1'), 'Bearer of-somebody', { signal: controller.signal }).catch((error) => error.name)
    await eventually(() => market.wire.underWay === 1, 'the gateway to be asked')
    controller.abort()
    expect(await left).toBe('AbortError')
    await eventually(() => market.wire.underWay === 0, 'the question to be taken back', 1_000)
    market.wire.holdMs = 0
    // Neither a challenge nor a failure: nobody was there for either.
    expect(market.events).toEqual([])
  })
})

test('RFC 9110: where lines can be told apart, two offers are two lines', async () => {
  for (const [name, open] of SHOPS.slice(0, 2)) {
    const shop = await open({ ...market.terms, protocol: 'both' })
    const { port } = new URL(shop.url('/'))
    const text = await sendRaw(Number(port), 'GET /jokes/1 HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n')
    const lines = text.split('\r\n').filter((line) => /^www-authenticate:/i.test(line))
    expect([name, lines.map((line) => line.split(' ')[1])]).toEqual([name, ['L402', 'Payment']])
  }
})
