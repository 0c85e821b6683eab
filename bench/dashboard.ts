import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { findChromium, openChromium } from './chromium.ts'
import { type Measure, median } from './measure.ts'
import { agent, killDaemons, Service } from './service.ts'
import { Visitor } from './visitor.ts'

/** By the browser's own clock, which starts with the navigation; there means painted, and the page free to answer a click. */
const WATCH = `
  const look = new MutationObserver(() => {
    if (!document.querySelector('[data-testid=overview-credit]') || !document.querySelector('.chart canvas')) return
    look.disconnect()
    requestAnimationFrame(() => setTimeout(() => performance.mark('there')))
  })
  look.observe(document, { subtree: true, childList: true })`
const READ = `({
  paint: performance.getEntriesByName('first-contentful-paint')[0]?.startTime,
  there: performance.getEntriesByName('there')[0]?.startTime,
  scripts: performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('.js')).map(({ encodedBodySize }) => encodedBodySize),
})`
type Load = { paint?: number; there?: number; scripts: number[] }

/** The Overview of somebody who is signed in and has received something, in a browser that has never been here. */
export async function benchDashboard(quick: boolean): Promise<Measure[]> {
  const program = findChromium()
  if (!program) {
    console.log('### SKIPPED: the dashboard: neither chromium nor google-chrome is on the PATH ###')
    return []
  }
  const dataDir = mkdtempSync(join(tmpdir(), 'boltyard-bench-'))
  const service = new Service(dataDir)
  let browser: Browser | undefined
  try {
    await service.start()
    const visitor = await Visitor.signUp(service, 'bench@example.com')
    const nodeId = await visitor.createReady({ name: 'bench' })
    await visitor.pay(await visitor.charge(nodeId, 1_000, 'One report'))
    browser = await openChromium(program)
    const loads: Load[] = []
    // The first round warms the browser up, as the browser of a person is.
    for (let round = 0; round < (quick ? 4 : 8); round++) {
      const load = await loadOnce(browser, service, visitor)
      if (round > 0) loads.push(load)
    }
    const of = (read: (load: Load) => number | undefined): number => median(loads.map((load) => read(load) ?? Number.NaN))
    return [
      { name: 'dashboard, cold cache: first contentful paint', value: of(({ paint }) => paint), unit: 'ms' },
      {
        name: 'dashboard, cold cache: interactive, with its chart',
        value: of(({ there }) => there),
        unit: 'ms',
        target: { op: '≤', value: 1500 },
      },
      {
        name: 'dashboard: script of the first load, gzipped',
        value: of(({ scripts }) => scripts.reduce((sum, size) => sum + size, 0) / 1000),
        unit: 'kB',
        target: { op: '≤', value: 250 },
      },
    ]
  } finally {
    await browser?.close()
    await service.stop()
    killDaemons(dataDir)
    agent.destroy()
    rmSync(dataDir, { recursive: true, force: true })
  }
}

async function loadOnce(browser: Browser, service: Service, visitor: Visitor): Promise<Load> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
  await visitor.enter(context)
  const page = await context.newPage()
  await page.addInitScript(WATCH)
  await page.goto(`${service.url}/dashboard/`)
  await page.locator('.chart canvas').waitFor()
  // What the page loads ahead when it has nothing else to do belongs to the first load as well.
  await page.waitForLoadState('networkidle', { timeout: 3_000 }).catch(() => undefined)
  const load = await page.evaluate<Load>(READ)
  await context.close()
  return load
}
