import { beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { qrCode } from '../../../protocol/src/qr-code.ts'
import { invoiceIn } from '../../../server/test/support/gateway.ts'
import { paywall as nextPaywall } from '../../src/paywall/adapters/next.ts'
import type { Protocol } from '../../src/types.ts'
import { challengesIn, Market, present } from '../paywall-harness.ts'
import { JOKE, type Opening, SHOPS } from '../paywall-shops.ts'
import { PUBLIC } from '../shops/shop.ts'
import { ALL } from './x402-buyer.ts'

let market: Market
beforeAll(async () => {
  market = await Market.open()
})
beforeEach(() => market.renew())

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'

describe('free requests', () => {
  const isFree = (request: { url?: string; req?: { url: string } }): boolean =>
    /[?&]free$/.test(request.url ?? request.req?.url ?? '')

  test.each(SHOPS.filter(([name]) => !/Next|Request/.test(name)))(
    'C69: %s: what is free is served without a payment, and nothing else is',
    async (_name, open) => {
      const shop = await open({ ...market.terms, free: isFree })
      const answer = await fetch(shop.url('/jokes/1?free'))
      expect([answer.status, await answer.json()]).toEqual([200, { joke: JOKE, id: '1' }])
      expect((await fetch(shop.url('/jokes/1'))).status).toBe(402)
      expect(market.events.map(({ type }) => type)).toEqual(['challenged'])
    },
  )

  test.each(SHOPS)(
    'C69: %s: what is free for this request is not for shared caches; what is free for everyone may be',
    async (_name, open) => {
      const some = await open({ ...market.terms, free: () => true })
      const personal = await fetch(some.url('/public'))
      expect([personal.status, personal.headers.get('cache-control')]).toEqual([200, 'max-age=60, private'])
      const all = await open({ ...market.terms, free: true })
      expect((await fetch(all.url('/public'))).headers.get('cache-control')).toBe(PUBLIC)
    },
  )

  test('C69: only true is free; an error is the framework’s', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => undefined)
    const open = SHOPS[0]?.[1] as Opening
    for (const answer of [undefined, 1, 'yes', Promise.resolve('yes')]) {
      const shop = await open({ ...market.terms, free: () => answer as never })
      expect((await fetch(shop.url('/jokes/1'))).status).toBe(402)
    }
    const broken = await open({
      ...market.terms,
      free: () => {
        throw new Error('no session')
      },
    })
    expect([(await fetch(broken.url('/jokes/1'))).status, broken.delivered]).toEqual([500, 0])
    const sync = nextPaywall({ ...market.terms, free: async () => true }, () => new Response('free'))
    expect(await (await sync(new Request('http://shop/'))).text()).toBe('free')
    vi.restoreAllMocks()
  })
})

describe('a page for browsers', () => {
  test('C69: with `requiresAuth`, the page leaves Authorization to the seller', async () => {
    const open = SHOPS[0]?.[1] as Opening
    const visit = async (protocols: readonly Protocol[]): Promise<[string | null, string]> => {
      const shop = await open({ ...market.terms, protocols, requiresAuth: true, html: true })
      const answer = await fetch(shop.url('/jokes/1'), { headers: { accept: BROWSER } })
      return [answer.headers.get('content-type'), await answer.text()]
    }
    expect((await visit(['l402', 'mpp']))[1]).toContain('"header":"Payment-Authorization"')
    expect((await visit(['l402', 'x402']))[1]).toContain('"header":"PAYMENT-SIGNATURE"')
    expect((await visit(['l402']))[0]).toMatch(/problem\+json/)
  })

  const description = 'A joke for <b>"you" & me</b></script>'

  test.each(SHOPS)(
    'C69: %s: a browser gets a page with the price, the invoice and a QR code; other clients get the problem document',
    async (_name, open) => {
      const shop = await open({ ...market.terms, protocols: ALL, description, html: true })
      const url = shop.url('/jokes/1')
      const answer = await fetch(url, { headers: { accept: BROWSER } })
      expect([answer.status, answer.headers.get('cache-control')]).toEqual([402, 'no-store'])
      expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8')
      const page = await answer.text()
      const [challenge = ''] = challengesIn(answer)
      const invoice = invoiceIn(challenge)
      expect(page).toContain('A joke for &lt;b&gt;&quot;you&quot; &amp; me&lt;/b&gt;&lt;/script&gt;')
      expect(page).toContain('<strong>10 sat</strong>')
      expect(page).toContain(`<a href="lightning:${invoice}">`)
      expect(page.match(/M\d+ \d+h1v1h-1z/g)).toHaveLength(
        qrCode(`LIGHTNING:${invoice.toUpperCase()}`)?.flat().filter(Boolean).length ?? 0,
      )
      expect(answer.headers.get('content-security-policy')).toBe("frame-ancestors 'none'")
      // The page loads no other files.
      expect(page.match(/<(?:script|link|img|iframe)[^>]*(?:src|href)=/g)).toBeNull()
      expect((await present(url, await market.credentialFor(challenge))).status).toBe(200)
      for (const accept of ['*/*', 'application/json', 'text/htmlx'])
        expect((await fetch(url, { headers: { accept } })).headers.get('content-type')).toMatch(/problem\+json/)
      const plain = await open(market.terms)
      expect((await fetch(plain.url('/jokes/1'), { headers: { accept: BROWSER } })).headers.get('content-type')).toMatch(
        /problem\+json/,
      )
    },
  )
})
