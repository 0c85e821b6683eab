import { gzipSync } from 'node:zlib'
import axe from 'axe-core'
import type { Page } from 'playwright-core'
import { beforeAll, expect, test } from 'vitest'
import type { Server } from '../../server/test/support/server.ts'
import { FADED } from '../../testing/chromium.ts'
import { enter, go, inBrowser, newContext, newPerson, type Person, startDashboard } from './harness.ts'
import { furnish, pathsOf, untilLoaded, visitAll } from './pages.ts'

const NARROW = { width: 360, height: 740 }
const WIDE = { width: 1280, height: 800 }
const LONG_MS = 1_800_000

type Finding = { id: string; nodes: { html: string; failureSummary: string }[] }

/** The only rules whose outcome depends on the color scheme; the elements are the same in both. */
const COLOR_RULES = ['color-contrast', 'link-in-text-block']

async function findingsOf(page: Page, colorScheme: 'light' | 'dark'): Promise<string[]> {
  // Elements that are still fading in have too little contrast.
  await page.evaluate(FADED)
  const runOnly = colorScheme === 'light' ? undefined : COLOR_RULES
  // A selector for each element that passes would take most of the time.
  const options = { runOnly, resultTypes: ['violations'], selectors: false }
  const { violations, passes } = await page.evaluate<{ violations: Finding[]; passes: Finding[] }>(
    `axe.run(${JSON.stringify(options)})`,
  )
  expect(passes.map(({ id }) => id)).toContain('color-contrast')
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)} ${failureSummary}`),
  )
}

/** Content that is cut off by its box and cannot be scrolled into view. Text with an ellipsis is fine. */
const CLIPPED = `[...document.querySelectorAll('main *, [role=dialog] *')].filter((element) => {
  const { overflowX, textOverflow } = getComputedStyle(element)
  const hides = overflowX === 'hidden' || overflowX === 'clip'
  return hides && textOverflow !== 'ellipsis' && element.clientWidth > 1 && element.scrollWidth > element.clientWidth + 2
}).map((element) => element.tagName + '.' + element.className + ' ' + element.scrollWidth + ' > ' + element.clientWidth)`

/** Lists that scroll sideways, so that their last column is cut off, and tabs that do not fit and do not scroll. */
const SIDEWAYS = `[...document.querySelectorAll('main .list')].filter((list) => list.scrollWidth > list.clientWidth)
  .map((list) => 'list: ' + list.scrollWidth + ' > ' + list.clientWidth)
  .concat([...document.querySelectorAll('main [role=tablist]')].filter((list) => list.clientHeight > 60)
  .map((list) => 'tabs in several rows: ' + list.clientHeight + ' px'))`

/** What is wider than its card. */
const PAST_MARGIN = `[...document.querySelectorAll('main .card > *')].filter((part) => part.scrollWidth > part.clientWidth + 1)
  .map((part) => 'past the margin: ' + part.className + ' ' + part.scrollWidth + ' > ' + part.clientWidth)`

/** As if it had been chosen in another tab. */
const showIn = (unit: 'sat' | 'btc'): string =>
  `localStorage.setItem('boltyard-unit', '${unit}'); dispatchEvent(new StorageEvent('storage', { key: 'boltyard-unit' }))`

/** Makes the times in lists old. Otherwise, the width of a page would depend on how fast the test is. */
const AGED = `for (const time of document.querySelectorAll('main .list time')) time.textContent = '59 minutes ago'`

/** Words in columns that are too narrow, lists that scroll sideways, and times that wrap. */
const CRAMPED = `[...document.querySelectorAll('main *')].filter((element) => {
  const text = [...element.childNodes].filter(({ nodeType }) => nodeType === 3).map(({ data }) => data.trim()).join('')
  const { width, height } = element.getBoundingClientRect()
  const hidden = getComputedStyle(element).position === 'absolute' || element.closest('.mantine-VisuallyHidden-root') !== null
  if (hidden || height === 0) return false
  if (element.matches('.list') && element.scrollWidth > element.clientWidth) return true
  if (element.matches('time') && element.getClientRects().length > 1) return true
  return text.length > 6 && width < 60 && height > 50
}).map((element) => element.tagName + '.' + element.className + ' ' + Math.round(element.getBoundingClientRect().width) + ' px: ' + element.textContent.slice(0, 40))`

/** A delay for each route, always the same, so that responses arrive one after another, as on a slow connection. */
const latenessMs = (path: string): number => ([...path].reduce((sum, letter) => sum + letter.charCodeAt(0), 0) % 10) * 100

inBrowser('how the dashboard looks and loads', () => {
  let server: Server
  let furnished: Person
  /** The findings of a visit to every page with content. */
  const findings = { axe: [] as string[], narrow: [] as string[], between: [] as string[], console: [] as string[] }

  beforeAll(async () => {
    server = await startDashboard()
    furnished = await newPerson(server, { viewport: WIDE })
    const paths = pathsOf(await furnish(furnished))
    let current = ''
    furnished.context.on('console', (message) => {
      const isFault = message.type() === 'error' || message.type() === 'warning'
      // The browser itself logs an error for the page that does not exist.
      if (isFault && current !== 'no-such-page') findings.console.push(`/${current} ${message.text()}`)
    })
    furnished.page.on('request', (request) => {
      if (request.isNavigationRequest()) current = request.url().replace(`${server.url}/dashboard/`, '')
    })
    await visitAll(furnished, paths, lookAt)
  }, LONG_MS)

  async function lookAt(page: Page, path: string): Promise<void> {
    await page.evaluate(axe.source)
    for (const viewport of [WIDE, NARROW]) {
      await page.setViewportSize(viewport)
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme })
        await page.locator(`html[data-mantine-color-scheme=${colorScheme}]`).waitFor()
        const found = await findingsOf(page, colorScheme)
        findings.axe.push(...found.map((finding) => `/${path} ${colorScheme} ${viewport.width}: ${finding}`))
      }
    }
    const scrollWidth = (): Promise<number> => page.evaluate<number>('document.scrollingElement.scrollWidth')
    await page.evaluate(AGED)
    for (const width of [NARROW.width, 375]) {
      await page.setViewportSize({ ...NARROW, width })
      const scrolled = await scrollWidth()
      if (scrolled > width) findings.narrow.push(`/${path} ${width}: ${scrolled} px`)
      for (const script of [CLIPPED, SIDEWAYS])
        findings.narrow.push(...(await page.evaluate<string[]>(script)).map((what) => `/${path} ${width}: ${what}`))
    }
    if (path === 'credit') {
      await page.setViewportSize(NARROW)
      await page.evaluate(showIn('btc'))
      await page.getByTestId('usage-total').getByText('BTC').waitFor()
      for (const script of [SIDEWAYS, PAST_MARGIN])
        findings.narrow.push(...(await page.evaluate<string[]>(script)).map((what) => `/${path} in BTC: ${what}`))
      await page.evaluate(showIn('sat'))
    }
    for (const width of [768, 820, 900, 910, 1024, 1199]) {
      await page.setViewportSize({ width, height: 1024 })
      const scrolled = await scrollWidth()
      if (scrolled > width) findings.between.push(`/${path} ${width}: the page is ${scrolled} px wide`)
      for (const script of [CLIPPED, CRAMPED])
        findings.between.push(...(await page.evaluate<string[]>(script)).map((what) => `/${path} ${width}: ${what}`))
    }
    await page.setViewportSize(WIDE)
    await page.emulateMedia({ colorScheme: 'light' })
  }

  /** Another window of the person whose account has content on every page. */
  async function owner(viewport = WIDE): Promise<Person> {
    return Object.assign(Object.create(furnished), await enter(furnished, { viewport }))
  }

  test('every page, light and dark, wide and at 360 px: axe finds nothing', () => {
    expect(findings.axe).toEqual([])
  })

  test('dashboard: between 768 and 1199 px nothing is cut off, no column is a few letters wide, and a time is one line', () => {
    expect(findings.between).toEqual([])
  })

  test('at 360 px no page scrolls sideways, and the menu is behind a button', async () => {
    expect(findings.narrow).toEqual([])

    const person = await owner(NARROW)
    const { page } = person
    await person.open()
    await untilLoaded(page)
    const menu = page.getByRole('button', { name: 'Menu', exact: true })
    expect(await page.getByRole('navigation', { name: 'Main' }).count()).toBe(0)
    await menu.click()
    await go(page, 'Credit')
    await page.getByRole('navigation', { name: 'Main' }).waitFor({ state: 'detached' })
    expect(await menu.getAttribute('aria-expanded')).toBe('false')
    // By keyboard, the focus moves into the menu, and back to its button when the menu closes.
    await menu.focus()
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').locator(':focus').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('navigation', { name: 'Main' }).waitFor({ state: 'detached' })
    await expect.poll(() => menu.evaluate((button: any) => button === button.ownerDocument.activeElement)).toBe(true)

    // Where passkeys cannot be used, as at an IP address, two pages have a long link to where they can.
    await page.addInitScript('delete window.PublicKeyCredential')
    const stranger = await (await newContext({ viewport: NARROW })).newPage()
    await stranger.addInitScript('delete window.PublicKeyCredential')
    await person.open('settings')
    await stranger.goto(`${server.url}/dashboard/sign-in`)
    for (const one of [page, stranger]) {
      await one.getByRole('link', { name: /^http:\/\/localhost/ }).waitFor()
      expect(await one.evaluate('document.scrollingElement.scrollWidth')).toBe(NARROW.width)
    }
  })

  test('the bottom of the menu is always inside the window', async () => {
    const person = await owner()
    const { page } = person
    const foot = page.getByText(/^Version /)
    const isSeen = async (): Promise<boolean> => {
      const box = await foot.boundingBox()
      return box !== null && box.y > 0 && box.y + box.height <= WIDE.height
    }
    // One page that is shorter than the window, and one that is longer: at its top, and scrolled.
    for (const path of ['nodes', 'developers']) {
      await person.open(path)
      await untilLoaded(page)
      expect([path, await isSeen()]).toEqual([path, true])
    }
    await page.mouse.wheel(0, 5_000)
    await expect.poll(() => page.evaluate<number>('window.scrollY')).toBeGreaterThan(100)
    expect(await isSeen()).toBe(true)

    // With one more banner above.
    await page.route('**/dashboard/api/events', (route) => route.abort())
    await person.open('activity')
    await page.getByText('The connection to the service is lost.').waitFor()
    expect(await isSeen()).toBe(true)
  })

  test('the Content-Security-Policy blocks nothing, and the console stays empty', async () => {
    const person = await owner()
    const said: string[] = []
    person.context.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') said.push(`${message.location().url} ${message.text()}`)
    })
    const { page } = person
    const answer = await page.goto(`${server.url}/dashboard/`)
    const policy = answer?.headers()['content-security-policy'] ?? ''
    expect(policy).toMatch(/default-src 'none'; script-src 'self'; style-src 'self';/)
    expect(policy).not.toMatch(/unsafe|\*/)
    await person.open()
    await page.locator('.chart canvas').waitFor()
    await page.getByRole('button', { name: 'Use the dark theme' }).click()
    await page.getByRole('button', { name: 'Use the light theme' }).click()
    expect([...findings.console, ...said]).toEqual([])
  })

  test('the first load has at most 250 kB of script, gzipped', async () => {
    const person = await owner()
    const scripts = new Map<string, Promise<Buffer>>()
    person.context.on('response', (response) => {
      if (response.request().resourceType() === 'script') scripts.set(response.url(), response.body())
    })
    const { page } = person
    await person.open()
    await page.locator('.chart canvas').waitFor()
    const bodies = await Promise.all(scripts.values())
    expect(bodies.length).toBeGreaterThan(1)
    const bytes = bodies.reduce((sum, body) => sum + gzipSync(body, { level: 9 }).length, 0)
    expect(bytes).toBeGreaterThan(50_000)
    expect(bytes).toBeLessThanOrEqual(250_000)
  })

  test('the layout does not shift while pages load, full or empty, wide and at 360 px', async () => {
    const shifts: Record<string, number> = {}
    for (const viewport of [WIDE, NARROW]) {
      for (const person of [await owner(viewport), await newPerson(server, { viewport })]) {
        const { page } = person
        await page.addInitScript(`
          window.shifts = []
          new PerformanceObserver((list) => {
            for (const { value, hadRecentInput, sources } of list.getEntries())
              if (!hadRecentInput) window.shifts.push([value, sources.map(({ node }) => node?.className ?? '').join(' ')])
          }).observe({ type: 'layout-shift', buffered: true })
        `)
        await page.route('**/dashboard/api/**', async (route) => {
          await new Promise((done) => setTimeout(done, latenessMs(new URL(route.request().url()).pathname)))
          await route.continue()
        })
        for (const path of ['', 'nodes', 'gateway', 'developers', 'developers/requests', 'activity']) {
          await person.open(path)
          await untilLoaded(page)
          // Events and fonts arrive after the content. Shifts that they cause count as well.
          await page.waitForLoadState('load')
          await page.evaluate(
            'new Promise((done) => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 1000))',
          )
          const seen = await page.evaluate<[number, string][]>('window.shifts')
          const sum = seen.reduce((total, [value]) => total + value, 0)
          // For comparison: a line of text that appears late is a shift of 0.02.
          if (sum >= 0.01) shifts[`${viewport.width} /${path} ${person.email} ${JSON.stringify(seen)}`] = sum
        }
      }
    }
    expect(shifts).toEqual({})
  })

  test('with only the keyboard: past the menu, into a form, through a dialog and back', async () => {
    const person = await owner()
    const { page } = person
    await person.open('nodes')
    await untilLoaded(page)
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await expect.poll(() => page.evaluate('document.activeElement.id')).toBe('content')
    await page.getByRole('button', { name: 'Create node' }).focus()
    await page.keyboard.press('Enter')
    const box = page.getByRole('dialog', { name: 'Create a node' })
    await expect
      .poll(() => box.getByLabel('Name').evaluate((field: any) => field === field.ownerDocument.activeElement))
      .toBe(true)
    // The dialog traps the focus until it is closed.
    for (let press = 0; press < 12; press++) await page.keyboard.press('Tab')
    expect(await box.evaluate((element: any) => element.contains(element.ownerDocument.activeElement))).toBe(true)
    await page.keyboard.press('Escape')
    await box.waitFor({ state: 'detached' })
  })
})
