import { once } from 'node:events'
import { readdirSync, writeFileSync } from 'node:fs'
import { createServer, type Server as HttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { home, inHome, inTerminal, onTerminal, run } from './harness.ts'
import { invoiceOf, nowSeconds as now } from './invoices.ts'

/** Servers with challenges that must not be paid. The wallet here would pay any invoice. */

let shop: HttpServer
let wallet: HttpServer
let header: string[] = []
let body = ''
const asked: string[] = []
const HASH = 'ab'.repeat(32)

const urlOf = (server: HttpServer): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
const listening = async (server: HttpServer): Promise<HttpServer> => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server
}

beforeAll(async () => {
  shop = await listening(
    createServer(
      (_, response) =>
        void (body ? response.end(body) : response.writeHead(402, header.length ? { 'www-authenticate': header } : {}).end()),
    ),
  )
  wallet = await listening(
    createServer((request, response) => {
      asked.push(request.url ?? '')
      response.end(
        JSON.stringify({ paymentHash: HASH, paymentPreimage: '00'.repeat(32), recipientAmountSat: 1, routingFeeSat: 0 }),
      )
    }),
  )
  writeFileSync(inHome('password'), 'secret')
})
afterAll(() => {
  for (const server of [shop, wallet]) {
    server.close()
    server.closeAllConnections()
  }
})

const args = (): string[] => ['pay', urlOf(shop), '--node-url', urlOf(wallet), '--password-file', inHome('password')]

const invoice = (sat: number | undefined, more?: { timestamp?: number; prefix?: string }): string => invoiceOf(HASH, sat, more)

const request = (more: object = {}, details: object = {}): string =>
  Buffer.from(
    JSON.stringify({ amount: '10', currency: 'sat', methodDetails: { invoice: invoice(10), ...details }, ...more }),
  ).toString('base64url')
const mpp = (encoded = request(), more = ''): string =>
  `Payment id="x", realm="shop", method="lightning", intent="charge", request="${encoded}"${more}`

describe('refused without asking the node', () => {
  test.each<[string, string[]]>([
    ['no challenge at all', []],
    ['only another scheme', ['Basic realm="x"']],
    ['another method of payment', [mpp().replace('lightning', 'tempo')]],
    ['a malformed header', ['L402 macaroon="AgE=" invoice="x"']],
    ['a malformed line beside a good one', [mpp(), 'L402 macaroon="AgE']],
    ['L402 without a macaroon', [`L402 invoice="${invoice(10)}"`]],
    ['L402 without an invoice', ['L402 macaroon="AgE="']],
    ['an invoice without an amount', [`L402 macaroon="AgE=", invoice="${invoice(undefined)}"`]],
    ['an invoice that has expired', [`L402 macaroon="AgE=", invoice="${invoice(10, { timestamp: now - 3_601 })}"`]],
    [
      'an invoice with a letter changed',
      [`L402 macaroon="AgE=", invoice="${invoice(10).replace(/.$/, (last) => (last === 'q' ? 'p' : 'q'))}"`],
    ],
    ['two invoices in one challenge', [`L402 macaroon="AgE=", invoice="${invoice(10)}", invoice="${invoice(20)}"`]],
    ['a challenge that says less than its invoice', [mpp(request({ amount: '10' }, { invoice: invoice(900) }))]],
    ['a challenge that says more', [mpp(request({ amount: '900' }))]],
    ['another currency', [mpp(request({ currency: 'usd' }))]],
    ['an amount that is a number', [mpp(request({ amount: 10 }))]],
    ['an amount with a point', [mpp(request({ amount: '10.0' }))]],
    ['another payment hash', [mpp(request({}, { paymentHash: 'cd'.repeat(32) }))]],
    ['another network', [mpp(request({}, { invoice: invoice(10, { prefix: 'bcrt' }) }))]],
    ['a challenge that has expired', [mpp(request(), `, expires="${new Date(Date.now() - 1000).toISOString()}"`)]],
    ['an expiry that is not a time', [mpp(request(), ', expires="soon"')]],
    ['a request that is not base64url', [mpp('e30=')]],
    ['a request that is not JSON', [mpp(Buffer.from('{').toString('base64url'))]],
    ['a request that is a list', [mpp(Buffer.from('[]').toString('base64url'))]],
  ])('%s', async (_, lines) => {
    header = lines
    body = ''
    asked.length = 0
    const { code, stdout, error } = await run(args())
    expect([code, stdout, error().code]).toEqual([1, '', 'unusable_challenge'])
    expect(error().message).toContain('Nothing was paid.')
    expect(asked).toEqual([])
  })

  test('the cheaper of two offers, if the first is too expensive', async () => {
    header = [`L402 macaroon="AgE=", invoice="${invoice(2000)}"`, mpp(request({ amount: '1500' }, { invoice: invoice(1500) }))]
    expect((await run(args())).error()).toMatchObject({ code: 'too_expensive', amountSat: 1500 })
  })
})

test('a wrong preimage from the wallet is not accepted; the purchase stays on disk', async () => {
  header = [mpp()]
  body = ''
  const { code, error } = await run(args())
  expect([code, error().code, error().outcome]).toEqual([1, 'wrong_preimage', 'unknown'])
  expect(readdirSync(`${home}/.local/state/boltyard/paid`)).toEqual([`${HASH}.json`])
})

onTerminal('strange answers', () => {
  test('a body cannot control the terminal; piped, it is unchanged', async () => {
    body = 'good\tday\n\x1b]0;owned\x07\x1b[2J'
    const { screen } = await inTerminal(args())
    expect(screen).toContain('good\tday')
    for (const evil of ['\x1b]', '\x1b[2J', '\x07']) expect(screen).not.toContain(evil)
    expect((await run(args())).stdout).toBe(body)
  })
})
