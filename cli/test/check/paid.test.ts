import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { paymentIdOf } from '../../../sdk/src/index.ts'
import { chargeX402, redeemX402, requestHashOf } from '../../../server/test/gateway/x402-sales.ts'
import { charge, newMerchant, redeem, untilKnown, validate } from '../../../server/test/support/gateway.ts'
import type { Created, Owner } from '../../../server/test/support/nodes.ts'
import { type Server, startServer } from '../../../server/test/support/server.ts'
import { ROOMY, run } from '../harness.ts'

/** --pay-sandbox with real invoices of a real sandbox node, in a shop that was written without the SDK. */

let server: Server
let seller: Owner
let till: Created

beforeAll(async () => {
  server = await startServer({ env: ROOMY })
  seller = await newMerchant(server)
  till = await seller.createReady()
})

const PRICES: Record<string, number> = { '/cheap': 10, '/dear': 500 }
type Delivery = { status?: number; headers?: Record<string, string>; isEndless?: boolean }
/** What the shop does with a credential. */
type Clerk = (credential: string, path: string) => Promise<Delivery | 'refuse'>

const PRIVATE = { 'cache-control': 'private' }

/** Redeems the credential only for this path and at least its price. */
const honest: Clerk = async (credential, path) => {
  const expected = { nodeId: till.node.id, resource: path, minAmountSat: PRICES[path] }
  const answer = await untilKnown(() => redeem(seller, paymentIdOf(credential) ?? 'pay_none', credential, { expect: expected }))
  if (answer.status !== 200) return 'refuse'
  const { receipt } = answer.json()
  return { headers: { ...PRIVATE, ...(receipt === undefined ? {} : { 'payment-receipt': receipt }) } }
}

async function openShop(protocol: 'mpp' | 'l402', clerk: Clerk, isHeadServed = false): Promise<string> {
  const serve = async ({ method, url = '', headers }: IncomingMessage, response: ServerResponse): Promise<void> => {
    const amountSat = PRICES[url]
    if (url === '/openapi.json') return void response.end(JSON.stringify(openapi(protocol)))
    if (amountSat === undefined) return void response.writeHead(404).end()
    if (method === 'OPTIONS') return void response.writeHead(204).end()
    const delivery =
      headers.authorization === undefined || (method === 'HEAD' && !isHeadServed)
        ? 'refuse'
        : await clerk(headers.authorization, url)
    if (delivery !== 'refuse') {
      response.writeHead(delivery.status ?? 200, delivery.headers).write('goods')
      if (!delivery.isEndless) response.end()
      return
    }
    const { challenge } = await charge(seller, till, { amountSat, description: url, protocol })
    response.writeHead(402, { 'www-authenticate': challenge, 'cache-control': 'no-store' }).end()
  }
  return opened(serve)
}

async function opened(serve: (request: IncomingMessage, response: ServerResponse) => Promise<void>): Promise<string> {
  const shop = createServer((request, response) => {
    serve(request, response).catch((error) => response.writeHead(500).end(String(error)))
  })
  shop.listen(0, '127.0.0.1')
  await once(shop, 'listening')
  afterAll(() => {
    shop.close()
    shop.closeAllConnections()
  })
  return `http://127.0.0.1:${(shop.address() as AddressInfo).port}`
}

function openapi(protocol: 'mpp' | 'l402'): object {
  const offers = Object.entries(PRICES).map(([path, sat]) => [
    path,
    [{ intent: 'charge', method: 'lightning', amount: String(sat) }],
  ])
  const operation = ([path, offer]: any[]) => [
    path,
    { get: { responses: { 402: {} }, ...(protocol === 'mpp' ? { 'x-payment-info': { offers: offer } } : {}) } },
  ]
  return { paths: Object.fromEntries(offers.map(operation)) }
}

async function bought(clerk: Clerk, protocol: 'mpp' | 'l402' = 'mpp', isHeadServed = false) {
  const url = await openShop(protocol, clerk, isHeadServed)
  const env = { SERVICE_BASE_URL: `${server.url}/v1`, OPERATOR_TOKEN: server.operatorToken }
  const ended = await run(['check', url, '--pay-sandbox'], { env })
  const { findings, purchases } = ended.json()
  return {
    code: ended.code,
    ids: [...new Set(findings.map(({ id }: any) => id))].sort(),
    purchases,
    output: ended.stdout + ended.stderr,
  }
}

const purchase = (path: string, deliveries: number, protocol = 'mpp'): object => ({
  operation: `GET ${path}`,
  protocol,
  amountSat: PRICES[path],
  deliveries,
})

test('an honest shop delivers once: no findings, exit 0, and no credential in the output', async () => {
  const credentials: string[] = []
  const { output, ...report } = await bought((credential, path) => {
    credentials.push(credential)
    return honest(credential, path)
  })
  expect(report).toEqual({ code: 0, ids: [], purchases: [purchase('/cheap', 1), purchase('/dear', 1)] })
  expect(credentials.length).toBeGreaterThan(0)
  for (const credential of credentials) expect(output).not.toContain(credential.replace(/^\w+ /, ''))
})

test('an L402 credential that can be reused is not a fault', async () => {
  const { code, ids, purchases } = await bought(honest, 'l402')
  expect({ code, ids, purchases }).toEqual({
    code: 9,
    ids: ['unadvertised-charge'],
    purchases: [purchase('/cheap', 3, 'l402'), purchase('/dear', 3, 'l402')],
  })
})

/** Delivers whatever `validate` accepts. Unlike `redeem`, it claims nothing. */
const validating: Clerk = async (credential) => {
  const answer = await untilKnown(() => validate(seller, paymentIdOf(credential) ?? 'pay_none', credential))
  return answer.status === 200 ? { headers: { ...PRIVATE, 'payment-receipt': answer.json().receipt } } : 'refuse'
}

test('delivered-again, cheap-opens-dear: a shop that only validates', async () => {
  expect(await bought(validating)).toMatchObject({
    code: 9,
    ids: ['cheap-opens-dear', 'delivered-again'],
    purchases: [purchase('/cheap', 3), purchase('/dear', 3)],
  })
})

test('cheap-opens-dear: a shop that redeems without looking at what was paid for', async () => {
  const careless: Clerk = async (credential) => {
    const answer = await untilKnown(() => redeem(seller, paymentIdOf(credential) ?? 'pay_none', credential))
    return answer.status === 200 ? { headers: { ...PRIVATE, 'payment-receipt': answer.json().receipt } } : 'refuse'
  }
  // The payment for /cheap was redeemed at /dear, so /cheap no longer delivers for it.
  expect(await bought(careless)).toMatchObject({ code: 9, ids: ['cheap-opens-dear', 'paid-not-delivered'] })
})

test('head-uses-up: a shop that redeems for HEAD', async () => {
  expect(await bought(honest, 'mpp', true)).toMatchObject({ code: 9, ids: ['head-uses-up'] })
})

const after =
  (change: (delivery: Delivery) => Delivery): Clerk =>
  async (credential, path) => {
    const delivery = await honest(credential, path)
    return delivery === 'refuse' ? 'refuse' : change(delivery)
  }
test('a stream without an end is delivered', async () => {
  const endless: Clerk = async (credential, path) => {
    const delivery = await honest(credential, path)
    return delivery === 'refuse' ? delivery : { ...delivery, isEndless: path === '/cheap' }
  }
  expect(await bought(endless)).toMatchObject({ code: 0, ids: [], purchases: [purchase('/cheap', 1), purchase('/dear', 1)] })
})

const withReceipt = (receipt: object): Clerk =>
  after(() => ({ headers: { ...PRIVATE, 'payment-receipt': Buffer.from(JSON.stringify(receipt)).toString('base64url') } }))

test.each<[id: string, fault: string, clerk: Clerk]>([
  ['paid-not-delivered', 'the handler fails', after(() => ({ status: 500 }))],
  ['receipt-missing', 'there is no receipt', after(() => ({ headers: PRIVATE }))],
  [
    'receipt-wrong',
    'the receipt names another payment',
    withReceipt({ status: 'success', method: 'lightning', reference: '00'.repeat(32) }),
  ],
  ['receipt-wrong', 'the receipt says that the payment failed', withReceipt({ status: 'failed' })],
  [
    'paid-cacheable',
    'shared caches may keep what was sold',
    after(({ headers }) => ({ headers: { ...headers, 'cache-control': 'public, max-age=60' } })),
  ],
])('%s: %s', async (id, _fault, clerk) => {
  expect(await bought(clerk)).toMatchObject({ code: 9, ids: [id] })
})

test('x402 with invoices of a real node: bound to the request, signed by payTo, delivered once, with PAYMENT-RESPONSE', async () => {
  const serve = async ({ method, url, headers }: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (url !== '/report') return void response.writeHead(404).end()
    if (method === 'OPTIONS') return void response.writeHead(204).end()
    const credential = headers['payment-signature']
    const address = `http://${headers.host}/report`
    if (method === 'GET' && credential !== undefined) {
      const answer = await untilKnown(() => redeemX402(seller, credential, { requestHash: requestHashOf(address) }))
      if (answer.status === 200)
        return void response.writeHead(200, { ...PRIVATE, 'payment-response': answer.json().paymentResponse }).end('goods')
    }
    const { challenge } = await chargeX402(seller, till, address)
    response.writeHead(402, { 'payment-required': challenge, 'cache-control': 'no-store' }).end()
  }
  const url = `${await opened(serve)}/report`
  const env = { SERVICE_BASE_URL: `${server.url}/v1`, OPERATOR_TOKEN: server.operatorToken }
  const ended = await run(['check', url, '--pay-sandbox'], { env })
  expect(ended.json()).toMatchObject({
    findings: [],
    skipped: [],
    operations: [{ operation: 'GET /report', status: 402, offers: [{ protocol: 'x402', network: 'regtest' }] }],
    purchases: [{ protocol: 'x402', deliveries: 1 }],
  })
  expect(ended.code).toBe(0)
})
