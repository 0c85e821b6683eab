import type { Browser, BrowserContext, BrowserContextOptions, Locator, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect } from 'vitest'
import { signUp, type Visitor } from '../../server/test/support/dashboard.ts'
import { freePort, Server, type StoreKind } from '../../server/test/support/server.ts'
import { findChromium, openChromium } from '../../testing/chromium.ts'

/** Tests that use the dashboard with a real browser and a real service. Elements are found by their accessible names. */

const program = findChromium()
const isWanted = program !== undefined || process.env.CI === 'true'

/** A browser, PostgreSQL and Lightning nodes share two cores, often with other tests. These limits only end tests that hang. */
const PATIENCE_MS = 120_000
const TEST_MS = 600_000

let browser: Browser | undefined
const contexts = new Set<BrowserContext>()
const faults: string[] = []

/** Skipped with a message if there is no Chromium; with CI=true, that is a failure. */
export function inBrowser(name: string, tests: () => void): void {
  if (!isWanted) process.stderr.write(`\n### SKIPPED: ${name}: neither Chromium nor Chrome is on the PATH ###\n\n`)
  describe.skipIf(!isWanted)(name, { timeout: TEST_MS }, () => {
    beforeAll(async () => {
      if (!program) throw new Error('CI needs a browser: neither Chromium nor Chrome is on the PATH')
      browser = await openChromium(program)
    }, TEST_MS)
    afterEach(async ({ task }) => {
      if (task.result?.state === 'fail') await tellWhatIsShown()
      await Promise.all([...contexts].map((context) => context.close()))
      contexts.clear()
      // In every test, no page may throw or violate its Content-Security-Policy.
      expect(faults.splice(0)).toEqual([])
    }, TEST_MS)
    afterAll(async () => {
      await browser?.close()
    }, TEST_MS)
    tests()
  })
}

/** Prints the content of each page, because a failed locator does not say what was there instead. */
async function tellWhatIsShown(): Promise<void> {
  for (const page of [...contexts].flatMap((context) => context.pages())) {
    const text = await page.locator('body').ariaSnapshot({ timeout: 5_000 }).catch(String)
    process.stderr.write(`\n--- ${page.url()}\n${text}\n`)
  }
}

/**
 * At `localhost`, because passkeys need a host name. The limit is raised, because a test sends many requests from one address.
 */
export async function startDashboard(env: Record<string, string> = {}, store: StoreKind = 'shared'): Promise<Server> {
  const port = await freePort()
  const server = new Server({
    store,
    env: { PUBLIC_URL: `http://localhost:${port}`, TRUST_PROXY: '1', RATE_LIMIT_MAX: '100000', ...env },
  })
  server.port = port
  return server.start()
}

let addresses = 0

export async function newContext(options: BrowserContextOptions = {}): Promise<BrowserContext> {
  if (!browser) throw new Error('no browser')
  const address = `10.200.${(addresses >> 8) & 255}.${addresses++ & 255}`
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    // Animations would use CPU time that the service needs.
    reducedMotion: 'reduce',
    // Dates are shown in the viewer's language, and not in that of the machine.
    locale: 'en-GB',
    extraHTTPHeaders: { 'x-forwarded-for': address },
    ...options,
  })
  context.setDefaultTimeout(PATIENCE_MS)
  context.on('weberror', (error) => faults.push(String(error.error().stack)))
  context.on('console', (message) => {
    if (/Content.Security.Policy/i.test(message.text())) faults.push(message.text())
  })
  contexts.add(context)
  return context
}

export type Person = Visitor & { context: BrowserContext; page: Page; open: (path?: string) => Promise<Page> }

/** A person with an account and a session who has not opened the dashboard yet. */
export async function newPerson(server: Server, options: BrowserContextOptions = {}): Promise<Person> {
  const visitor = await signUp(server)
  return Object.assign(visitor, await enter(visitor, options))
}

/** Opens another browser for the same signed-in person. */
export async function enter(
  { server, cookie }: Visitor,
  options: BrowserContextOptions = {},
): Promise<Pick<Person, 'context' | 'page' | 'open'>> {
  const context = await newContext(options)
  await context.addCookies(
    cookie.split('; ').map((pair) => {
      const [name = '', value = ''] = pair.split(/=(.*)/s)
      return { name, value, url: server.url }
    }),
  )
  const page = await context.newPage()
  const open = async (path = ''): Promise<Page> => {
    await load(page, `${server.url}/dashboard/${path}`)
    return page
  }
  return { context, page, open }
}

/** Another program may create or remove a network interface at any time. Chromium then aborts what it is loading. */
async function load(page: Page, url: string): Promise<void> {
  try {
    await page.goto(url)
  } catch (error) {
    if (!String(error).includes('net::ERR_NETWORK_CHANGED')) throw error
    await load(page, url)
  }
}

export const heading = (page: Page, name: string | RegExp): Locator => page.getByRole('heading', { level: 1, name })

export const dialog = (page: Page, name: string | RegExp): Locator => page.getByRole('dialog', { name })

/** Navigates through the menu, without a page load. */
export async function go(page: Page, place: string): Promise<void> {
  await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: place }).click()
  await heading(page, place).waitFor()
}

/** Needs the page of API keys to be open. */
export async function openKeyDialog(page: Page): Promise<Locator> {
  await page.getByRole('button', { name: 'Create API key' }).click()
  return dialog(page, 'Create an API key')
}

/** The visible text of an element, with normalized spaces. */
export async function textOf(locator: Locator): Promise<string> {
  // biome-ignore lint/performance/useDomNodeTextContent: two cells of a table would become one word
  return (await locator.innerText()).replace(/\s+/g, ' ').trim()
}

/** Waits for the text, because changes from elsewhere take a moment to appear. */
export async function untilText(locator: Locator, wanted: string | RegExp): Promise<void> {
  const shown = typeof wanted === 'string' ? expect.stringContaining(wanted) : expect.stringMatching(wanted)
  await expect.poll(() => textOf(locator), { interval: 100 }).toEqual(shown)
}

/** The secrets shown in the dialog, by name. */
export async function readSecrets(box: Locator, names: string[]): Promise<Record<string, string>> {
  const secrets: Record<string, string> = {}
  for (const name of names) {
    await box.getByRole('button', { name: `Show ${name}` }).click()
    secrets[name] = await textOf(box.getByRole('region', { name }).locator('pre'))
  }
  return secrets
}

export const CREDENTIALS = ['Recovery words', 'Full password', 'Restricted password']

export async function closeSecrets(box: Locator): Promise<void> {
  await box.getByRole('checkbox', { name: 'I have stored it' }).check()
  await box.getByRole('button', { name: 'Close' }).click()
  await box.waitFor({ state: 'detached' })
}
