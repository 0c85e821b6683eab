import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { eventually, sendRaw } from '../../server/test/support/server.ts'
import { challengesIn, Market, PATIENCE_MS, present } from './paywall-harness.ts'
import { JOKE, SHOPS, type Shop } from './paywall-shops.ts'

/** Every adapter keeps the same promises. */

let market: Market
beforeAll(async () => {
  market = await Market.open()
})
beforeEach(() => market.renew())

const receiptOf = (answer: Response): any =>
  JSON.parse(Buffer.from(answer.headers.get('payment-receipt') ?? '', 'base64url').toString())

/** Sends a request and waits until the handler of /slow is processing it. */
async function begin(shop: Shop, url: string, credential: string) {
  let resume = (): void => undefined
  const worked = new Promise<void>((resolve) => {
    resume = resolve
  })
  shop.work = () => worked
  const started = shop.started
  const controller = new AbortController()
  const answer = present(url, credential, { signal: controller.signal }).catch(() => undefined)
  await eventually(() => shop.started > started, 'the handler to be called')
  const { closed } = shop
  const leave = async (): Promise<void> => {
    controller.abort()
    await answer
    await eventually(() => shop.closed > closed, 'the shop to notice')
  }
  return { resume, leave, answer }
}

describe.each(SHOPS)('%s', (_name, open) => {
  let shop: Shop
  beforeEach(async () => {
    shop = await open(market.terms)
  })
  const types = (): string[] => market.events.map(({ type }) => type)

  test('MPP §8: without a credential the response is 402 with an uncacheable challenge and plain instructions', async () => {
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

  test('MPP §8: a paid request is delivered once, with the receipt, and not for shared caches', async () => {
    const before = shop.delivered
    const credential = await market.buy(shop.url('/jokes/1'))
    const answer = await present(shop.url('/jokes/1'), credential)
    expect([answer.status, await answer.json()]).toEqual([200, { joke: JOKE, id: '1' }])
    expect(answer.headers.get('cache-control')).toBe('private')
    expect(receiptOf(answer)).toMatchObject({ method: 'lightning', status: 'success' })
    const again = await present(shop.url('/jokes/1'), credential)
    expect([again.status, again.headers.get('payment-receipt')]).toEqual([402, null])
    expect(challengesIn(again)).toHaveLength(1)
    expect(((await again.json()) as { detail: string }).detail).toMatch(/already used/)
    expect(shop.delivered).toBe(before + 1)
    expect(types()).toEqual(['challenged', 'delivered', 'refused'])
  })

  test('MPP §9: with two offers L402 comes first, whatever order was requested; either can be paid', async () => {
    const bilingual = await open({ ...market.terms, protocol: ['mpp', 'l402'] })
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

  test.each([
    ['throws', '/broken', 500],
    ['responds with 4xx', '/missing', 404],
    ['releases the payment itself', '/released', 200],
  ])('D7, D10: a handler that %s has delivered nothing: the same credential is served again', async (_how, path, status) => {
    const credential = await market.buy(shop.url(path))
    for (let time = 0; time < 2; time++) {
      const answer = await present(shop.url(path), credential)
      await answer.text()
      expect([answer.status, answer.headers.has('payment-receipt')]).toEqual([status, false])
    }
    expect(types()).toEqual(['challenged', 'undelivered', 'undelivered'])
  })

  test('C80: a redirect is a delivery, with the receipt', async () => {
    const credential = await market.buy(shop.url('/moved'))
    const answer = await present(shop.url('/moved'), credential, { redirect: 'manual' })
    expect([answer.status, answer.headers.get('location')]).toEqual([302, '/elsewhere'])
    expect([receiptOf(answer).status, answer.headers.get('cache-control')]).toEqual(['success', 'private'])
    expect((await present(shop.url('/moved'), credential, { redirect: 'manual' })).status).toBe(402)
    expect(types()).toEqual(['challenged', 'delivered', 'refused'])
  })

  test('selling 3: deliver() counts as delivered, whatever the handler returns', async () => {
    const credential = await market.buy(shop.url('/delivered'))
    expect((await present(shop.url('/delivered'), credential)).status).toBe(500)
    expect((await present(shop.url('/delivered'), credential)).status).toBe(402)
    expect(types()).toEqual(['challenged', 'delivered', 'refused'])
  })

  test('D3: a customer who disconnects while the handler runs is served on return; until it has finished they are asked to wait', async () => {
    const url = shop.url('/slow')
    const credential = await market.buy(url)
    const { resume, leave } = await begin(shop, url, credential)
    await leave()
    const meanwhile = await present(url, credential)
    expect([meanwhile.status, challengesIn(meanwhile)]).toEqual([409, []])
    expect(Number(meanwhile.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
    expect(types()).toEqual(['challenged', 'refused'])
    resume()
    await eventually(() => types().includes('undelivered'), 'the handler to end')
    const answer = await present(url, credential)
    expect([answer.status, await answer.text()]).toEqual([200, 'slow'])
    expect((await present(url, credential)).status).toBe(402)
    expect(types()).toEqual(['challenged', 'refused', 'undelivered', 'delivered', 'refused'])
  })

  test('selling 3: a retry while the first request is running is 409 without a challenge, and the first is served', async () => {
    const url = shop.url('/slow')
    const credential = await market.buy(url)
    const { resume, answer } = await begin(shop, url, credential)
    const second = await present(url, credential)
    expect([second.status, challengesIn(second), second.headers.get('cache-control')]).toEqual([409, [], 'no-store'])
    expect(((await second.json()) as { detail: string }).detail).toMatch(/Do not pay again/)
    const head = await present(url, credential, { method: 'HEAD' })
    expect([head.status, challengesIn(head)]).toEqual([409, []])
    resume()
    expect([(await answer)?.status, await (await answer)?.text()]).toEqual([200, 'slow'])
    expect((await present(url, credential)).status).toBe(402)
  })

  test('selling 3: with releaseOnDisconnect: false, a disconnect uses up the payment', async () => {
    const careful = await open({ ...market.terms, releaseOnDisconnect: false })
    const url = careful.url('/slow')
    const credential = await market.buy(url)
    const { resume, leave } = await begin(careful, url, credential)
    await leave()
    resume()
    await eventually(() => types().includes('delivered'), 'the handler to end')
    expect((await present(url, credential)).status).toBe(402)
  })

  test('D3: a response that the shop aborts is not delivered', async () => {
    const url = shop.url('/broken-off')
    const credential = await market.buy(url)
    for (let time = 0; time < 2; time++) {
      const text = present(url, credential).then((answer) => answer.text())
      await expect(text).rejects.toThrow()
      await eventually(() => types().length === 2 + time, 'the end of it')
    }
    expect(types()).toEqual(['challenged', 'undelivered', 'undelivered'])
  })

  test('selling 3: a customer who disconnects after the first bytes has used up the payment', async () => {
    const url = shop.url('/broken-off')
    const credential = await market.buy(url)
    let resume = (): void => undefined
    shop.work = () =>
      new Promise((resolve) => {
        resume = resolve
      })
    const controller = new AbortController()
    const answer = await present(url, credential, { signal: controller.signal })
    const first = await answer.body?.getReader().read()
    expect(new TextDecoder().decode(first?.value)).toBe('half')
    controller.abort()
    await eventually(() => types().includes('delivered'), 'them to leave')
    resume()
    expect((await present(url, credential)).status).toBe(402)
    expect(types()).toEqual(['challenged', 'delivered', 'refused'])
  })

  test('D8, selling 1: HEAD uses nothing up and responds like GET, even with a used credential', async () => {
    const url = shop.url('/jokes/1')
    const unpaid = await fetch(url, { method: 'HEAD' })
    expect([unpaid.status, challengesIn(unpaid).length]).toEqual([402, 1])
    const credential = await market.buy(url)
    for (let time = 0; time < 2; time++) {
      const head = await present(url, credential, { method: 'HEAD' })
      expect([head.status, head.headers.has('payment-receipt')]).toEqual([200, false])
    }
    expect((await present(url, credential)).status).toBe(200)
    const used = await present(url, credential, { method: 'HEAD' })
    expect([used.status, challengesIn(used).length]).toEqual([402, 1])
    expect((await present(shop.url('/public'), await market.buy(url), { method: 'HEAD' })).status).toBe(402)
  })

  test('MPP §8: the handler’s Cache-Control is kept unless it allows shared caches', async () => {
    const answer = await present(shop.url('/public'), await market.buy(shop.url('/public')))
    expect([answer.status, await answer.text()]).toEqual([200, 'public'])
    expect(answer.headers.get('cache-control')).toBe('max-age=60, private')
  })

  test('work stops when the customer disconnects', async () => {
    market.wire.ready = new Promise(() => undefined)
    const controller = new AbortController()
    const left = present(shop.url('/jokes/1'), 'Bearer of-somebody', { signal: controller.signal }).catch((error) => error.name)
    await eventually(() => market.wire.underWay === 1, 'the gateway to be asked')
    controller.abort()
    expect(await left).toBe('AbortError')
    // The shop's request ends sooner than the paywall and its client would give up.
    await eventually(() => market.wire.underWay === 0, 'the question to be taken back', PATIENCE_MS / 2)
    // Neither a challenge nor a failure, because the customer was gone.
    expect(market.events).toEqual([])
  })
})

test('RFC 9110: two offers are two header lines if the framework supports that', async () => {
  for (const [name, open] of SHOPS.slice(0, 3)) {
    const shop = await open({ ...market.terms, protocol: 'both' })
    const { port } = new URL(shop.url('/'))
    const request = 'GET /jokes/1 HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n'
    const text = await sendRaw(Number(port), request, PATIENCE_MS)
    const lines = text.split('\r\n').filter((line) => /^www-authenticate:/i.test(line))
    expect([name, lines.map((line) => line.split(' ')[1])]).toEqual([name, ['L402', 'Payment']])
  }
})
