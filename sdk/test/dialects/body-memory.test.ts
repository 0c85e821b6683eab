import { request } from 'node:http'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { x402Credential } from '../../../server/test/support/gateway.ts'
import { eventually } from '../../../server/test/support/server.ts'
import { Market } from '../paywall-harness.ts'
import { SHOPS, type Shop } from '../paywall-shops.ts'
import { ALL, buyX402, presentX402, requiredBy } from './x402-buyer.ts'

/** Nest and Elysia parse the body themselves before the paywall sees the request. */
const READING = SHOPS.filter(([name]) => !/nest|elysia/i.test(name))
const MIB = 1_048_576

let market: Market
beforeAll(async () => {
  market = await Market.open()
})
beforeEach(() => market.renew())

const post = (body: string): RequestInit => ({ method: 'POST', body, headers: { 'content-type': 'text/plain' } })

describe.each(READING)('%s', (_name, open) => {
  let shop: Shop
  let url: string
  beforeEach(async () => {
    shop = await open({ ...market.terms, protocols: ALL, maxBodyBytes: 64 * MIB })
    url = shop.url('/echo')
  })

  test('C79: when bodies fill the memory for them, an x402 payment with a body gets 503 and no challenge, until they are gone', async () => {
    const invented = x402Credential(requiredBy(await fetch(url, post('x'))).accepts[0], '0'.repeat(64))
    const paid = await buyX402(market, url, post('bought'))
    const held = request(url, { method: 'POST', headers: { 'payment-signature': invented, 'content-length': 48 * MIB } })
    held.on('error', () => undefined)
    // More than 32 MiB of it, which take 64, are in the shop then: sockets hold at most 10.
    await new Promise((resolve) => held.write(Buffer.alloc(46 * MIB), resolve))

    const answer = await presentX402(url, invented, post('y'))
    expect(answer.status).toBe(503)
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
    expect([answer.headers.has('payment-required'), answer.headers.has('www-authenticate')]).toEqual([false, false])
    expect(await answer.json()).toMatchObject({ detail: expect.stringMatching(/Do not pay again/) })
    expect((await presentX402(url, paid, post('bought'))).status).toBe(503)
    const unpaid = await fetch(url, post('z'))
    expect([unpaid.status, unpaid.headers.has('payment-required'), unpaid.headers.has('www-authenticate')]).toEqual([
      402,
      false,
      true,
    ])
    expect((await fetch(shop.url('/jokes/1'))).headers.has('payment-required')).toBe(true)

    held.destroy()
    await eventually(async () => (await presentX402(url, invented, post('y'))).status === 402, 'the memory to be free')
    const bought = await presentX402(url, paid, post('bought'))
    expect([bought.status, await bought.text()]).toEqual([200, 'bought'])
  })
})

test.each(READING.filter(([name]) => ['Express 5', 'Request → Response'].includes(name)))(
  'C79: %s: a body gives its memory back after a refusal and after a delivery',
  async (_name, open) => {
    const shop = await open({ ...market.terms, protocols: ALL, maxBodyBytes: 64 * MIB })
    const [url, body] = [shop.url('/echo'), 'x'.repeat(7_000_000)]
    // Each takes 8 MiB.
    for (let time = 0; time < 9; time++) {
      const credential = await buyX402(market, url, post(body))
      const answer = await presentX402(url, credential, post(body))
      expect([answer.status, (await answer.text()).length]).toEqual([200, body.length])
    }
  },
)
