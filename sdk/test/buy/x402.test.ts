import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { invoiceWith, type Made, NODE_KEY, OTHER_NODE_KEY, requirements } from '../../../protocol/test/support/x402.ts'
import { charge, untilKnown } from '../../../server/test/support/gateway.ts'
import { temporaryDirectory } from '../../../server/test/support/server.ts'
import { nobleCrypto } from '../../src/buy/crypto/noble.ts'
import { nodeCrypto } from '../../src/buy/crypto/node.ts'
import { buyer, memoryStore, purchaseOf } from '../../src/buy/index.ts'
import { GOODS, NOTHING, ONCE, PRICE, WeatherShop } from './shop.ts'
import { requestHashOf, sha256 } from './x402-request.ts'

/** x402's `exact` on lnbtc: sold by the real gateway, and by sellers who cheat. */

const servers: Server[] = []
afterAll(() => {
  for (const server of servers) {
    server.close()
    server.closeAllConnections()
  }
})

type Reply = { status?: number; required?: object | string | undefined; body?: string }
async function serving(reply: (request: IncomingMessage, url: string, body: Buffer) => Promise<Reply> | Reply): Promise<string> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { status = 200, required, body } = await reply(request, `${base}${request.url}`, Buffer.concat(chunks))
    const challenge = typeof required === 'object' ? Buffer.from(JSON.stringify(required)).toString('base64') : required
    response.writeHead(status, challenge === undefined ? {} : { 'payment-required': challenge }).end(body)
  })
  servers.push(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return base
}

describe('sold by the gateway', () => {
  let shop: WeatherShop
  let url: string
  const seen: (string | undefined)[] = []
  beforeAll(async () => {
    shop = await WeatherShop.open()
    const { owner, node } = shop.market
    url = await serving(async (request, at, body) => {
      const language = request.headers['accept-language'] ?? ''
      const requestHash = requestHashOf(request.method ?? '', at, body, { 'accept-language': language })
      const credential = request.headers['payment-signature']?.toString()
      seen.push(credential)
      const x402 = {
        resource: { url: at },
        requestHash,
        requestBindingProfile: 'http:1',
        requestBindingParams: { headers: ['accept-language'] },
      }
      if (credential !== undefined) {
        const json = { credential, requestHash }
        const answer = await untilKnown(() => owner.send('POST', '/gateway/payments/redeem', { json }))
        if (answer.status === 200) return { body: GOODS }
      }
      const { challenge } = await charge(owner, node, { protocol: 'x402', amountSat: PRICE, x402 })
      return { status: 402, required: challenge }
    })
  })
  beforeEach(async () => {
    await shop.renew()
    seen.length = 0
  })

  test.each(['GET', 'POST'])('%s is paid once and delivered', async (method) => {
    const store = temporaryDirectory()
    const pay = buyer({ wallet: shop.wallet, maxSatPerRequest: 1_000, maxSatPerDay: 10_000, store })
    const body = method === 'GET' ? {} : { body: 'Where?' }
    const response = await pay.fetch(`${url}/a?b=%20c#d`, { method, headers: { 'accept-language': ' de ' }, ...body })
    expect([response.status, await response.text()]).toEqual([200, GOODS])
    expect([await shop.moved(), purchaseOf(response)?.protocol, seen.length]).toEqual([ONCE, 'x402', 2])
  })

  test('a seller who refuses the payment is not paid again; later, the same proof is presented', async () => {
    const store = temporaryDirectory()
    const pay = buyer({ wallet: shop.wallet, maxSatPerRequest: 1_000, maxSatPerDay: 10_000, store })
    const init = { headers: { 'accept-language': 'de' } }
    expect(await (await pay.fetch(url, { ...init, purchaseKey: '1' })).text()).toBe(GOODS)
    await expect(pay.fetch(url, { ...init, purchaseKey: '1' })).rejects.toMatchObject({
      code: 'credential_refused',
      outcome: 'paid',
    })
    expect([await shop.moved(), seen[1] === seen[2]]).toEqual([ONCE, true])
  })

  test('an offer for another request is not paid', async () => {
    const pay = buyer({ wallet: shop.wallet, maxSatPerRequest: 1_000, maxSatPerDay: 10_000, store: memoryStore() })
    const { challenge } = await charge(shop.market.owner, shop.market.node, {
      ...{ protocol: 'x402', amountSat: PRICE },
      x402: {
        resource: { url },
        requestHash: requestHashOf('GET', `${url}/cheap`),
        requestBindingProfile: 'http:1',
        requestBindingParams: { headers: [] },
      },
    })
    const thief = await serving(() => ({ status: 402, required: challenge }))
    await expect(pay.fetch(`${thief}/dear`)).rejects.toMatchObject({
      code: 'unusable_challenge',
      message: expect.stringContaining('Its x402 offer is for another request'),
    })
    expect(await shop.moved()).toEqual(NOTHING)
  })
})

describe('cheating sellers get nothing', () => {
  let asked = 0
  beforeEach(() => {
    asked = 0
  })
  const pay = buyer({
    wallet: async () => {
      asked++
      return '00'.repeat(32)
    },
    ...{ maxSatPerRequest: 1_000, maxSatPerDay: 10_000, store: memoryStore() },
  })

  /** The times of these invoices are relative to now. */
  test.each<[string, RegExp, (required: any) => unknown, Made?]>([
    ['a payee other than the signer', /payee_mismatch/, (required) => ({ ...required, payTo: OTHER_NODE_KEY })],
    [
      'a key that is not a point on the curve',
      /pay_to_malformed/,
      (required) => ({ ...required, payTo: `02${'ff'.repeat(32)}` }),
    ],
    ['a lower amount than the invoice’s', /amount_mismatch/, (required) => ({ ...required, amount: '1000' })],
    ['an invoice without an amount', /amount_mismatch/, (required) => required, { millisatoshis: null }],
    ['another network', /currency_mismatch/, (required) => required, { currency: 'tb' }],
    ['another timeout', /expiry_mismatch/, (required) => ({ ...required, maxTimeoutSeconds: 299 })],
    ['an invoice from the future', /created_in_future/, (required) => required, { timestamp: 120 }],
    ['an invoice that has expired', /has expired/, (required) => required, { timestamp: -301 }],
    [
      'a description instead of its hash',
      /invoice_description/,
      (required) => required,
      { description: 'x', descriptionHash: undefined },
    ],
    ['the hash of something else', /request_mismatch/, (required) => required, { descriptionHash: 'ab'.repeat(32) }],
    ['another asset', /asset/, (required) => ({ ...required, asset: 'USDC' })],
    ['another flow', /payment_flow/, (required) => ({ ...required, extra: { ...required.extra, paymentFlow: 'later' } })],
    [
      'a tool instead of a request',
      /binding|not bound/,
      (required) => ({
        ...required,
        extra: {
          ...required.extra,
          requestBindingProfile: 'mcp:1',
          requestBindingParams: { server: 'https://a.b/c', metadata: [] },
        },
      }),
    ],
    ['no offers', /not for Lightning/, () => undefined],
    ['an offer that is not for Lightning', /not for Lightning/, (required) => ({ ...required, network: 'eip155:8453' })],
  ])('%s', async (_, reason, change, made = {}) => {
    const url = await serving((request, at) => {
      const requestHash = requestHashOf(request.method ?? '', at)
      const invoice = invoiceWith({
        descriptionHash: requestHash,
        ...made,
        timestamp: Math.floor(Date.now() / 1000) + (made.timestamp ?? 0),
      })
      const base = requirements()
      const offer = change({ ...base, payTo: NODE_KEY, extra: { ...base.extra, requestHash, invoice } })
      return { status: 402, required: { x402Version: 2, resource: { url: at }, accepts: offer === undefined ? [] : [offer] } }
    })
    await expect(pay.fetch(url)).rejects.toMatchObject({ code: 'unusable_challenge', message: expect.stringMatching(reason) })
    expect(asked).toBe(0)
  })

  test.each(['e30', 'not base64!', Buffer.from('[]').toString('base64')])(
    'a header that is not a document: %s',
    async (required) => {
      const url = await serving(() => ({ status: 402, required }))
      await expect(pay.fetch(url)).rejects.toMatchObject({ code: 'unusable_challenge' })
    },
  )
})

test('with and without node:crypto, keys and signatures are judged the same', () => {
  const node = nodeCrypto()
  const good = invoiceWith({ descriptionHash: 'ab'.repeat(32) })
  const bad = invoiceWith({ descriptionHash: 'ab'.repeat(32), privateKey: 2 })
  for (const crypto of [node, nobleCrypto]) {
    expect([good, bad].map((invoice) => crypto?.isSignedBy(invoice, NODE_KEY))).toEqual([true, false])
    expect(
      [NODE_KEY, NODE_KEY.toUpperCase(), `04${NODE_KEY.slice(2)}`, `02${'ff'.repeat(32)}`, ''].map((key) =>
        crypto?.isNodeKey(key),
      ),
    ).toEqual([true, ...Array(4).fill(false)])
    expect(Buffer.from(crypto?.sha256(Buffer.from('abc')) ?? []).toString('hex')).toBe(sha256('abc'))
  }
})
