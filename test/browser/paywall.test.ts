import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { beforeAll, expect, test } from 'vitest'
import { paywall } from '../../sdk/src/paywall/adapters/express.ts'
import { ALL } from '../../sdk/test/dialects/x402-buyer.ts'
import { Market } from '../../sdk/test/paywall-harness.ts'
import { JOKE, type Opening, SHOPS } from '../../sdk/test/paywall-shops.ts'
import { inBrowser, newContext } from './harness.ts'

const open = SHOPS[0]?.[1] as Opening

inBrowser('the paywall’s page', () => {
  let market: Market
  beforeAll(async () => {
    market = await Market.open()
  })

  test.each([[['l402']], [['mpp']], [['x402']], [ALL]])(
    'C69: %j: a person pays with their phone, pastes the preimage and gets what was sold',
    async (protocols) => {
      await market.renew()
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

  test('selling 1: after a reload, the preimage of the first invoice still gets what it paid for', async () => {
    await market.renew()
    const shop = await open({ ...market.terms, protocols: ALL, html: true })
    const page = await (await newContext()).newPage()
    const invoice = async (): Promise<string> =>
      ((await page.locator('a[href^="lightning:"]').getAttribute('href')) ?? '').slice('lightning:'.length)
    await page.goto(shop.url('/jokes/1'))
    const first = await invoice()
    await page.reload()
    expect(await invoice()).not.toBe(first)
    await page.fill('#preimage', 'ff'.repeat(32))
    await page.click('text=Get it')
    await page.waitForSelector('text=does not belong to an invoice')
    const { preimage } = await market.wallet.payInvoice({ invoice: first })
    await page.fill('#preimage', preimage)
    await page.click('text=Get it')
    await page.waitForURL(/^blob:/)
    expect([market.paid, shop.delivered]).toEqual([1, 1])
  })

  test('selling 1: on plain http, where browsers have no function for the hash, too', async () => {
    await market.renew()
    const shop = await open({ ...market.terms, protocols: ALL, html: true })
    const context = await newContext()
    await context.addInitScript("Object.defineProperty(Crypto.prototype, 'subtle', { value: undefined })")
    const page = await context.newPage()
    await page.goto(shop.url('/jokes/1'))
    const link = (await page.locator('a[href^="lightning:"]').getAttribute('href')) ?? ''
    await page.reload()
    const { preimage } = await market.wallet.payInvoice({ invoice: link.slice('lightning:'.length) })
    await page.fill('#preimage', preimage)
    await page.click('text=Get it')
    await page.waitForURL(/^blob:/)
    expect([market.paid, shop.delivered]).toEqual([1, 1])
  })

  test('selling 1: a proof that was already used does not ask for a second payment', async () => {
    await market.renew()
    const shop = await open({ ...market.terms, protocols: ALL, html: true })
    const context = await newContext()
    await context.addInitScript("Object.defineProperty(Crypto.prototype, 'subtle', { value: undefined })")
    const page = await context.newPage()
    await page.goto(shop.url('/jokes/1'))
    const link = (await page.locator('a[href^="lightning:"]').getAttribute('href')) ?? ''
    const { preimage } = await market.wallet.payInvoice({ invoice: link.slice('lightning:'.length) })
    await page.fill('#preimage', preimage)
    await page.click('text=Get it')
    await page.waitForURL(/^blob:/)
    await page.goto(shop.url('/jokes/1'))
    await page.fill('#preimage', preimage)
    await page.click('text=Get it')
    await page.waitForFunction("!/^(One moment.*)?$/.test(document.querySelector('#note').textContent)")
    expect(await page.textContent('#note')).toBe(
      'The credential was already used. A payment buys one delivery. If you have paid and got nothing, do not pay again: ask the seller.',
    )
    expect([market.paid, shop.delivered]).toEqual([1, 1])
  })

  test('C69: a policy for the whole site does not block the page; the page sends what the visit sent, and a bought page works', async () => {
    await market.renew()
    const app = express()
    app.use((_request, response, next) => {
      response.setHeader('content-security-policy', "default-src 'self'")
      next()
    })
    const charge = paywall({ ...market.terms, protocols: ['x402'], bindHeaders: ['accept'], html: true })
    app.get('/', charge, (_request, response) => void response.send(`<h1>${JOKE}</h1><script src="title.js"></script>`))
    app.get('/title.js', (_request, response) => void response.type('js').send('document.title = "Bought"'))
    const server = app.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const page = await (await newContext()).newPage()
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
    const link = page.locator('a[href^="lightning:"]')
    await link.waitFor({ state: 'visible' })
    const { preimage } = await market.wallet.payInvoice({
      invoice: ((await link.getAttribute('href')) ?? '').slice('lightning:'.length),
    })
    await page.fill('#preimage', preimage)
    await page.click('text=Get it')
    await page.waitForFunction("document.title === 'Bought'")
    expect(await page.textContent('h1')).toBe(JOKE)
    server.close()
  })

  test('C69: without its script, the page shows no invoice', async () => {
    await market.renew()
    const shop = await open({ ...market.terms, html: true })
    const page = await (await newContext({ javaScriptEnabled: false })).newPage()
    await page.goto(shop.url('/jokes/1'))
    expect(await page.locator('a[href^="lightning:"]').isVisible()).toBe(false)
    expect(await page.textContent('body')).toContain('needs JavaScript')
  })
})
