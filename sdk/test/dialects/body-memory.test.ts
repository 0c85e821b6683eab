import { once } from 'node:events'
import { type ClientRequest, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { PassThrough, pipeline } from 'node:stream'
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { credentialOf, invoiceIn, x402Credential } from '../../../server/test/support/gateway.ts'
import { eventually } from '../../../server/test/support/server.ts'
import { paywall } from '../../src/paywall/adapters/express.ts'
import { BodyBuffer } from '../../src/paywall/body-buffer.ts'
import { BodyMemory } from '../../src/paywall/gate/body-memory.ts'
import { hasProof } from '../../src/paywall/proof.ts'
import { Market } from '../paywall-harness.ts'
import { SHOPS, type Shop } from '../paywall-shops.ts'
import { newShop, opened } from '../shops/shop.ts'
import { ALL, buyX402, presentX402, requiredBy } from './x402-buyer.ts'

/** Nest and Elysia parse the body themselves before the paywall sees the request. */
const READING = SHOPS.filter(([name]) => !/nest|elysia/i.test(name))
const MIB = 1_048_576

/** Whether there is room for this many more bytes. */
function fits(bytes: number): boolean {
  const memory = new BodyMemory(0, true)
  const isReserved = memory.reserve(bytes)
  memory.release()
  return isReserved
}
const isFree = (): boolean => fits(64 * MIB)

let market: Market
beforeAll(async () => {
  market = await Market.open()
})
beforeEach(() => market.renew())

/** On a connection of its own: a server that answers before it has read a body may close the connection at any moment. */
const post = (body: string): RequestInit => ({
  method: 'POST',
  body,
  headers: { 'content-type': 'text/plain', connection: 'close' },
})

/** Sends this much of a body, and then nothing more. */
function stalled(url: string, bytes: number, headers: Record<string, string> = {}): ClientRequest {
  const held = request(url, { method: 'POST', headers: { ...headers, 'content-type': 'text/plain', 'content-length': 32 * MIB } })
  held.on('error', () => undefined)
  // Otherwise, a test that fails would leave no memory to the next one.
  onTestFinished(() => void held.destroy())
  held.write(Buffer.alloc(bytes))
  return held
}

describe.each(READING)('%s', (_name, open) => {
  let shop: Shop
  let url: string
  beforeEach(async () => {
    shop = await open({ ...market.terms, protocols: ALL, maxBodyBytes: 32 * MIB })
    url = shop.url('/echo')
  })

  test('C79: when bodies fill the memory for them, an x402 payment with a body gets 503 and no challenge, until they are gone', async () => {
    const other = await buyX402(market, url, post('other'))
    const large = 'large'.repeat(200_000)
    const [paid, paidSmall] = [await buyX402(market, url, post(large)), await buyX402(market, url, post('small'))]
    const held = [0, 1].map(() => stalled(url, 31.9 * MIB, { 'payment-signature': other }))
    await eventually(async () => !fits(MIB / 2), 'the memory to be full')

    const answer = await presentX402(url, other, post(large))
    expect(answer.status).toBe(503)
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
    expect([answer.headers.has('payment-required'), answer.headers.has('www-authenticate')]).toEqual([false, false])
    expect(await answer.json()).toMatchObject({ detail: expect.stringMatching(/Do not pay again/) })
    expect((await presentX402(url, paid, post(large))).status).toBe(503)
    const unpaid = await fetch(url, post(large))
    expect([unpaid.status, unpaid.headers.has('payment-required'), unpaid.headers.has('www-authenticate')]).toEqual([
      402,
      false,
      true,
    ])
    expect((await fetch(shop.url('/jokes/1'))).headers.has('payment-required')).toBe(true)
    const small = await presentX402(url, paidSmall, post('small'))
    expect([small.status, await small.text()]).toEqual([200, 'small'])

    for (const one of held) one.destroy()
    await eventually(async () => isFree(), 'the memory to be free')
    const bought = await presentX402(url, paid, post(large))
    expect([bought.status, await bought.text()]).toEqual([200, large])
  })

  test('C79: a body that stops gets 503 and no challenge, paid or not, and its connection is closed', async () => {
    const invented = x402Credential(requiredBy(await fetch(url, post('x'))).accepts[0], '0'.repeat(64))
    const hurried = await open({ ...market.terms, protocols: ALL, patienceMs: 200, maxBodyBytes: 32 * MIB })
    for (const headers of [{}, { 'payment-signature': invented }]) {
      const held = stalled(hurried.url('/echo'), 10, headers)
      const [answer] = (await once(held, 'response')) as [IncomingMessage]
      const { statusCode, headers: got } = answer
      expect([statusCode, got['www-authenticate'], got['payment-required']]).toEqual([503, undefined, undefined])
      expect(Number(got['retry-after'])).toBeGreaterThan(0)
      answer.resume()
      await once(held, 'close')
    }
    await eventually(async () => hurried.closed === 2, 'the connections to be closed')
    expect(isFree()).toBe(true)
  })
})

test.each([
  ['without a payment', ''],
  ['with an invented one', '0'.repeat(64)],
])('C79: bodies %s fill at most half of the memory, so that a paid one still gets in', async (_name, preimage) => {
  const [, open] = READING[0] as (typeof READING)[number]
  const shop = await open({ ...market.terms, protocols: ALL, maxBodyBytes: 32 * MIB })
  const [url, large] = [shop.url('/echo'), 'large'.repeat(200_000)]
  const paid = await buyX402(market, url, post(large))
  const invented = x402Credential(requiredBy(await fetch(url, post('x'))).accepts[0], preimage)
  const headers: Record<string, string> = preimage ? { 'payment-signature': invented } : {}
  const held = stalled(url, 31.9 * MIB, headers)
  await eventually(async () => !fits(32.5 * MIB), 'half of the memory to be full')
  const more = stalled(url, 31.9 * MIB, headers)
  const isFull = eventually(async () => !fits(MIB / 2), 'all of the memory to be full').catch(() => undefined)
  await Promise.race([once(more, 'response'), isFull])
  const unpaid = await fetch(url, post(large))
  expect([unpaid.headers.has('payment-required'), unpaid.headers.has('www-authenticate')]).toEqual([false, true])
  const bought = await presentX402(url, paid, post(large))
  expect([bought.status, await bought.text()]).toEqual([200, large])
  held.destroy()
  more.destroy()
  await eventually(async () => isFree(), 'the memory to be free')
})

test.each(ALL)('C79: a payment by %s counts as one only with the preimage of its invoice', async (protocol) => {
  const { nodeId, amountSat } = market.terms
  const x402 = { resource: { url: 'http://shop' }, requestHash: '0'.repeat(64), requestBindingProfile: 'http:1' as const }
  const params = { nodeId, amountSat, description: 'a', resource: 'a', protocol }
  const binding = protocol === 'x402' ? { x402: { ...x402, requestBindingParams: { headers: [] } } } : {}
  const { challenge } = await market.client.payments.create({ ...params, ...binding })
  const { preimage } = await market.wallet.payInvoice({ invoice: invoiceIn(challenge) })
  const proofOf = (one: string): Promise<boolean> => hasProof({ protocol, text: credentialOf({ protocol, challenge }, one) })
  expect([await proofOf(preimage), await proofOf('0'.repeat(64))]).toEqual([true, false])
})

test('C79: a body takes at most a quarter more than its size', () => {
  const memory = new BodyMemory(0, true)
  const buffer = new BodyBuffer(32 * MIB, memory)
  for (let time = 0; time < 530; time++) buffer.add(new Uint8Array(1_000))
  expect(fits(64 * MIB - 1.25 * 530_000)).toBe(true)
  memory.release()
})

test.each(READING.filter(([name]) => ['Express 5', 'Request → Response'].includes(name)))(
  'C79: %s: a body gives its memory back after a refusal and after a delivery',
  async (_name, open) => {
    const shop = await open({ ...market.terms, protocols: ALL, maxBodyBytes: 32 * MIB })
    const [url, body] = [shop.url('/echo'), 'x'.repeat(7_000_000)]
    // Each body takes at least 7 MB, so ten of them fit into 64 MiB only if each gives its memory back.
    for (let time = 0; time < 10; time++) {
      const credential = await buyX402(market, url, post(body))
      const answer = await presentX402(url, credential, post(body))
      expect([answer.status, (await answer.text()).length]).toEqual([200, body.length])
    }
  },
)

describe('a handler that has the body', () => {
  /** Presents a payment with a body of 1 MB, and calls `respond` in the handler. Resolves when the handler runs. */
  async function delivering(respond: (response: ServerResponse) => void) {
    const charge = paywall({ ...market.terms, protocols: ALL })
    const shop = newShop()
    let isRunning = (): void => undefined
    const running = new Promise<void>((resolve) => (isRunning = resolve))
    let end = (): void => undefined
    const server = createServer((incoming, response) => {
      void charge(incoming, response, () => {
        expect(isFree()).toBe(false)
        end = () => void response.end()
        respond(response)
        isRunning()
      })
    })
    const { url } = await opened(server.listen(0, '127.0.0.1'), shop)
    const body = 'x'.repeat(1_000_000)
    const credential = await buyX402(market, url('/'), post(body))
    const sent = request(url('/'), { method: 'POST', headers: { 'payment-signature': credential, 'content-type': 'text/plain' } })
    sent.on('error', () => undefined)
    sent.end(body)
    await running
    return { sent, end }
  }

  test('C79: a customer who leaves before the first byte gives the memory back, even if the handler never ends the response', async () => {
    const { sent, end } = await delivering((response) => void pipeline(new PassThrough(), response, () => undefined))
    expect(isFree()).toBe(false)
    sent.destroy()
    await eventually(async () => isFree(), 'the memory to be free')
    end()
  })

  test('C79: it gives the memory back when it has read the body, while it still responds', async () => {
    const { sent, end } = await delivering((response) => {
      response.req.resume()
      response.write('half')
    })
    await once(sent, 'response')
    await eventually(async () => isFree(), 'the memory to be free')
    sent.destroy()
    end()
  })

  test('C79: it gives the memory back when it responds without reading the body', async () => {
    const { sent } = await delivering((response) => void response.end('unread'))
    await once(sent, 'response')
    await eventually(async () => isFree(), 'the memory to be free')
  })
})
