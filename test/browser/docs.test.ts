import axe from 'axe-core'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { openApp } from '../../server/test/support/app.ts'
import { inBrowser, newContext } from './harness.ts'

/** A guide with code, the reference with its tables, and the page that does not exist. All pages are made of the same parts. */
const PAGES = ['/docs/guides/charge-without-code', '/docs/api/webhooks', '/docs/no-such-page']
const WIDTHS = [360, 768, 1024, 1440, 1920]

/** The width of the page if it is wider than the window, otherwise 0. */
const TOO_WIDE = `document.documentElement.scrollWidth > innerWidth ? document.documentElement.scrollWidth : 0`

/** The only rules whose outcome depends on the color scheme; the elements are the same in both. */
const COLOR_RULES = ['color-contrast', 'link-in-text-block']

async function findingsOf(page: Page, runOnly?: string[]): Promise<string[]> {
  const options = { runOnly, resultTypes: ['violations'], selectors: false }
  const { violations } = await page.evaluate<{ violations: { id: string; nodes: { html: string }[] }[] }>(
    `axe.run(${JSON.stringify(options)})`,
  )
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 160)}`))
}

inBrowser('the documentation site', () => {
  test('C89: no page has an accessibility finding in light or dark, is cut off, or loads anything from elsewhere', async () => {
    const { port } = await openApp()
    const found: string[] = []
    const page = await (await newContext({ colorScheme: 'light' })).newPage()
    page.on('request', (request) => {
      if (new URL(request.url()).host !== `127.0.0.1:${port}`) found.push(`${page.url()} loads ${request.url()}`)
    })
    for (const path of PAGES) {
      await page.goto(`http://127.0.0.1:${port}${path}`)
      for (const width of WIDTHS) {
        await page.setViewportSize({ width, height: 800 })
        const tooWide = await page.evaluate<number>(TOO_WIDE)
        if (tooWide > 0) found.push(`${path} is ${tooWide} px wide at ${width}`)
      }
      await page.evaluate(axe.source)
      found.push(...(await findingsOf(page)).map((finding) => `${path} light ${finding}`))
      await page.getByRole('button', { name: 'Use the dark theme' }).click()
      found.push(...(await findingsOf(page, COLOR_RULES)).map((finding) => `${path} dark ${finding}`))
      await page.getByRole('button', { name: 'Use the light theme' }).click()
    }
    expect(found).toEqual([])
  })

  test('C89: search finds a section by keyboard, offline; code can be copied; the theme is kept', async () => {
    const { port } = await openApp()
    const context = await newContext({
      viewport: { width: 390, height: 844 },
      permissions: ['clipboard-read', 'clipboard-write'],
    })
    const page = await context.newPage()
    await page.goto(`http://127.0.0.1:${port}/docs/quickstart`)
    await page.locator('.code').first().getByRole('button', { name: 'Copy' }).click()
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe('npm ci && npm start\n')

    await page.keyboard.press('/')
    await page.getByRole('combobox').fill('idempotency key')
    await page.getByRole('option', { name: /^Idempotency-Key API overview/ }).waitFor()
    await page.evaluate(axe.source)
    expect(await findingsOf(page)).toEqual([])
    await page.getByRole('combobox').fill('terms mismatch')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.waitForURL(/\/docs\/(?!quickstart)/)

    await page.getByRole('button', { name: 'Use the dark theme' }).click()
    await page.reload()
    expect(await page.locator('html').getAttribute('data-mantine-color-scheme')).toBe('dark')
    await page.getByRole('link', { name: 'Menu', exact: true }).click()
    await page.getByRole('link', { name: 'Glossary' }).click()
    await page.getByRole('heading', { level: 1, name: 'Glossary' }).waitFor()
  })
})
