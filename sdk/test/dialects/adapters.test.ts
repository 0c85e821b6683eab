import { Agent, request } from 'node:http'
import { connect } from 'node:net'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { challengesIn, Market, present } from '../paywall-harness.ts'
import { JOKE, SHOPS, type Shop } from '../paywall-shops.ts'
import { ALL, buyX402, payX402, presentX402, requiredBy, settlementIn } from './x402-buyer.ts'

/** Every adapter sells in all protocols. */

let market: Market
beforeAll(async () => {
  market = await Market.open()
})
beforeEach(() => market.renew())

const GOODS = { joke: JOKE, id: '1' }
const post = (body: string | ReadableStream): RequestInit => ({ method: 'POST', body, headers: { 'content-type': 'text/plain' } })

describe.each(SHOPS)('%s', (_name, open) => {
  let shop: Shop
  beforeEach(async () => {
    shop = await open({ ...market.terms, protocols: ALL })
  })

  test('C69: a visit gets all offers from one call; each can be paid, and buys one delivery', async () => {
    const url = shop.url('/jokes/1')
    const unpaid = await fetch(url)
    expect([unpaid.status, unpaid.headers.get('cache-control')]).toEqual([402, 'no-store'])
    expect(market.wire.seen.map(({ path }) => path)).toEqual(['/v1/gateway/payments/batch'])
    const challenges = challengesIn(unpaid)
    expect(challenges.map((challenge) => challenge.split(' ')[0])).toEqual(['L402', 'Payment'])
    expect(requiredBy(unpaid)).toMatchObject({
      x402Version: 2,
      resource: { url, description: 'GET /jokes/:id' },
      accepts: [
        { scheme: 'exact', amount: '10000', extra: { requestBindingProfile: 'http:1', requestBindingParams: { headers: [] } } },
      ],
    })
    expect(await unpaid.json()).toMatchObject({
      protocols: ['l402', 'mpp', 'x402'],
      detail: expect.stringMatching(/PAYMENT-SIGNATURE/),
    })

    const attempts: [receipt: string | null, attempt: () => Promise<Response>][] = [
      ['payment-response', await bought(url, unpaid.headers.get('payment-required') ?? '')],
      [null, await bought(url, challenges[0] ?? '')],
      ['payment-receipt', await bought(url, challenges[1] ?? '')],
    ]
    for (const [receipt, attempt] of attempts) {
      const paid = await attempt()
      expect([paid.status, await paid.json(), paid.headers.get('cache-control')]).toEqual([200, GOODS, 'private'])
      for (const name of ['payment-response', 'payment-receipt']) expect(paid.headers.has(name)).toBe(name === receipt)
      const again = await attempt()
      expect([again.status, challengesIn(again).length, again.headers.has('payment-required')]).toEqual([402, 2, true])
    }
    expect(shop.delivered).toBe(3)
  })

  /** Pays a challenge. Returns a function that presents the credential. */
  async function bought(url: string, challenge: string): Promise<() => Promise<Response>> {
    if (challenge.includes(' ')) {
      const credential = await market.credentialFor(challenge)
      return () => present(url, credential)
    }
    const credential = await payX402(market, challenge)
    return () => presentX402(url, credential)
  }

  test('C69: the settlement names the payment; a replay has the reason in the new challenge', async () => {
    const url = shop.url('/jokes/1')
    const credential = await buyX402(market, url)
    const paid = await presentX402(url, credential)
    expect(settlementIn(paid)).toMatchObject({ success: true, transaction: expect.stringMatching(/^[0-9a-f]{64}$/) })
    expect(requiredBy(await presentX402(url, credential))).toMatchObject({ error: 'duplicate_settlement', accepts: [{}] })
  })

  test('C69: a payment is bound to the bytes of the body, which the handler still gets', async () => {
    const url = shop.url('/echo')
    const credential = await buyX402(market, url, post('two words'))
    const other = await presentX402(url, credential, post('two  words'))
    expect([other.status, other.headers.has('payment-required')]).toEqual([409, false])
    const paid = await presentX402(url, credential, post('two words'))
    expect([paid.status, await paid.text()]).toEqual([200, 'two words'])
  })

  test.each([
    ['in chunks', ['one ', 'two ', 'three'], 'one two three'],
    ['in chunks, and empty', [], ''],
    ['in large chunks', ['a'.repeat(200_000), 'b'.repeat(200_000)], `${'a'.repeat(200_000)}${'b'.repeat(200_000)}`],
  ])('C69: a body that comes %s is bound, and the handler gets it', async (_how, chunks, text) => {
    const url = shop.url('/echo')
    const sent = (): RequestInit => ({ ...post(new Blob(chunks).stream()), duplex: 'half' }) as RequestInit
    const credential = await buyX402(market, url, sent())
    const paid = await presentX402(url, credential, sent())
    expect([paid.status, (await paid.text()) === text]).toEqual([200, true])
  })

  test('C69: an empty body in chunks that comes in one packet with its header does not make the handler wait', async () => {
    const url = shop.url('/echo')
    const { host, port } = new URL(url)
    const ask = (credential = ''): Promise<string> => {
      const fields = [
        'POST /echo HTTP/1.1',
        `Host: ${host}`,
        'Connection: close',
        'Content-Type: text/plain',
        'Transfer-Encoding: chunked',
      ]
      const head = [...fields, ...(credential ? [`PAYMENT-SIGNATURE: ${credential}`] : [])].join('\r\n')
      return new Promise((resolve, reject) => {
        const socket = connect(Number(port), '127.0.0.1', () => socket.write(`${head}\r\n\r\n0\r\n\r\n`))
        const chunks: Buffer[] = []
        socket.on('data', (chunk) => chunks.push(chunk))
        socket.on('end', () => resolve(Buffer.concat(chunks).toString()))
        socket.on('error', reject)
      })
    }
    const challenge = /^payment-required: (.*)$/im.exec(await ask())?.[1]?.trim() ?? ''
    expect(await ask(await payX402(market, challenge))).toMatch(/^HTTP\/1.1 200 /)
  })

  test('C69: a body that is too large for x402 leaves the other offers; without others it is 413, and no challenge', async () => {
    const small = await open({ ...market.terms, protocols: ALL, maxBodyBytes: 10 })
    const unpaid = await fetch(small.url('/echo'), post('more than ten bytes'))
    expect([unpaid.status, challengesIn(unpaid).length, unpaid.headers.has('payment-required')]).toEqual([402, 2, false])
    const only = await open({ ...market.terms, protocols: ['x402'], maxBodyBytes: 10 })
    const chunked = { ...post(new Blob(['more than', ' ten bytes']).stream()), duplex: 'half' } as RequestInit
    for (const init of [post('more than ten bytes'), chunked]) {
      const answer = await fetch(only.url('/echo'), init)
      expect([answer.status, answer.headers.has('payment-required')]).toEqual([413, false])
      expect(await answer.json()).toMatchObject({ detail: expect.stringMatching(/at most 10 bytes/) })
    }
    const exact = await buyX402(market, only.url('/echo'), post('ten bytes!'))
    expect(await (await presentX402(only.url('/echo'), exact, post('ten bytes!'))).text()).toBe('ten bytes!')
  })

  test.each([
    ['within the limit', 500_000, 402],
    ['beyond the limit', 4_000_000, 402],
  ])('C69: a refused request with a long body, %s, does not block its connection', async (_what, bytes, status) => {
    const { port } = new URL(shop.url('/'))
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    /** Resolves with the status, or with the error code: the shop may also close the connection. */
    const ask = (method: string, path: string, body: Buffer[]): Promise<number | string | undefined> =>
      new Promise((resolve) => {
        const asked = request({ host: '127.0.0.1', port, method, path, agent }, (answer) => {
          answer.resume().once('end', () => resolve(answer.statusCode))
        })
        asked.once('error', (error: NodeJS.ErrnoException) => resolve(error.code))
        for (const chunk of body) asked.write(chunk)
        asked.end()
      })
    const chunks = Array.from({ length: bytes / 100_000 }, () => Buffer.alloc(100_000, 'x'))
    expect([status, 'ECONNRESET', 'EPIPE']).toContain(await ask('POST', '/echo', chunks))
    expect(await ask('GET', '/jokes/1', [])).toBe(402)
    agent.destroy()
  })

  test('C69: HEAD uses nothing up, and its payment buys what GET returns', async () => {
    const url = shop.url('/jokes/1')
    const credential = await buyX402(market, url, { method: 'HEAD' })
    for (let time = 0; time < 2; time++) {
      const head = await presentX402(url, credential, { method: 'HEAD' })
      expect([head.status, head.headers.has('payment-response')]).toEqual([200, false])
    }
    expect((await presentX402(url, credential)).status).toBe(200)
    expect((await presentX402(url, credential, { method: 'HEAD' })).status).toBe(402)
  })

  test.each([
    ['throws', '/broken', 500],
    ['responds with 4xx', '/missing', 404],
  ])('C69: a handler that %s has delivered nothing: the same x402 payment is served again', async (_how, path, status) => {
    const credential = await buyX402(market, shop.url(path))
    for (let time = 0; time < 2; time++) {
      const answer = await presentX402(shop.url(path), credential)
      await answer.text()
      expect([answer.status, answer.headers.has('payment-response')]).toEqual([status, false])
    }
  })
})
