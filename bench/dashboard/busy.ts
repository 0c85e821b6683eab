import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, BrowserContext } from 'playwright-core'
import { findChromium, openChromium } from '../../testing/chromium.ts'
import { agent, killDaemons, Service } from '../../testing/service.ts'
import { type Measure, median } from '../measure.ts'
import { type BusyAccount, fillAccount, KEYS, NODES, PAYMENTS } from './busy-account.ts'
import { Visitor } from './visitor.ts'

const ROUNDS = 3
const OF = `of ${PAYMENTS} payments, ${NODES} nodes and ${KEYS} keys`

/**
 * `isThere` resolves with the time, by the browser's clock, from which the page has a heading and nothing on it is loading.
 * READ adds the long tasks, which would delay a click.
 */
const WATCH = `
  window.longTasks = [0]
  new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries()) window.longTasks.push(startTime + duration)
  }).observe({ type: 'longtask', buffered: true })
  window.isThere = new Promise((done) => {
    let settled
    const look = () => {
      const isLoading = !document.querySelector('h1') || document.querySelector('[aria-busy=true]')
      if (isLoading) settled = undefined
      else settled ??= performance.now()
      // A page may begin to load its next part.
      if (settled !== undefined && performance.now() - settled > 500) done(settled)
      else requestAnimationFrame(look)
    }
    look()
  })`
const READ = `window.isThere.then((there) => Math.max(there, ...window.longTasks.filter((end) => end < there + 500)))`

/** Loads every page and every filter of a busy account's dashboard. Reports the slowest of each, by the median of several rounds. */
export async function benchBusyDashboard(isVerbose = false): Promise<Measure[]> {
  const program = findChromium()
  if (!program) {
    console.log('### SKIPPED: a busy dashboard: neither chromium nor google-chrome is on the PATH ###')
    return []
  }
  const dataDir = mkdtempSync(join(tmpdir(), 'boltyard-bench-'))
  const service = new Service(dataDir)
  let browser: Browser | undefined
  try {
    await service.start()
    const visitor = await Visitor.signUp(service, 'busy@example.com')
    const sql = service.store(2)
    const { accountId } = (
      await sql<{ accountId: string }[]>`SELECT id AS "accountId" FROM accounts ORDER BY created_at DESC LIMIT 1`
    )[0] ?? {
      accountId: '',
    }
    const account = await fillAccount(sql, accountId)
    await sql.end()
    const filters = await slowest(filtersOf(account), (path) => answerMs(visitor, path), isVerbose)
    browser = await openChromium(program)
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
    await visitor.enter(context)
    // The first page warms up the browser, because a person's browser is already running.
    await interactiveMs(context, `${service.url}/dashboard/settings`)
    const pages = await slowest(pagesOf(account), (path) => interactiveMs(context, `${service.url}/dashboard/${path}`), isVerbose)
    return [
      { name: `dashboard ${OF}: slowest page (/${pages.path})`, value: pages.ms, unit: 'ms', target: { op: '≤', value: 2000 } },
      { name: `  slowest filter (${filters.path})`, value: filters.ms, unit: 'ms', target: { op: '≤', value: 200 } },
    ]
  } finally {
    await browser?.close()
    await service.stop()
    killDaemons(dataDir)
    agent.destroy()
    rmSync(dataDir, { recursive: true, force: true })
  }
}

async function slowest(
  paths: string[],
  measure: (path: string) => Promise<number>,
  isVerbose: boolean,
): Promise<{ path: string; ms: number }> {
  const results: { path: string; ms: number }[] = []
  for (const path of paths) {
    const times: number[] = []
    for (let round = 0; round < ROUNDS; round++) times.push(await measure(path))
    results.push({ path, ms: median(times) })
  }
  results.sort((one, other) => other.ms - one.ms)
  if (isVerbose) for (const { path, ms } of results) console.log(`${ms.toFixed(0).padStart(6)} ms  ${path}`)
  return results[0] ?? { path: '', ms: Number.NaN }
}

async function answerMs(visitor: Visitor, path: string): Promise<number> {
  const started = performance.now()
  await visitor.call('GET', path)
  return performance.now() - started
}

async function interactiveMs(context: BrowserContext, url: string): Promise<number> {
  const page = await context.newPage()
  await page.addInitScript(WATCH)
  await page.goto(url)
  const ms = await page.evaluate<number>(READ)
  await page.close()
  return ms
}

const pagesOf = ({ nodeIds, paymentId }: BusyAccount): string[] => [
  '',
  'nodes',
  `nodes/${nodeIds[0]}`,
  'gateway',
  'gateway?state=unfulfilled',
  `gateway/payments/${paymentId}`,
  'gateway/try-it',
  'developers',
  'developers/requests',
  'developers/webhooks',
  'credit',
  'activity',
  'settings',
]

/** The requests that the pages send: each list with each of its filters, and the sums shown next to it. */
function filtersOf({ nodeIds, keyIds, from, to, paymentId }: BusyAccount): string[] {
  const payments = [
    '',
    ...['unpaid', 'expired', 'received', 'undelivered', 'delivering', 'delivered', 'unfulfilled'].map(
      (state) => `state=${state}`,
    ),
    'protocol=l402',
    `nodeId=${nodeIds[3]}`,
    `keyId=${keyIds[7]}`,
    'minAmountSat=990',
    'maxAmountSat=12',
    `from=${from}&to=${to}`,
    `search=${paymentId}`,
    'search=lisbon',
    'search=nothing%20has%20this%20name',
    `state=unfulfilled&from=${from}&to=${to}&nodeId=${nodeIds[3]}`,
  ]
  const activity = [
    'folded=true',
    'folded=true&kind=keys',
    `folded=true&nodeId=${nodeIds[3]}`,
    `folded=true&keyId=${keyIds[7]}`,
    'kind=payments',
  ]
  const since = Math.floor(Date.now() / 1000)
  return [
    ...payments.flatMap((filter) => [`/payments?${filter}`, `/payment-totals?${filter}`]),
    ...[...activity, `folded=true&from=${from}&to=${to}`].map((filter) => `/activity?${filter}`),
    ...['', 'kind=usage', 'kind=top_up', `from=${from}&to=${to}`].map((filter) => `/credit?${filter}`),
    ...[1, 7, 30, 90].map((days) => `/credit/usage?from=${since - days * 86_400}`),
    ...['days=1', 'days=7', 'days=30', `from=${from}&to=${from + 61 * 86_400}`].flatMap((period) => [
      `/received?${period}`,
      `/received?${period}&nodeId=${nodeIds[3]}`,
    ]),
    ...['', `keyId=${keyIds[7]}`, 'statusClass=4', 'route=/v1/gateway/payments', 'requestId=req_9'].map(
      (filter) => `/requests?${filter}`,
    ),
    `/overview?from=${since - 7 * 86_400}`,
    '/nodes',
    '/received/nodes',
    '/key-usage',
  ]
}
