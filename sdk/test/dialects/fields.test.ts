import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { challengesIn, Market, parametersOf, present } from '../paywall-harness.ts'
import { type Opening, SHOPS } from '../paywall-shops.ts'
import { ALL, buyX402, payX402 } from './x402-buyer.ts'

/** Which header fields carry a credential, and which offers a client gets. */

const open = SHOPS[0]?.[1] as Opening
let market: Market
beforeAll(async () => {
  market = await Market.open()
})
beforeEach(() => market.renew())

const ask = (url: string, headers: Record<string, string>): Promise<Response> => fetch(url, { headers })
const offersIn = (answer: Response): string[] => [
  ...challengesIn(answer).map((challenge) => challenge.split(' ')[0] ?? ''),
  ...(answer.headers.has('payment-required') ? ['x402'] : []),
]

describe('requiresAuth: Authorization is the seller’s', () => {
  async function mppOf(url: string, headers: Record<string, string> = {}): Promise<{ challenge: string; credential: string }> {
    const challenge = challengesIn(await ask(url, headers)).find((one) => one.startsWith('Payment ')) ?? ''
    return { challenge, credential: await market.credentialFor(challenge) }
  }

  test.each(SHOPS)('C52, C69: %s: MPP is paid in Payment-Authorization, beside a login', async (_name, openShop) => {
    const shop = await openShop({ ...market.terms, protocols: ALL, requiresAuth: true })
    const url = shop.url('/jokes/1')
    const login = { authorization: 'Bearer abc.def' }
    const { challenge, credential } = await mppOf(url, login)
    expect(parametersOf(challenge).header).toBe('Payment-Authorization')
    const paid = await ask(url, { ...login, 'payment-authorization': credential })
    expect([paid.status, paid.headers.has('payment-receipt'), paid.headers.get('cache-control')]).toEqual([200, true, 'private'])
    expect((await ask(url, { 'payment-authorization': credential })).status).toBe(402)
  })

  test('C69: the same credential in Authorization is 400 and no challenge, because it may be paid', async () => {
    const shop = await open({ ...market.terms, requiresAuth: true })
    const { credential } = await mppOf(shop.url('/jokes/1'))
    const answer = await present(shop.url('/jokes/1'), credential)
    expect([answer.status, offersIn(answer)]).toEqual([400, []])
    expect(await answer.json()).toMatchObject({
      type: 'https://paymentauth.org/problems/bad-request',
      detail: expect.stringMatching(/Do not pay again.*Payment-Authorization/),
    })
    expect((await ask(shop.url('/jokes/1'), { 'payment-authorization': credential })).status).toBe(200)
  })

  test('C69: what was sold before the option was set stays good, and a Payment scheme of the seller’s own is left alone', async () => {
    const before = await open(market.terms)
    const after = await open({ ...market.terms, requiresAuth: true })
    const credential = await market.buy(before.url('/jokes/1'))
    const own = await present(after.url('/jokes/1'), 'Payment token-of-the-seller')
    expect([own.status, market.events.at(-1)?.type]).toEqual([402, 'challenged'])
    expect((await present(after.url('/jokes/1'), credential)).status).toBe(200)
  })
})

describe('more than one credential, or one in the wrong field', () => {
  test.each(SHOPS)('C69: %s: two credentials are 400, and neither is used up', async (_name, openShop) => {
    const shop = await openShop({ ...market.terms, protocols: ALL })
    const url = shop.url('/jokes/1')
    const unpaid = await fetch(url)
    const [l402 = '', mpp = ''] = await Promise.all(challengesIn(unpaid).map((challenge) => market.credentialFor(challenge)))
    const x402 = await payX402(market, unpaid.headers.get('payment-required') ?? '')
    const pairs = [
      { authorization: mpp, 'payment-signature': x402 },
      { authorization: l402, 'payment-authorization': mpp },
      { authorization: `${l402}, ${mpp}` },
      { 'payment-signature': `${x402}, ${x402}` },
    ]
    for (const headers of pairs) {
      const answer = await ask(url, headers as unknown as Record<string, string>)
      expect([headers, answer.status, offersIn(answer)]).toEqual([headers, 400, []])
    }
    for (const one of [{ authorization: mpp }, { authorization: l402 }, { 'payment-signature': x402 }])
      expect((await ask(url, one as Record<string, string>)).status).toBe(200)
    expect(shop.delivered).toBe(3)
  })

  test('C69: an L402 credential in Payment-Authorization is not MPP: 400, and it stays good', async () => {
    const shop = await open({ ...market.terms, protocols: ['mpp', 'l402'] })
    const url = shop.url('/jokes/1')
    const credential = await market.buy(url)
    const answer = await ask(url, { 'payment-authorization': credential })
    expect([answer.status, offersIn(answer)]).toEqual([400, []])
    expect((await present(url, credential)).status).toBe(200)
  })

  test('selling 8: a second credential is noticed even if the first is known', async () => {
    const shop = await open({ ...market.terms, protocol: 'l402' })
    const other = await open({ ...market.terms, protocols: ['x402'] })
    const url = shop.url('/jokes/1')
    const authorization = await market.buy(url)
    expect((await present(url, authorization)).status).toBe(200)
    const signature = await buyX402(market, other.url('/jokes/1'))
    expect((await ask(url, { authorization, 'payment-signature': signature })).status).toBe(400)
    expect((await present(url, authorization)).status).toBe(200)
  })
})

describe('negotiation', () => {
  test.each(SHOPS)(
    'C69: %s: a client that accepts lightning/charge gets MPP only; one that says nothing usable gets all',
    async (_name, openShop) => {
      const shop = await openShop({ ...market.terms, protocols: ALL })
      const url = shop.url('/jokes/1')
      for (const accept of ['lightning/charge', 'tempo/charge, */*;q=0.1'])
        expect(offersIn(await ask(url, { 'accept-payment': accept }))).toEqual(['Payment'])
      for (const accept of ['tempo/charge', 'lightning/charge;q=0', 'nonsense'])
        expect(offersIn(await ask(url, { 'accept-payment': accept }))).toEqual(['L402', 'Payment', 'x402'])
    },
  )

  test('C69: a shop without MPP does not negotiate', async () => {
    const shop = await open({ ...market.terms, protocols: ['l402', 'x402'] })
    expect(offersIn(await ask(shop.url('/jokes/1'), { 'accept-payment': 'lightning/charge' }))).toEqual(['L402', 'x402'])
  })
})
