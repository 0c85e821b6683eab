import { createHash } from 'node:crypto'
import { createRequire } from 'node:module'
import { fetch402, fetchWithL402 } from '@getalby/lightning-tools/402'
import { fetchWithMpp } from '@getalby/lightning-tools/402/mpp'
import { Lsat } from 'lsat-js'
import { beforeAll, describe, expect, test } from 'vitest'
import { COST_SAT, expectNoSale, expectOneSale, FUNDS_SAT, Market, PRICE_SAT } from './harness.ts'
import { GOODS } from './merchant.ts'

/** Published third-party clients against the gateway. Whatever we think the protocols say, these must work. */

const require = createRequire(import.meta.url)
const { setupL402Interceptor, MemoryTokenStore, PaymentResult } = require('l402')
// The copy of axios that `l402` itself uses.
const { default: axios } = createRequire(require.resolve('l402'))('axios')

let market: Market
beforeAll(async () => {
  market = await Market.open()
})

const wallet = { payInvoice: ({ invoice }: { invoice: string }) => market.pay(invoice) }
const TOO_MUCH_SAT = 10 * FUNDS_SAT

const receiptOf = (response: Response) =>
  JSON.parse(Buffer.from(response.headers.get('payment-receipt') ?? '', 'base64url').toString())

describe('Alby', () => {
  test.each([
    ['fetchWithMpp', fetchWithMpp],
    ['fetch402', fetch402],
  ])('MPP 57: %s pays, its credential validates, and the receipt names the payment', async (_name, client) => {
    const trade = await market.trade(() => client(market.url('/mpp'), {}, { wallet }))
    const { result: response, payments, asked } = trade
    expect([response.status, await response.text()]).toEqual([200, GOODS])
    expectOneSale(trade, 'mpp')
    expect(response.payment).toMatchObject({ paid: true, amountSat: PRICE_SAT })
    expect(receiptOf(response)).toEqual({
      challengeId: asked[0]?.challenge.split('"')[1],
      method: 'lightning',
      reference: payments[0]?.paymentHash,
      status: 'success',
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    })
    expect(Math.floor(Date.parse(receiptOf(response).timestamp) / 1000)).toBe(asked[0]?.settledAt)
  })

  test.each([
    ['fetchWithL402', fetchWithL402],
    ['fetch402', fetch402],
  ])('L402 14: %s pays, and its credential validates', async (_name, client) => {
    const trade = await market.trade(() => client(market.url('/l402'), {}, { wallet }))
    expect([trade.result.status, await trade.result.text()]).toEqual([200, GOODS])
    expectOneSale(trade, 'l402')
    expect(trade.visits[0]?.authorization).toMatch(/^L402 /)
    expect(trade.result.headers.get('payment-receipt')).toBeNull()
  })

  test('L402 20: challenged under the old name it responds with the old name, which validates too', async () => {
    const trade = await market.trade(() => fetchWithL402(market.url('/lsat'), {}, { wallet }))
    expect([trade.result.status, await trade.result.text()]).toEqual([200, GOODS])
    expectOneSale(trade, 'l402')
    expect(trade.visits[0]?.authorization).toMatch(/^LSAT /)
  })

  test('L402 25, 61: a repeated credential works again, validated or redeemed, and costs nothing', async () => {
    const first = await fetchWithL402(market.url('/l402?once'), {}, { wallet })
    expect(first.status).toBe(200)
    for (const path of ['/l402', '/l402?once']) {
      const trade = await market.trade(() => fetchWithL402(market.url(path), {}, { wallet, credentials: credentialsOf(first) }))
      expect([trade.result.status, await trade.result.text()]).toEqual([200, GOODS])
      expect([trade.spentSat, trade.asked, trade.visits.map(({ status }) => status)]).toEqual([0, [], [200]])
    }
  })

  test('MPP 43: a repeated credential validates again, with the same receipt', async () => {
    const first = await fetchWithMpp(market.url('/mpp'), {}, { wallet })
    const again = { wallet, credentials: credentialsOf(first) }
    const { result: second, spentSat } = await market.trade(() => fetchWithMpp(market.url('/mpp'), {}, again))
    expect([second.status, await second.text(), spentSat]).toEqual([200, GOODS, 0])
    expect(first.headers.get('payment-receipt')).toMatch(/^[\w-]+$/)
    expect(second.headers.get('payment-receipt')).toBe(first.headers.get('payment-receipt'))
  })

  test('MPP 58: a repeated credential is redeemed once; then it is 409, and the client does not pay again', async () => {
    const first = await fetchWithMpp(market.url('/mpp?once'), {}, { wallet })
    expect([first.status, await first.text()]).toEqual([200, GOODS])
    expect(receiptOf(first).status).toBe('success')
    const again = { wallet, credentials: credentialsOf(first) }
    const { result: second, ...trade } = await market.trade(() => fetchWithMpp(market.url('/mpp?once'), {}, again))
    expect([second.status, second.headers.get('payment-receipt'), trade.spentSat]).toEqual([402, null, 0])
    expect(trade.visits).toMatchObject([{ status: 409, code: 'already_redeemed' }])
  })

  test.each([
    ['MPP 57: fetchWithMpp', fetchWithMpp, '/mpp'],
    ['L402 14: fetchWithL402', fetchWithL402, '/l402'],
  ])('%s, whose wallet loses the response, resumes with the preimage and does not pay twice', async (_name, client, path) => {
    const lost: { preimage?: string } = {}
    const forgetful = {
      payInvoice: async ({ invoice }: { invoice: string }) => {
        lost.preimage = (await market.pay(invoice)).preimage
        throw new Error('timeout')
      },
    }
    const trade = await market.trade(async () => {
      const interruption = await client(market.url(path), {}, { wallet: forgetful }).catch((error) => error)
      expect(interruption).toMatchObject({ name: 'Fetch402InterruptedError', paid: false })
      const resume = { pendingPayment: interruption.pendingPayment, preimage: lost.preimage ?? '' }
      return client(market.url(path), {}, { wallet, resume })
    })
    expect([trade.result.status, await trade.result.text()]).toEqual([200, GOODS])
    expectOneSale(trade, path.slice(1))
  })

  test.each([
    ['MPP 57: fetchWithMpp', fetchWithMpp, '/mpp'],
    ['L402 14: fetchWithL402', fetchWithL402, '/l402'],
    ['L402 14: fetch402', fetch402, '/l402'],
  ])('%s with too little money fails, and nothing is paid', async (_name, client, path) => {
    const url = market.url(`${path}?sat=${TOO_MUCH_SAT}`)
    const trade = await market.trade(() => client(url, {}, { wallet }).catch((error) => error))
    expect(trade.result).toMatchObject({ name: 'Fetch402InterruptedError', paid: false, amountSat: TOO_MUCH_SAT })
    expect(trade.result.cause.message).toMatch(/balance|funds/)
    expectNoSale(trade)
  })

  test('MPP 9: fetch402 reads the price from the invoice, and pays no more than its limit', async () => {
    const options = { wallet, maxAmount: PRICE_SAT - 1 }
    const trade = await market.trade(() => fetch402(market.url('/mpp'), {}, options).catch((error) => error))
    expect(trade.result.cause.message).toContain(`(${PRICE_SAT} sats) exceeds maxAmount`)
    expectNoSale(trade)
  })
})

describe('l402', () => {
  /** Stops after this many payments: the interceptor of `l402` pays every 402 it gets, and would never stop. */
  function client(mostPayments = 1): { get: (url: string) => Promise<any> } {
    const instance = axios.create({ proxy: false })
    let left = mostPayments
    const purse = {
      payInvoice: async (invoice: string) => {
        if (left-- === 0) return new PaymentResult('', false, 'enough')
        return market.pay(invoice).then(
          ({ preimage }) => new PaymentResult(preimage, true),
          (error) => new PaymentResult('', false, error.message),
        )
      },
    }
    setupL402Interceptor(instance, purse, new MemoryTokenStore())
    return instance
  }

  test('L402 15: the interceptor pays, its credential validates, and the next request needs no payment', async () => {
    const shopper = client()
    const trade = await market.trade(() => shopper.get(market.url('/l402')))
    expect([trade.result.status, trade.result.data]).toEqual([200, GOODS])
    expectOneSale(trade, 'l402')
    const again = await market.trade(() => shopper.get(market.url('/l402')))
    expect([again.result.data, again.spentSat, again.asked, again.visits.length]).toEqual([GOODS, 0, [], 1])
  })

  test('L402 15: with too little money it fails, and nothing is paid', async () => {
    const url = market.url(`/l402?sat=${TOO_MUCH_SAT}`)
    const trade = await market.trade(() =>
      client()
        .get(url)
        .catch((error) => error),
    )
    expect(trade.result.response.status).toBe(402)
    expectNoSale(trade)
  })

  test('L402 §6: of two offers it takes L402 if that line comes first', async () => {
    const trade = await market.trade(() => client().get(market.url('/l402+mpp')))
    expect(trade.result.data).toBe(GOODS)
    expectOneSale(trade, 'l402', 2)
  })

  test('L402 §6: with the Payment line first it pays for a credential without a scheme, and pays again for every 402: never send that', async () => {
    const trade = await market.trade(() =>
      client(2)
        .get(market.url('/mpp+l402'))
        .catch((error) => error),
    )
    expect(trade.result.response.status).toBe(402)
    expect(trade.visits.map(({ authorization, status }) => [/^\S+:[0-9a-f]{64}$/.test(authorization), status])).toEqual(
      Array(2).fill([true, undefined]),
    )
    expect([trade.spentSat, trade.asked.filter(({ status }) => status === 'paid')]).toEqual([2 * COST_SAT, []])
  })

  test('MPP §9: if only MPP is offered, it pays nothing', async () => {
    const trade = await market.trade(() =>
      client()
        .get(market.url('/mpp'))
        .catch((error) => error),
    )
    expect(trade.result.response.status).toBe(402)
    expectNoSale(trade)
  })
})

describe('lsat-js', () => {
  test.each(['/l402', '/lsat', '/l402+mpp'])(
    'L402 16: it parses %s as an LSAT, and its token validates under that scheme',
    async (path) => {
      const trade = await market.trade(async () => {
        const lsat = Lsat.fromHeader(await challengeOf(path))
        expect([lsat.invoiceAmount, lsat.isPending(), lsat.isExpired()]).toEqual([PRICE_SAT, true, false])
        expect(lsat.getCaveats().map(({ condition }) => condition)).toEqual(['services', 'boltyard_valid_until', 'payment_id'])
        lsat.setPreimage((await market.pay(lsat.invoice)).preimage)
        expect(lsat.isSatisfied()).toBe(true)
        return fetch(market.url(path), { headers: { authorization: lsat.toToken() } })
      })
      expect([trade.result.status, await trade.result.text()]).toEqual([200, GOODS])
      expectOneSale(trade, 'l402', path.split('+').length)
      expect(trade.visits[0]?.authorization).toMatch(/^LSAT /)
    },
  )

  test('L402 16: an unpaid token is not a credential', async () => {
    const token = Lsat.fromHeader(await challengeOf('/l402')).toToken()
    const { result, visits } = await market.trade(() => fetch(market.url('/l402'), { headers: { authorization: token } }))
    expect([result.status, visits.map(({ code }) => code)]).toEqual([402, ['invalid_payment_credential']])
  })
})

describe('the Go clients', () => {
  /** The clients' own patterns. They mean the same in JavaScript as in Go. */
  const APERTURE = /(LSAT|L402) macaroon="(.*?)", invoice="(.*?)"/
  const LNGET = /(LSAT|L402)\s+macaroon="([^"]+)",\s*invoice="([^"]+)"/i
  /** What Go's base64.StdEncoding accepts: the standard alphabet, padded. */
  const STD_ENCODING = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

  describe.each([
    ['Aperture', APERTURE],
    ['lnget', LNGET],
  ])('%s', (_name, pattern) => {
    test.each(['/l402', '/lsat', '/l402+mpp', '/mpp+l402'])(
      'L402 17: reads the challenge of %s, and what it reads can be paid',
      async (path) => {
        const trade = await market.trade(async () => {
          const [, scheme, macaroon = '', invoice = ''] = pattern.exec(await challengeOf(path)) ?? []
          expect([scheme, macaroon]).toEqual([path === '/lsat' ? 'LSAT' : 'L402', expect.stringMatching(STD_ENCODING)])
          const { preimage, paymentHash } = await market.pay(invoice)
          expect(createHash('sha256').update(preimage, 'hex').digest('hex')).toBe(paymentHash)
          return fetch(market.url(path), { headers: { authorization: `${scheme} ${macaroon}:${preimage}` } })
        })
        expect([trade.result.status, await trade.result.text()]).toEqual([200, GOODS])
        expectOneSale(trade, 'l402', path.split('+').length)
      },
    )
  })
})

describe('two offers in one 402', () => {
  test.each([
    ['/l402+mpp', 'fetch402', fetch402, 'l402'],
    ['/l402+mpp', 'fetchWithL402', fetchWithL402, 'l402'],
    ['/mpp+l402', 'fetch402', fetch402, 'mpp'],
    ['/mpp+l402', 'fetchWithMpp', fetchWithMpp, 'mpp'],
    ['/mpp+l402', 'fetchWithL402', fetchWithL402, 'l402'],
  ])('MPP §9: of %s, Alby’s %s takes one and pays once', async (path, _name, client, taken) => {
    const trade = await market.trade(() => client(market.url(path), {}, { wallet }))
    expect([trade.result.status, await trade.result.text()]).toEqual([200, GOODS])
    expectOneSale(trade, taken, 2)
  })

  test('MPP §9: for /l402+mpp, fetchWithMpp returns the 402 and pays nothing', async () => {
    const trade = await market.trade(() => fetchWithMpp(market.url('/l402+mpp'), {}, { wallet }))
    expect(trade.result.status).toBe(402)
    expectNoSale(trade, 2)
  })
})

/** The challenge that a client without a wallet gets. */
async function challengeOf(path: string): Promise<string> {
  const response = await fetch(market.url(path))
  expect([response.status, response.headers.get('cache-control')]).toEqual([402, 'no-store'])
  return response.headers.get('www-authenticate') ?? ''
}

function credentialsOf({ payment }: Awaited<ReturnType<typeof fetch402>>) {
  if (!payment) throw new Error('nothing was paid')
  return payment.credentials
}
