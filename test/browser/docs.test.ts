import { expect, test } from 'vitest'
import { openApp } from '../../server/test/support/app.ts'
import { inBrowser, newContext } from './harness.ts'

inBrowser('the interactive page of the API', () => {
  test('security 19: it works under its own policy, loads nothing from elsewhere, and fits a phone', async () => {
    const { port } = await openApp()
    const context = await newContext({ viewport: { width: 390, height: 844 }, isMobile: true })
    const page = await context.newPage()
    const elsewhere: string[] = []
    page.on('request', (request) => {
      const { protocol, host } = new URL(request.url())
      if (protocol !== 'data:' && host !== `127.0.0.1:${port}`) elsewhere.push(request.url())
    })
    await page.goto(`http://127.0.0.1:${port}/docs`)
    await page.getByText('Create a node').first().click()
    await page.getByRole('button', { name: 'Try it out' }).first().click()
    await page.getByRole('button', { name: 'Execute' }).first().click()
    await page.locator('.live-responses-table').getByText('"unauthorized"').first().waitFor()
    expect(elsewhere).toEqual([])
    expect(await page.evaluate('document.documentElement.clientWidth')).toBe(390)
  })
})
