import { Challenge, Credential, Method, Receipt } from 'mppx'
import { Mppx } from 'mppx/client'
import { beforeAll, describe, expect, test } from 'vitest'
import { COST_SAT, expectNoSale, expectOneSale, FUNDS_SAT, Market, PRICE_SAT } from './harness.ts'
import { DESCRIPTION, GOODS } from './merchant.ts'
import { charge, lightningOf } from './mppx-lightning.ts'

/**
 * The protocol's reference client. It parses and re-encodes challenge and request, so only a request in canonical JSON comes back as the
 * bytes that were issued.
 */

let market: Market
beforeAll(async () => {
  market = await Market.open()
})

const lightning = lightningOf((invoice) => market.pay(invoice))

const client = () => Mppx.create({ methods: [lightning], polyfill: false })

test('MPP 2: mppx parses the challenge, and its request is one of the lightning method', async () => {
  const [challenge, ...others] = Challenge.fromResponseList(await fetch(market.url('/mpp')))
  expect(others).toEqual([])
  expect(Object.keys(challenge ?? {}).sort()).toEqual(['expires', 'id', 'intent', 'method', 'realm', 'request'])
  expect(charge.schema.request.parse(challenge?.request)).toMatchObject({
    amount: String(PRICE_SAT),
    description: DESCRIPTION,
    externalId: market.merchant.asked.at(-1),
  })
  expect(Challenge.serialize(challenge as Challenge.Challenge)).toBe(
    (await market.shown(market.merchant.asked.at(-1) ?? '')).challenge,
  )
})

describe('an mppx client', () => {
  test.each(['/mpp', '/mpp?once'])('MPP 57: pays %s, its credential is accepted, and it reads the receipt', async (path) => {
    const trade = await market.trade(() => client().fetch(market.url(path)))
    const { result: response, payments, asked } = trade
    expect([response.status, await response.text()]).toEqual([200, GOODS])
    expectOneSale(trade, 'mpp')
    const receipt = Receipt.fromResponse(response)
    expect(receipt).toEqual(Receipt.deserialize(response.headers.get('payment-receipt') ?? ''))
    expect(receipt).toEqual({
      challengeId: Challenge.deserialize(asked[0]?.challenge ?? '').id,
      method: 'lightning',
      reference: payments[0]?.paymentHash,
      status: 'success',
      timestamp: expect.any(String),
    })
  })

  test('MPP 32: may identify itself, and its credential is still accepted', async () => {
    const named = Method.toClient(charge, {
      createCredential: async (parameters) => {
        const credential = Credential.deserialize(await lightning.createCredential(parameters))
        return Credential.serialize({ ...credential, source: 'did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK' })
      },
    })
    const trade = await market.trade(() => Mppx.create({ methods: [named], polyfill: false }).fetch(market.url('/mpp')))
    expect([trade.result.status, await trade.result.text()]).toEqual([200, GOODS])
    expectOneSale(trade, 'mpp')
    expect(Credential.deserialize(trade.visits[0]?.authorization ?? '').source).toMatch(/^did:key:/)
  })

  test('MPP 58: pays for each purchase, and each is redeemed', async () => {
    const shopper = client()
    const trade = await market.trade(async () => [
      await shopper.fetch(market.url('/mpp?once')),
      await shopper.fetch(market.url('/mpp?once')),
    ])
    expect(trade.result.map(({ status }) => status)).toEqual([200, 200])
    expect([trade.spentSat, trade.earnedSat]).toEqual([2 * COST_SAT, 2 * PRICE_SAT])
    expect(trade.asked.map(({ status }) => status)).toEqual(['paid', 'paid'])
  })

  test('MPP 58: a stolen credential that is sent again gets a 409 and no receipt', async () => {
    const { visits } = await market.trade(() => client().fetch(market.url('/mpp?once')))
    const authorization = visits[0]?.authorization ?? ''
    const trade = await market.trade(() => fetch(market.url('/mpp?once'), { headers: { authorization } }))
    expect([trade.result.status, trade.result.headers.get('payment-receipt')]).toEqual([402, null])
    expect(trade.visits).toMatchObject([{ status: 409, code: 'already_redeemed' }])
  })

  test('MPP 57: fails with too little money, and nothing is paid', async () => {
    const url = market.url(`/mpp?sat=${10 * FUNDS_SAT}`)
    const trade = await market.trade(() =>
      client()
        .fetch(url)
        .catch((error) => error),
    )
    expect(trade.result).toBeInstanceOf(Error)
    expect(trade.result.message).toMatch(/balance|funds/)
    expectNoSale(trade)
  })
})

describe('two offers in one 402', () => {
  test.each(['/l402+mpp', '/mpp+l402'])('MPP §9: of %s, an mppx client takes MPP, in any order', async (path) => {
    const trade = await market.trade(() => client().fetch(market.url(path)))
    expect([trade.result.status, await trade.result.text()]).toEqual([200, GOODS])
    expectOneSale(trade, 'mpp', 2)
  })

  test('MPP §9: if only L402 is offered, it fails and nothing is paid', async () => {
    const trade = await market.trade(() =>
      client()
        .fetch(market.url('/l402'))
        .catch((error) => error),
    )
    expect(trade.result).toBeInstanceOf(Error)
    expectNoSale(trade)
  })
})

describe('a merchant that cannot check a credential right now', () => {
  test('MPP §8: is paid three times and delivers nothing if it responds with 402', async () => {
    const trade = await market.trade(() => client().fetch(market.url('/mpp?deaf=402')))
    expect([trade.result.status, trade.spentSat, trade.visits.length]).toEqual([402, 3 * COST_SAT, 3])
  })

  test('MPP §8: is paid once if it responds with 503 without a challenge, and the credential is accepted later', async () => {
    const { result, visits, spentSat } = await market.trade(() => client().fetch(market.url('/mpp?deaf=503')))
    expect([result.status, spentSat]).toEqual([503, COST_SAT])
    const authorization = visits[0]?.authorization ?? ''
    const later = await market.trade(() => fetch(market.url('/mpp?once'), { headers: { authorization } }))
    expect([later.result.status, await later.result.text(), later.spentSat]).toEqual([200, GOODS, 0])
  })
})
