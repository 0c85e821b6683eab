import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { fetch402 } from '@getalby/lightning-tools/402'
import { decodePaymentResponseHeader } from '@x402/fetch'
import express from 'express'
import { Lsat } from 'lsat-js'
import { Receipt } from 'mppx'
import { Mppx } from 'mppx/client'
import { validate } from 'mppx/validation'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { inHome, run } from '../../cli/test/harness.ts'
import { paywall } from '../../sdk/src/paywall/adapters/express.ts'
import { ALL } from '../../sdk/test/dialects/x402-buyer.ts'
import { challengesIn, Market } from '../../sdk/test/paywall-harness.ts'
import { JOKE, SHOPS, type Shop } from '../../sdk/test/paywall-shops.ts'
import { openProxy } from '../../sdk/test/shops/proxy.ts'
import { balanceOf, fund } from '../../server/test/support/nodes.ts'
import { lightningOf } from './mppx-lightning.ts'
import { x402Fetch } from './x402-lightning.ts'

/** Published clients against a shop that offers every protocol: each pays exactly once, by whichever protocol it knows. */

const require = createRequire(import.meta.url)
const { setupL402Interceptor, MemoryTokenStore, PaymentResult } = require('l402')
const { default: axios } = createRequire(require.resolve('l402'))('axios')

let market: Market
const purse = inHome('purse.json')
beforeAll(async () => {
  market = await Market.open()
  const { node, credentials } = market.otherNode
  await fund(market.server, market.otherNode, 100_000)
  writeFileSync(purse, JSON.stringify({ nodeId: node.id, endpointUrl: node.endpointUrl, ...credentials }))
})
beforeEach(() => market.renew())

const GOODS = { joke: JOKE, id: '1' }
const pay = (invoice: string) => market.wallet.payInvoice({ invoice })
const lightning = lightningOf(pay)

describe.each([...SHOPS, ['the proxy', openProxy] as const])('%s', (_name, open) => {
  let shop: Shop
  let url: string
  beforeEach(async () => {
    shop = await open({ ...market.terms, protocols: ALL })
    url = shop.url('/jokes/1')
  })
  const sales = (): [number, number] => [market.paid, shop.delivered]

  test('C69: @x402/fetch pays once and reads the settlement', async () => {
    const answer = await x402Fetch(pay)(url)
    expect([answer.status, await answer.json(), ...sales()]).toEqual([200, GOODS, 1, 1])
    expect(decodePaymentResponseHeader(answer.headers.get('payment-response') ?? '')).toMatchObject({ success: true })
  })

  test('C69: @x402/fetch pays once for a body, which the handler gets', async () => {
    const answer = await x402Fetch(pay)(shop.url('/echo'), { method: 'POST', body: '{"words": 2}' })
    expect([answer.status, await answer.text(), market.paid]).toEqual([200, '{"words": 2}', 1])
  })

  test.each([false, true])('C69, MPP 57: mppx pays once and reads the receipt, with requiresAuth: %s', async (requiresAuth) => {
    shop = await open({ ...market.terms, protocols: ALL, requiresAuth })
    const answer = await Mppx.create({ methods: [lightning], polyfill: false }).fetch(shop.url('/jokes/1'))
    expect([answer.status, await answer.json(), ...sales()]).toEqual([200, GOODS, 1, 1])
    expect(Receipt.fromResponse(answer)).toMatchObject({ method: 'lightning', status: 'success' })
  })

  test('C69, L402 14: Alby pays once', async () => {
    const answer = await fetch402(url, {}, { wallet: market.wallet })
    expect([answer.status, await answer.json(), ...sales()]).toEqual([200, GOODS, 1, 1])
  })

  test('C69, L402 15: l402 pays once', async () => {
    const shopper = axios.create({ proxy: false })
    const purse = { payInvoice: async (invoice: string) => new PaymentResult((await pay(invoice)).preimage, true) }
    setupL402Interceptor(shopper, purse, new MemoryTokenStore())
    expect([(await shopper.get(url)).data, ...sales()]).toEqual([GOODS, 1, 1])
  })

  test('C69, L402 16: lsat-js pays once', async () => {
    const [challenge = ''] = challengesIn(await fetch(url))
    const lsat = Lsat.fromHeader(challenge)
    lsat.setPreimage((await pay(lsat.invoice)).preimage)
    const answer = await fetch(url, { headers: { authorization: lsat.toToken() } })
    expect([answer.status, await answer.json(), ...sales()]).toEqual([200, GOODS, 1, 1])
  })

  test('C69: boltyard pay pays once', async () => {
    const before = await balanceOf(market.node)
    const { code, stdout } = await run(['pay', url, '--password-file', purse])
    expect([code, JSON.parse(stdout), shop.delivered]).toEqual([0, GOODS, 1])
    expect((await balanceOf(market.node)) - before).toBe(10)
  })
})

test('C69: mppx/validation finds no failure in a shop that offers everything', async () => {
  const app = express()
  const offers = [{ intent: 'charge', method: 'lightning', amount: '10', currency: 'sat', description: 'A joke' }]
  const operation = {
    'x-payment-info': { offers },
    responses: { 200: { description: 'A joke' }, 402: { description: 'Payment' } },
  }
  app.get('/openapi.json', (_request, response) => {
    response.json({ openapi: '3.1.0', info: { title: 'Jokes', version: '1' }, paths: { '/joke': { get: operation } } })
  })
  app.get('/llms.txt', (_request, response) => void response.type('text').send('Jokes for sale.'))
  app.get('/joke', paywall({ ...market.terms, protocols: ALL }), (_request, response) => void response.send(JOKE))
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const { summary, endpoints } = await validate({ url, headers: ['Accept-Payment: lightning/charge'], skipPayment: true })
  const failures = endpoints.flatMap(({ challenge, errorHandling }) => [...challenge, ...errorHandling])
  expect([summary.failed, failures.filter(({ severity }) => severity === 'fail')]).toEqual([0, []])
  expect(summary.passed).toBeGreaterThan(5)
  server.close()
})
