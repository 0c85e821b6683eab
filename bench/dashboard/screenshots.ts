import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Browser, Page } from 'playwright-core'
import { FADED, findChromium, openChromium } from '../../testing/chromium.ts'
import { agent, killDaemons, Service } from '../../testing/service.ts'
import { Visitor } from './visitor.ts'

/** `npm run screenshots`: every page, light and dark, wide and 360 px, of a separate instance, into docs/images/. */

const DIRECTORY = fileURLToPath(new URL('../../docs/images', import.meta.url))
const SIZES = { wide: { width: 1280, height: 800 }, narrow: { width: 360, height: 740 } }
const SCHEMES = ['light', 'dark'] as const

const program = findChromium()
if (!program) {
  console.error('Pictures need a browser: neither chromium nor google-chrome is on the PATH.')
  process.exit(1)
}
const dataDir = mkdtempSync(join(tmpdir(), 'boltyard-screenshots-'))
const service = new Service(dataDir)
let browser: Browser | undefined
try {
  await service.start({ SIGNUP_CREDIT_SAT: '10000' })
  const visitor = await Visitor.signUp(service, 'ann@example.com')
  const shown = await furnish(visitor)
  await spread()
  browser = await openChromium(program)
  mkdirSync(DIRECTORY, { recursive: true })
  for (const scheme of SCHEMES) for (const size of Object.keys(SIZES)) await takeAll(browser, visitor, shown, scheme, size)
} finally {
  await browser?.close()
  await service.stop()
  killDaemons(dataDir)
  agent.destroy()
  rmSync(dataDir, { recursive: true, force: true })
}

type Shown = { shop: string; idle: string; payment: string }

async function furnish(visitor: Visitor): Promise<Shown> {
  const [shop, podcast, idle] = await Promise.all([
    visitor.createReady({ name: 'Shop', accessMode: 'full' }),
    visitor.createReady({ name: 'Podcast' }),
    visitor.createReady({ name: 'Archive' }),
  ])
  await visitor.call('POST', `/sandbox/nodes/${shop}/fund`, { amountSat: 1_250_000 })
  await visitor.call('POST', `/nodes/${idle}/stop`)
  const wares: [description: string, amountSat: number, nodeId: string][] = [
    ['Weather report', 100, shop],
    ['Episode 41', 2_100, podcast],
    ['Photo in full size', 850, shop],
    ['One hour of API access', 5_000, shop],
  ]
  let payment = ''
  for (let round = 0; round < 36; round++) {
    const [description, amountSat, nodeId] = wares[(round * 7) % wares.length] ?? ['', 1, shop]
    const charge = await visitor.charge(nodeId, amountSat, description)
    if (round % 5 === 3) continue
    await visitor.pay(charge)
    payment = charge.id
  }
  await visitor.call('POST', '/keys', { name: 'Shop server', scopes: ['nodes:read', 'gateway:write'] })
  await visitor.call('POST', '/keys', { name: 'Backups', scopes: ['nodes:read'] })
  return { shop, idle, payment }
}

/** Spreads the payments over the last day, because payments within one minute would be a single bar in the chart. */
async function spread(): Promise<void> {
  const sql = service.store()
  await sql`
    UPDATE gateway_payments p SET settled_at = settled_at - (36 - r.place) * interval '38 minutes', created_at = created_at - (36 - r.place) * interval '38 minutes'
    FROM (SELECT id, row_number() OVER (ORDER BY id) AS place FROM gateway_payments) r WHERE r.id = p.id AND p.settled_at IS NOT NULL`
  await sql.end()
}

async function takeAll(browser: Browser, visitor: Visitor, shown: Shown, scheme: 'light' | 'dark', size: string): Promise<void> {
  const viewport = SIZES[size as keyof typeof SIZES]
  const enter = async (isSignedIn: boolean): Promise<Page> => {
    const context = await browser.newContext({ viewport, colorScheme: scheme, reducedMotion: 'reduce' })
    if (isSignedIn) await visitor.enter(context)
    return context.newPage()
  }
  const [owner, stranger] = [await enter(true), await enter(false)]
  for (const [name, { path, act, isGate = false }] of Object.entries(scenes(shown))) {
    const page = isGate ? stranger : owner
    await page.goto(`${service.url}/dashboard/${path}`)
    await page.getByRole('heading', { level: 1 }).first().waitFor({ state: 'attached' })
    while ((await page.locator('[aria-busy=true]').count()) > 0) await new Promise((done) => setTimeout(done, 50))
    await act?.(page)
    await page.mouse.move(0, 0)
    await page.evaluate(FADED)
    const file = `${name}-${scheme}-${size}.png`
    await page.screenshot({ path: join(DIRECTORY, file) })
    console.log(file)
  }
  for (const page of [owner, stranger]) await page.context().close()
}

type Scene = { path: string; act?: (page: Page) => Promise<unknown>; isGate?: boolean }

function scenes({ shop, idle, payment }: Shown): Record<string, Scene> {
  const invoice = async (page: Page): Promise<void> => {
    await page.getByRole('button', { name: 'Create invoice' }).click()
    await page.getByRole('img', { name: 'QR code of the invoice' }).scrollIntoViewIfNeeded()
  }
  return {
    overview: { path: '', act: (page) => page.locator('.chart canvas').waitFor() },
    nodes: { path: 'nodes' },
    'create-node': { path: 'nodes?create=true' },
    node: { path: `nodes/${shop}` },
    'node-stopped': { path: `nodes/${idle}` },
    'node-payments': { path: `nodes/${shop}?tab=payments` },
    'node-connect': { path: `nodes/${shop}?tab=connect` },
    'node-invoice': {
      path: `nodes/${shop}?tab=invoice`,
      act: async (page) => {
        await page.getByLabel('Description').fill('Two coffees')
        await invoice(page)
      },
    },
    'node-send': { path: `nodes/${shop}?tab=send` },
    'node-settings': { path: `nodes/${shop}?tab=settings` },
    gateway: { path: 'gateway' },
    payment: { path: `gateway/payments/${payment}` },
    'try-it': {
      path: 'gateway/try-it',
      act: async (page) => {
        await page.getByRole('button', { name: 'Run all steps' }).click()
        await page.getByTestId('paid').waitFor()
        await page.evaluate('window.scrollTo(0, 0)')
      },
    },
    developers: { path: 'developers' },
    requests: { path: 'developers/requests' },
    webhooks: { path: 'developers/webhooks' },
    palette: {
      path: '',
      act: async (page) => {
        await page.keyboard.press('Control+k')
        await page.getByRole('dialog').waitFor()
      },
    },
    credit: { path: 'credit', act: invoice },
    activity: { path: 'activity' },
    settings: { path: 'settings' },
    'sign-in': { path: 'sign-in', isGate: true },
    'sign-up': { path: 'sign-up', isGate: true },
    link: { path: 'link', isGate: true },
  }
}
