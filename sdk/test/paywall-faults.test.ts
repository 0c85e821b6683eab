import { setTimeout as pause } from 'node:timers/promises'
import { Hono } from 'hono'
import { streamText } from 'hono/streaming'
import type { StreamingApi } from 'hono/utils/stream'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { credentialOf, preimageFrom, storeOf } from '../../server/test/support/gateway.ts'
import { fault } from '../../server/test/support/nodes.ts'
import { NOWHERE } from '../../server/test/support/payments.ts'
import { eventually } from '../../server/test/support/server.ts'
import { paywall as honoPaywall, paymentOf } from '../src/paywall/adapters/hono.ts'
import { challengesIn, invoiceIn, Market, PATIENCE_MS, present, protocolOf } from './paywall-harness.ts'
import { type Opening, SHOPS, type Shop } from './paywall-shops.ts'
import type { Seen } from './wire.ts'

/** Whatever fails between the shop, the gateway and the node, no one pays twice and no one is served for free. */

const open = SHOPS[0]?.[1] as Opening
let market: Market
let shop: Shop
let url: string
beforeAll(async () => {
  // Events of the node are lost, so the gateway has to ask the node about settlements.
  market = await Market.open({ NODE_CALLBACK_URL: NOWHERE })
})
beforeEach(async () => {
  await market.renew()
  market.wire.faultsOn = /\/(payments|redeem)$/
  shop = await open(market.terms)
  url = shop.url('/jokes/1')
})
afterEach(() => fault(market.server, market.otherNode, 'none'))

const redemptions = (): Seen[] => market.wire.seen.filter(({ path }) => path.endsWith('/redeem'))
const untilAskedAgain = (): Promise<unknown> => eventually(() => redemptions().length > 1, 'the second redemption')
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

describe('a delayed settlement costs one payment, not two', () => {
  test('MPP §8: when the node says "not yet" (not_settled)', async () => {
    let settling: Promise<unknown> = Promise.resolve()
    const answer = await payEverything(url, async (challenge) => {
      // The wallet has the preimage before the payee's node has the money.
      const preimage = await preimageFrom(market.node, { challenge })
      settling = untilAskedAgain().then(() => market.wallet.payInvoice({ invoice: invoiceIn(challenge) }))
      return credentialOf({ protocol: protocolOf(challenge), challenge }, preimage)
    })
    await settling
    expect([answer.status, market.paid, shop.delivered]).toEqual([200, 1, 1])
  })

  test('MPP §8: when the node does not respond (502)', async () => {
    let recovery: Promise<unknown> = Promise.resolve()
    const { id: nodeId } = market.otherNode.node
    const hanging = await open({ ...market.terms, nodeId })
    const answer = await payEverything(hanging.url('/jokes/1'), async (challenge) => {
      // Otherwise the gateway's periodic question to the node may find the settlement before the node hangs.
      await storeOf(market.server)`UPDATE gateway_payments SET ask_at = now() + interval '1 hour' WHERE node_id = ${nodeId}`
      const credential = await market.credentialFor(challenge)
      await fault(market.server, market.otherNode, 'hang')
      recovery = untilAskedAgain().then(() => fault(market.server, market.otherNode, 'none'))
      return credential
    })
    await recovery
    expect([answer.status, market.paid, hanging.delivered]).toEqual([200, 1, 1])
  })
})

test('MPP §8: a missing settlement is a 503 after ten seconds without a challenge; the credential works later', async () => {
  const [challenge = ''] = challengesIn(await fetch(url))
  const credential = credentialOf({ protocol: 'mpp', challenge }, await preimageFrom(market.node, { challenge }))
  const usual = await open({ ...market.terms, patienceMs: undefined })
  const started = performance.now()
  const answer = await present(usual.url('/jokes/1'), credential)
  expect(performance.now() - started).toBeGreaterThan(8_000)
  expectNoChallenge(answer)
  expect(((await answer.json()) as { detail: string }).detail).toMatch(/Do not pay again/)
  // On a busy machine, the last attempt may not be answered in time.
  const code = expect.stringMatching(/^(invalid_payment_credential|timeout)$/)
  expect(market.events.at(-1)).toMatchObject({ type: 'unavailable', code })
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
    // The shop waits only as long as its `patienceMs`. The usual patience would allow a second redemption.
    expect(performance.now() - started).toBeLessThan(PATIENCE_MS)
    expect(redemptions().length).toBeLessThan(2)
    market.wire.faults = []
    expect((await present(url, credential)).status).toBe(200)
  })

  test('responds, and the response is lost: the same request retries and delivers once', async () => {
    const credential = await market.buy(url)
    market.wire.faults = ['lose answer', 'lose answer']
    expect((await present(url, credential)).status).toBe(200)
    expect([shop.delivered, market.wire.faults]).toEqual([1, []])
    expect(redemptions().length).toBeGreaterThan(2)
    expect(new Set(redemptions().map(({ body }) => body)).size).toBe(1)
    expect((await present(url, credential)).status).toBe(402)
  })

  test('C45: responds, and every response is lost: 503 now, and the same credential is served once later', async () => {
    const hurried = await open({ ...market.terms, patienceMs: 5_000 })
    const credential = await market.buy(url)
    market.wire.faults = Array(100).fill('lose answer')
    expectNoChallenge(await present(hurried.url('/jokes/1'), credential))
    market.wire.faults = []
    await eventually(async () => (await market.client.payments.get(idIn(credential))).redeemedAt === null, 'the release')
    const answers = await Promise.all(Array.from({ length: 5 }, () => present(url, credential)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 402 || status === 409)).toHaveLength(4)
    expect([hurried.delivered, shop.delivered]).toEqual([0, 1])
  })

  test('C48: claims a delivery after the shop has given up: the claim is released before its hold ends', async () => {
    const hurried = await open({ ...market.terms, patienceMs: 1_000 })
    const credential = await market.buy(url)
    let forward = (): void => undefined
    market.wire.ready = new Promise<void>((resolve) => {
      forward = resolve
    })
    const refused = present(hurried.url('/jokes/1'), credential)
    await eventually(() => redemptions().length === 1, 'the redemption')
    market.wire.ready = Promise.resolve()
    expectNoChallenge(await refused)
    const hasReleased = () => market.wire.seen.some(({ path }) => path.endsWith('/release')) && market.wire.underWay === 0
    await eventually(hasReleased, 'the release that comes too early')
    forward()
    await eventually(async () => {
      const [row] = await storeOf(market.server)`
        SELECT released_request_ids AS released FROM paid_payments WHERE id = ${idIn(credential)}`
      return row?.released.length === 1
    }, 'the release of the late claim')
    expect([(await present(url, credential)).status, hurried.delivered, shop.delivered]).toEqual([200, 0, 1])
  })

  test('C45: a customer who disconnects while the gateway is asked is served once on return', async () => {
    const credential = await market.buy(url)
    // The shop's request to the gateway is delayed and arrives after the customer has left.
    let forward = (): void => undefined
    market.wire.ready = new Promise<void>((resolve) => {
      forward = resolve
    })
    const controller = new AbortController()
    const left = present(url, credential, { signal: controller.signal }).catch((error) => error.name)
    await eventually(() => redemptions().length === 1, 'it to be asked')
    const { closed } = shop
    controller.abort()
    expect(await left).toBe('AbortError')
    await eventually(() => shop.closed > closed, 'the shop to notice')
    forward()
    await eventually(() => market.events.some(({ type }) => type === 'undelivered'), 'the release')
    expect((await market.client.payments.get(idIn(credential))).status).toBe('paid')
    expect(shop.delivered).toBe(0)
    expect([(await present(url, credential)).status, (await present(url, credential)).status]).toEqual([200, 402])
  })

  type Given = { status: number; code?: string; body?: string; headers?: Record<string, string> }
  test.each<[name: string, given: Given]>([
    ['rejects the key', { status: 401, code: 'unauthorized' }],
    ['reports that the seller has no credit', { status: 402, code: 'insufficient_credit' }],
    ['is not at the base URL, but a web page is', { status: 404, body: '<h1>Not found</h1>' }],
    ['rate-limits the key (D14)', { status: 429, code: 'rate_limit_exceeded', headers: { 'retry-after': '300' } }],
  ])('%s: 503 without a challenge or the reason, at once', async (_name, { status, code, body, headers }) => {
    const credential = await market.buy(url)
    const text = body ?? JSON.stringify({ error: { code, message: 'The API key byd_secret is odd.' } })
    for (const ask of [() => fetch(url), () => present(url, credential)]) {
      market.wire.faults = Array(10).fill({ status, body: text, ...(headers ? { headers } : {}) })
      const started = performance.now()
      const answer = await ask()
      expectNoChallenge(answer)
      expect(performance.now() - started).toBeLessThan(25_000)
      expect(answer.headers.get('retry-after')).toBe(status === 429 ? '300' : '5')
      expect(await answer.text()).not.toMatch(/key|credit|byd_|boltyard/i)
    }
    expect(market.events.at(-1)).toMatchObject({ type: 'unavailable', code: code ?? 'unexpected_answer' })
    expect(shop.delivered).toBe(0)
    market.wire.faults = []
    expect((await present(url, credential)).status).toBe(200)
  })
})

test('D3: Hono’s stream helpers hide an error, so a shop releases the payment in their third argument', async () => {
  const app = new Hono()
  let isRepaired = false
  const tellStory = async (stream: StreamingApi): Promise<void> => {
    await stream.write('half')
    if (!isRepaired) throw new Error('broke off')
  }
  app.get('/story', honoPaywall(market.terms), (c) => streamText(c, tellStory, async () => paymentOf(c)?.release('broke off')))
  const ask = (authorization?: string) => app.request('/story', authorization ? { headers: { authorization } } : {})
  const credential = await market.credentialFor(challengesIn(await ask())[0] ?? '')
  expect(await (await ask(credential)).text()).toBe('half')
  await eventually(() => market.events.some(({ type }) => type === 'undelivered'), 'the release')
  isRepaired = true
  const served = await ask(credential)
  expect([served.status, await served.text(), (await ask(credential)).status, market.paid]).toEqual([200, 'half', 402, 1])
})

const idIn = (credential: string): string => {
  const { challenge } = JSON.parse(Buffer.from(credential.split(' ')[1] ?? '', 'base64url').toString())
  return JSON.parse(Buffer.from(challenge.request, 'base64url').toString()).externalId
}
