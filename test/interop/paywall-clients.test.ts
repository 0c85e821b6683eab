import { createRequire } from 'node:module'
import { fetch402, fetchWithL402 } from '@getalby/lightning-tools/402'
import { fetchWithMpp } from '@getalby/lightning-tools/402/mpp'
import { Lsat } from 'lsat-js'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { challengesIn, Market } from '../../sdk/test/paywall-harness.ts'
import { JOKE, SHOPS, type Shop } from '../../sdk/test/paywall-shops.ts'
import { openProxy } from '../../sdk/test/shops/proxy.ts'

/** Published third-party clients against the paywall in every framework. */

const require = createRequire(import.meta.url)
const { setupL402Interceptor, MemoryTokenStore, PaymentResult } = require('l402')
const { default: axios } = createRequire(require.resolve('l402'))('axios')

let market: Market
beforeAll(async () => {
  market = await Market.open()
})
beforeEach(() => {
  market.paid = 0
})

const GOODS = { joke: JOKE, id: '1' }

describe.each([...SHOPS, ['the proxy', openProxy] as const])('%s', (_name, open) => {
  let [mpp, l402, both, day]: Shop[] = []
  const at = (shop: Shop | undefined): string => shop?.url('/jokes/1') ?? ''
  beforeAll(async () => {
    mpp = await open(market.terms)
    l402 = await open({ ...market.terms, protocol: 'l402' })
    both = await open({ ...market.terms, protocol: 'both' })
    day = await open({ ...market.terms, protocol: 'both', l402: { reuse: '24h' } })
  })

  test('MPP 57: fetchWithMpp and fetch402 (Alby) pay once and get what they paid for, with the receipt', async () => {
    for (const client of [fetchWithMpp, fetch402]) {
      const answer = await client(at(mpp), {}, { wallet: market.wallet })
      expect([answer.status, await answer.json()]).toEqual([200, GOODS])
      expect(answer.payment).toMatchObject({ paid: true, amountSat: 10 })
      expect(answer.headers.get('payment-receipt')).toMatch(/^[\w-]+$/)
    }
    expect(market.paid).toBe(2)
  })

  test('L402 14: fetchWithL402 and fetch402 (Alby) pay once, even with two offers', async () => {
    for (const [client, shop] of [
      [fetchWithL402, l402],
      [fetch402, l402],
      [fetch402, both],
    ] as const) {
      const answer = await client(at(shop), {}, { wallet: market.wallet })
      expect([answer.status, await answer.json()]).toEqual([200, GOODS])
    }
    expect(market.paid).toBe(3)
  })

  test('L402 15: the l402 interceptor pays once, even with two offers; its next request needs no payment if the credential is reusable', async () => {
    for (const [shop, paid] of [
      [l402, 1],
      [day, 1],
      [both, 2],
    ] as const) {
      market.paid = 0
      const shopper = axios.create({ proxy: false })
      const purse = {
        payInvoice: async (invoice: string) => new PaymentResult((await market.wallet.payInvoice({ invoice })).preimage, true),
      }
      setupL402Interceptor(shopper, purse, new MemoryTokenStore())
      for (let time = 0; time < 2; time++) expect((await shopper.get(at(shop))).data).toEqual(GOODS)
      expect(market.paid).toBe(paid)
    }
  })

  test('L402 16, 20: the token of lsat-js is accepted under the old name', async () => {
    const [challenge = ''] = challengesIn(await fetch(at(l402)))
    const lsat = Lsat.fromHeader(challenge)
    lsat.setPreimage((await market.wallet.payInvoice({ invoice: lsat.invoice })).preimage)
    const answer = await fetch(at(l402), { headers: { authorization: lsat.toToken() } })
    expect([answer.status, await answer.json()]).toEqual([200, GOODS])
  })
})
