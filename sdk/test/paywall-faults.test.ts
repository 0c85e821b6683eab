import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { credentialOf, preimageFrom } from '../../server/test/support/gateway.ts'
import { fault } from '../../server/test/support/nodes.ts'
import { NOWHERE } from '../../server/test/support/payments.ts'
import { eventually } from '../../server/test/support/server.ts'
import { challengesIn, invoiceIn, Market, present, protocolOf } from './paywall-harness.ts'
import { type Opening, SHOPS, type Shop } from './paywall-shops.ts'

/** Whatever fails between the shop, the gateway and the node, no one pays twice and no one is served for free. */

const open = SHOPS[0]?.[1] as Opening
let market: Market
let shop: Shop
let url: string
beforeAll(async () => {
  // Node events are lost, so the gateway has to ask for settlements.
  market = await Market.open({ NODE_CALLBACK_URL: NOWHERE })
  shop = await open(market.terms)
  url = shop.url('/jokes/1')
  market.wire.faultsOn = /\/(payments|redeem)$/
})
beforeEach(() => {
  market.events.length = 0
  market.wire.seen.length = 0
  market.paid = 0
  shop.delivered = 0
})
afterEach(async () => {
  market.wire.faults = []
  await fault(market.server, market.node, 'none')
})

const redemptions = (): number => market.wire.seen.filter(({ path }) => path.endsWith('/redeem')).length
const expectNoChallenge = (answer: Response): void => {
  expect([answer.status, challengesIn(answer), answer.headers.get('cache-control')]).toEqual([503, [], 'no-store'])
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
}

/** The most dangerous customer: pays every challenge and presents the last credential. */
async function payEverything(at: string, payChallenge: (challenge: string) => Promise<string>): Promise<Response> {
  let answer = await fetch(at)
  for (let times = 0; answer.status === 402 && times < 5; times++)
    answer = await present(at, await payChallenge(challengesIn(answer)[0] ?? ''))
  return answer
}

describe('a settlement delayed by three seconds costs one payment, not two', () => {
  test('MPP §8: when the node says "not yet" (not_settled)', async () => {
    let settling: Promise<unknown> = Promise.resolve()
    const answer = await payEverything(url, async (challenge) => {
      // The wallet has the preimage before the payee's node has the money.
      const preimage = await preimageFrom(market.node, { challenge })
      settling = pause(3_000).then(() => market.wallet.payInvoice({ invoice: invoiceIn(challenge) }))
      return credentialOf({ protocol: protocolOf(challenge), challenge }, preimage)
    })
    await settling
    expect([answer.status, market.paid, shop.delivered]).toEqual([200, 1, 1])
    expect(redemptions()).toBeGreaterThan(1)
  })

  test('MPP §8: when the node does not respond (502)', async () => {
    let recovery: Promise<unknown> = Promise.resolve()
    const answer = await payEverything(url, async (challenge) => {
      const credential = await market.credentialFor(challenge)
      await fault(market.server, market.node, 'hang')
      recovery = pause(3_000).then(() => fault(market.server, market.node, 'none'))
      return credential
    })
    await recovery
    expect([answer.status, market.paid, shop.delivered]).toEqual([200, 1, 1])
    expect(redemptions()).toBeGreaterThan(1)
  })
})

test('MPP §8: a missing settlement is a 503 after ten seconds without a challenge; the credential works later', async () => {
  const [challenge = ''] = challengesIn(await fetch(url))
  const credential = credentialOf({ protocol: 'mpp', challenge }, await preimageFrom(market.node, { challenge }))
  const started = performance.now()
  const answer = await present(url, credential)
  const tookMs = performance.now() - started
  expectNoChallenge(answer)
  expect(((await answer.json()) as { detail: string }).detail).toMatch(/Do not pay again/)
  expect([tookMs > 8_000, tookMs < 16_000]).toEqual([true, true])
  expect(market.events.at(-1)).toMatchObject({ type: 'unavailable', code: 'invalid_payment_credential' })
  await market.wallet.payInvoice({ invoice: invoiceIn(challenge) })
  expect((await present(url, credential)).status).toBe(200)
})

describe('the gateway', () => {
  test('is down: 503 without a challenge, and nothing is served for free', async () => {
    const credential = await market.buy(url)
    market.wire.faults = Array(100).fill('cut')
    const impatient = await open({ ...market.terms, patienceMs: 1_000 })
    for (const answer of await Promise.all([present(impatient.url('/jokes/1'), credential), fetch(impatient.url('/jokes/1'))]))
      expectNoChallenge(answer)
    expect([impatient.delivered, market.events.at(-1)]).toEqual([0, expect.objectContaining({ type: 'unavailable' })])
    market.wire.faults = []
    expect((await present(url, credential)).status).toBe(200)
  })

  test('is unavailable for five seconds: the customer waits and is served', async () => {
    const credential = await market.buy(url)
    market.wire.faults = Array(1_000).fill('cut')
    const back = pause(5_000).then(() => {
      market.wire.faults = []
    })
    expect((await present(url, credential)).status).toBe(200)
    await back
    expect(shop.delivered).toBe(1)
  })

  test('hangs: 503 without a challenge, in time', async () => {
    const credential = await market.buy(url)
    market.wire.faults = Array(100).fill('swallow')
    const impatient = await open({ ...market.terms, patienceMs: 1_000 })
    const started = performance.now()
    const answers = await Promise.all([present(impatient.url('/jokes/1'), credential), fetch(impatient.url('/jokes/1'))])
    for (const answer of answers) expectNoChallenge(answer)
    expect(performance.now() - started).toBeLessThan(9_000)
    market.wire.faults = []
    expect((await present(url, credential)).status).toBe(200)
  })

  test('responds, and the response is lost: the same request retries and delivers once', async () => {
    const credential = await market.buy(url)
    market.wire.faults = ['lose answer', 'lose answer']
    expect((await present(url, credential)).status).toBe(200)
    expect([shop.delivered, redemptions()]).toEqual([1, 3])
    expect((await present(url, credential)).status).toBe(402)
  })

  test('C45: responds, and every response is lost: 503 now, and the same credential is served once later', async () => {
    const hurried = await open({ ...market.terms, patienceMs: 1_000 })
    const at = hurried.url('/jokes/1')
    const credential = await market.buy(at)
    market.wire.faults = Array(100).fill('lose answer')
    expectNoChallenge(await present(at, credential))
    market.wire.faults = []
    const answers = await Promise.all(Array.from({ length: 5 }, () => present(at, credential)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 402 || status === 409)).toHaveLength(4)
    expect(hurried.delivered).toBe(1)
  })

  test('C45: a customer who disconnects while it is asked is served once on return', async () => {
    const credential = await market.buy(url)
    // The request is in transit and will arrive.
    market.wire.holdMs = 500
    const controller = new AbortController()
    const left = present(url, credential, { signal: controller.signal }).catch((error) => error.name)
    await eventually(() => redemptions() === 1, 'it to be asked')
    controller.abort()
    market.wire.holdMs = 0
    expect(await left).toBe('AbortError')
    await eventually(async () => (await market.client.payments.get(idIn(credential))).status === 'paid', 'the claim')
    expect(shop.delivered).toBe(0)
    expect([(await present(url, credential)).status, (await present(url, credential)).status]).toEqual([200, 402])
  })

  type Given = { status: number; code?: string; body?: string; headers?: Record<string, string> }
  test.each<[name: string, given: Given]>([
    ['does not know the key', { status: 401, code: 'unauthorized' }],
    ['has no credit for it', { status: 402, code: 'insufficient_credit' }],
    ['is not there, but a page is', { status: 404, body: '<h1>Not found</h1>' }],
    ['limits the key (D14)', { status: 429, code: 'rate_limit_exceeded', headers: { 'retry-after': '30' } }],
  ])('%s: 503 without a challenge, at once, and nothing of it is told', async (_name, { status, code, body, headers }) => {
    const credential = await market.buy(url)
    const text = body ?? JSON.stringify({ error: { code, message: 'The API key byd_secret is odd.' } })
    for (const ask of [() => fetch(url), () => present(url, credential)]) {
      market.wire.faults = [{ status, body: text, ...(headers ? { headers } : {}) }]
      const started = performance.now()
      const answer = await ask()
      expectNoChallenge(answer)
      expect(performance.now() - started).toBeLessThan(15_000)
      expect(answer.headers.get('retry-after')).toBe(status === 429 ? '30' : '5')
      expect(await answer.text()).not.toMatch(/key|credit|byd_|boltyard/i)
    }
    expect(market.events.at(-1)).toMatchObject({ type: 'unavailable', code: code ?? 'unexpected_answer' })
    expect(shop.delivered).toBe(0)
    expect((await present(url, credential)).status).toBe(200)
  })
})

const idIn = (credential: string): string => {
  const { challenge } = JSON.parse(Buffer.from(credential.split(' ')[1] ?? '', 'base64url').toString())
  return JSON.parse(Buffer.from(challenge.request, 'base64url').toString()).externalId
}
