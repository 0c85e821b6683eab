import { beforeAll, expect, test } from 'vitest'
import { ALL } from '../../sdk/test/dialects/x402-buyer.ts'
import { Market } from '../../sdk/test/paywall-harness.ts'
import { JOKE, type Opening, SHOPS } from '../../sdk/test/paywall-shops.ts'
import { inBrowser, newContext } from './harness.ts'

inBrowser('the paywall’s page', () => {
  let market: Market
  beforeAll(async () => {
    market = await Market.open()
  })

  test.each([[['l402']], [['mpp']], [['x402']], [ALL]])(
    'C69: %j: a person pays with their phone, pastes the preimage and gets what was sold',
    async (protocols) => {
      await market.renew()
      const open = SHOPS[0]?.[1] as Opening
      const shop = await open({ ...market.terms, protocols: protocols as never, html: true })
      const page = await (await newContext()).newPage()
      const answer = await page.goto(shop.url('/jokes/1'))
      expect(answer?.status()).toBe(402)
      const link = (await page.locator('a[href^="lightning:"]').getAttribute('href')) ?? ''
      const { preimage } = await market.wallet.payInvoice({ invoice: link.slice('lightning:'.length) })
      await page.fill('#preimage', ` ${preimage.toUpperCase()} `)
      await page.click('text=Get it')
      await page.waitForURL(/^blob:/)
      expect(await page.textContent('body')).toContain(JOKE)
      expect([market.paid, shop.delivered]).toEqual([1, 1])
    },
  )
})
