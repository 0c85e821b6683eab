import { createRequire } from 'node:module'
import { fetch402 } from '@getalby/lightning-tools/402'
import { Lsat } from 'lsat-js'
import { Mppx } from 'mppx/client'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { challengesIn, Market } from '../../sdk/test/paywall-harness.ts'
import { SHOPS, type Shop } from '../../sdk/test/paywall-shops.ts'
import { eventually } from '../../server/test/support/server.ts'
import { lightningOf } from './mppx-lightning.ts'

/** What goes wrong between honest parties. Each customer pays once and gets what they paid for. */

const require = createRequire(import.meta.url)
const { setupL402Interceptor, MemoryTokenStore, PaymentResult } = require('l402')
const { default: axios } = createRequire(require.resolve('l402'))('axios')

let market: Market
beforeAll(async () => {
  market = await Market.open()
})
beforeEach(() => market.renew())

type Got = { status: number; text: string }
type Asking = { method?: 'GET' | 'HEAD'; signal?: AbortSignal }
/**
 * `buy` requests, pays and requests again, as the client does; `again` returns with the same credential. Undefined: no complete response.
 */
type Buyer = Record<'buy' | 'again', (url: string, asking?: Asking) => Promise<Got | undefined>>

const gotFrom = async (answer: Response): Promise<Got> => ({ status: answer.status, text: await answer.text() })
const nothing = (): undefined => undefined

function mppxBuyer(): Buyer {
  let authorization = ''
  const recording: typeof fetch = async (input, init) => {
    const headers = new Headers(input instanceof Request ? input.headers : init?.headers)
    authorization = headers.get('authorization') ?? authorization
    const answer = await fetch(input, init)
    // mppx copies a 402 and reads neither copy. If a copy has been garbage-collected when the request is aborted, Node's fetch rejects a
    // promise that no code can catch.
    return answer.status === 402 ? new Response(await answer.text(), answer) : answer
  }
  const lightning = lightningOf((invoice) => market.wallet.payInvoice({ invoice }))
  const client = Mppx.create({ methods: [lightning], polyfill: false, fetch: recording })
  return {
    buy: (url, asking) => client.fetch(url, asking).then(gotFrom).catch(nothing),
    again: (url, asking) =>
      fetch(url, { ...asking, headers: { authorization } })
        .then(gotFrom)
        .catch(nothing),
  }
}

function albyBuyer(): Buyer {
  let credentials: { header: string; value: string } | undefined
  const ask = async (url: string, asking: Asking = {}): Promise<Got | undefined> => {
    try {
      const answer = await fetch402(url, asking, { wallet: market.wallet, ...(credentials ? { credentials } : {}) })
      credentials ??= answer.payment?.credentials
      return await gotFrom(answer)
    } catch (error) {
      credentials ??= (error as { credentials?: typeof credentials }).credentials
      return undefined
    }
  }
  return { buy: ask, again: ask }
}

function l402Buyer(): Buyer {
  const shopper = axios.create({ proxy: false, responseType: 'text' })
  const purse = {
    payInvoice: async (invoice: string) => new PaymentResult((await market.wallet.payInvoice({ invoice })).preimage, true),
  }
  // By default, the store keeps separate tokens for HEAD and GET.
  setupL402Interceptor(shopper, purse, new MemoryTokenStore({ keyMode: 'hostname-path' }))
  const ask = (url: string, asking: Asking = {}): Promise<Got | undefined> =>
    shopper.request({ url, ...asking }).then(
      ({ status, data }: { status: number; data: string }) => ({ status, text: data }),
      ({ response }: { response?: { status: number; data: string } }) =>
        response?.data === undefined ? undefined : { status: response.status, text: response.data },
    )
  return { buy: ask, again: ask }
}

function lsatBuyer(): Buyer {
  let authorization = ''
  const again: Buyer['again'] = (url, asking) =>
    fetch(url, { ...asking, headers: { authorization } })
      .then(gotFrom)
      .catch(nothing)
  return {
    buy: async (url, asking) => {
      const lsat = Lsat.fromHeader(challengesIn(await fetch(url, asking))[0] ?? '')
      lsat.setPreimage((await market.wallet.payInvoice({ invoice: lsat.invoice })).preimage)
      authorization = lsat.toToken()
      return again(url, asking)
    },
    again,
  }
}

const BUYERS: [name: string, make: () => Buyer][] = [
  ['mppx', mppxBuyer],
  ['Alby', albyBuyer],
  ['l402', l402Buyer],
  ['lsat-js', lsatBuyer],
]
const FRAMEWORKS = SHOPS.filter(([name]) => ['Express 5', 'Fastify', 'Hono'].includes(name))

describe.each(FRAMEWORKS)('%s', (_framework, open) => {
  let shop: Shop
  beforeEach(async () => {
    shop = await open({ ...market.terms, protocol: 'both' })
  })
  const undelivered = (): Promise<unknown> =>
    eventually(() => market.events.some(({ type }) => type === 'undelivered'), 'the failed delivery')

  test.each(BUYERS)('D1: %s: a price that changes with every request is paid once, as it was quoted', async (_name, make) => {
    let sat = 100
    const moving = await open({ ...market.terms, protocol: 'both', amountSat: () => sat++ })
    expect([(await make().buy(moving.url('/slow')))?.text, market.paid]).toEqual(['slow', 1])
  })

  test.each(BUYERS)('D1: %s: a price that doubles with every request is paid once, and never again', async (_name, make) => {
    let sat = 100
    const doubling = () => {
      sat *= 2
      return sat
    }
    const soaring = await open({ ...market.terms, protocol: 'both', amountSat: doubling })
    const buyer = make()
    expect([(await buyer.buy(soaring.url('/slow')))?.status, market.paid]).toEqual([409, 1])
    sat = 100
    expect([(await buyer.again(soaring.url('/slow')))?.text, market.paid]).toEqual(['slow', 1])
  })

  test.each(BUYERS)('D3: %s disconnects during a slow response, comes back, and is served', async (_name, make) => {
    const buyer = make()
    const controller = new AbortController()
    let resume = (): void => undefined
    shop.work = () =>
      new Promise((resolve) => {
        resume = resolve
      })
    const left = buyer.buy(shop.url('/slow'), { signal: controller.signal })
    await eventually(() => shop.started === 1, 'the handler to be called')
    const { closed } = shop
    controller.abort()
    expect(await left).toBeUndefined()
    await eventually(() => shop.closed > closed, 'the shop to notice')
    shop.work = async () => undefined
    resume()
    await undelivered()
    expect([(await buyer.again(shop.url('/slow')))?.text, market.paid]).toEqual(['slow', 1])
  })

  test.each(BUYERS)('D3: %s gets half a response, comes back, and gets all of it', async (_name, make) => {
    const buyer = make()
    expect(await buyer.buy(shop.url('/broken-off'))).toBeUndefined()
    await undelivered()
    shop.isRepaired = true
    expect([(await buyer.again(shop.url('/broken-off')))?.text, market.paid]).toEqual(['half and half', 1])
  })

  test.each(BUYERS)('D7: %s gets a 404, comes back, and gets the resource', async (_name, make) => {
    const buyer = make()
    expect((await buyer.buy(shop.url('/missing')))?.status).toBe(404)
    shop.isRepaired = true
    expect([(await buyer.again(shop.url('/missing')))?.status, market.paid]).toEqual([200, 1])
  })

  test.each(BUYERS)('D8: %s sends HEAD, pays, and gets the resource too', async (_name, make) => {
    const buyer = make()
    expect((await buyer.buy(shop.url('/slow'), { method: 'HEAD' }))?.status).toBe(200)
    expect([(await buyer.again(shop.url('/slow')))?.text, market.paid]).toEqual(['slow', 1])
  })
})
