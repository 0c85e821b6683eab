import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import { beforeAll, describe, expect, test } from 'vitest'
import { payX402, presentX402, settlementIn } from '../../sdk/test/dialects/x402-buyer.ts'
import { challengesIn, Market, present } from '../../sdk/test/paywall-harness.ts'
import { temporaryDirectory } from '../../server/test/support/server.ts'

/**
 * The client and an example in workerd, the runtime of Cloudflare Workers, without `nodejs_compat`. It is 165 MB large, so it is not a
 * dependency: this test installs it into an empty directory. `FULL=1 npm test -- test/interop/workers.test.ts`
 */
const root = fileURLToPath(new URL('../..', import.meta.url))
/** Compatibility dates. Before 2024-10-14, code that awaits a promise resolved by another request never continues. */
const DATES = ['2024-01-01', '2025-06-01']

type Worker = { url: string; close: () => Promise<void> }
let start: (script: string, compatibilityDate: string, bindings: Record<string, string>) => Promise<Worker>

async function bundled(contents: string): Promise<string> {
  const alias = {
    '@boltyard/sdk/hono': join(root, 'sdk/src/paywall/adapters/hono.ts'),
    '@boltyard/sdk/paywall': join(root, 'sdk/src/paywall/index.ts'),
    '@boltyard/sdk': join(root, 'sdk/src/index.ts'),
  }
  const input = { contents, resolveDir: root, loader: 'ts' } as const
  const { outputFiles } = await build({ stdin: input, alias, bundle: true, format: 'esm', platform: 'browser', write: false })
  return outputFiles[0]?.text ?? ''
}

describe.skipIf(!process.env.FULL)('Cloudflare Workers', () => {
  let market: Market

  beforeAll(async () => {
    const directory = temporaryDirectory()
    writeFileSync(join(directory, 'package.json'), JSON.stringify({ private: true }))
    execFileSync('npm', ['install', '--no-audit', '--no-fund', 'miniflare@4'], { cwd: directory, stdio: 'pipe' })
    const { Miniflare } = await import(pathToFileURL(join(directory, 'node_modules/miniflare/dist/src/index.js')).href)
    start = async (script, compatibilityDate, bindings) => {
      const miniflare = new Miniflare({ modules: true, script, compatibilityDate, bindings })
      return { url: String(await miniflare.ready), close: () => miniflare.dispose() }
    }
    market = await Market.open()
  }, 1_200_000)

  const bindings = () => ({
    SERVICE_API_KEY: market.owner.key.key,
    SERVICE_BASE_URL: `${market.server.url}/v1`,
    NODE_ID: market.node.node.id,
  })

  test.each(DATES)('D13: one client for all requests: twelve at once are all answered (%s)', async (date) => {
    const program = `
      import { Boltyard } from '@boltyard/sdk'
      let boltyard
      export default {
        async fetch(request, { SERVICE_API_KEY: apiKey, SERVICE_BASE_URL: baseUrl }) {
          boltyard ??= new Boltyard({ apiKey, baseUrl })
          const { payments } = await boltyard.payments.list()
          return Response.json(Array.isArray(payments))
        },
      }`
    const worker = await start(await bundled(program), date, bindings())
    try {
      const answers = await Promise.all(Array.from({ length: 12 }, async () => (await fetch(worker.url)).text()))
      expect(answers).toEqual(Array(12).fill('true'))
    } finally {
      await worker.close()
    }
  })

  test.each(DATES)('D13: hono-worker.ts sells, also to twelve at once (%s)', async (date) => {
    const worker = await start(await bundled(`export { default } from './examples/hono-worker.ts'`), date, bindings())
    try {
      const url = `${worker.url}lorem?words=2`
      const answers = await Promise.all(Array.from({ length: 12 }, () => fetch(url)))
      expect(answers.map(({ status }) => status)).toEqual(Array(12).fill(402))
      const credential = await market.credentialFor(challengesIn(answers[0] as Response)[0] ?? '')
      const paid = await present(url, credential)
      expect([paid.status, await paid.text()]).toEqual([200, 'lorem lorem'])
      expect((await present(url, credential)).status).not.toBe(200)
    } finally {
      await worker.close()
    }
  })

  test.each(DATES)('D13: the Worker in docs/paywall.md sells, and says `client` without its key (%s)', async (date) => {
    const [, program = ''] = /\n(\/\/ worker\.ts\n[\s\S]*?)```/.exec(readFileSync(join(root, 'docs/paywall.md'), 'utf8')) ?? []
    const script = await bundled(program)
    const worker = await start(script, date, bindings())
    try {
      const unpaid = await fetch(worker.url)
      expect(unpaid.status).toBe(402)
      const paid = await present(worker.url, await market.credentialFor(challengesIn(unpaid)[0] ?? ''))
      expect([paid.status, await paid.json()]).toEqual([200, { joke: '…' }])
    } finally {
      await worker.close()
    }
    const { SERVICE_API_KEY: _, ...others } = bindings()
    const keyless = await start(script, date, others)
    try {
      const answer = await fetch(keyless.url)
      expect([answer.status, await answer.text()]).toEqual([500, expect.stringContaining('`client: new Boltyard(')])
    } finally {
      await keyless.close()
    }
  })

  test.each(DATES)('D13: a worker sells by all protocols; x402 binds the body, which the handler gets (%s)', async (date) => {
    const program = `
      import { Hono } from 'hono'
      import { Boltyard } from '@boltyard/sdk'
      import { paywall } from '@boltyard/sdk/hono'
      const app = new Hono()
      let charge
      app.post('/echo', (c, next) => {
        const { SERVICE_API_KEY: apiKey, SERVICE_BASE_URL: baseUrl, NODE_ID: nodeId } = c.env
        charge ??= paywall({ client: new Boltyard({ apiKey, baseUrl }), nodeId, amountSat: 10, protocols: ['mpp', 'l402', 'x402'] })
        return charge(c, next)
      }, async (c) => c.text(await c.req.text()))
      export default app`
    const worker = await start(await bundled(program), date, bindings())
    try {
      const [url, init] = [`${worker.url}echo`, { method: 'POST', body: 'two words' }]
      const unpaid = await fetch(url, init)
      expect([unpaid.status, challengesIn(unpaid).length]).toEqual([402, 2])
      const credential = await payX402(market, unpaid.headers.get('payment-required') ?? '')
      expect((await presentX402(url, credential, { ...init, body: 'two  words' })).status).toBe(409)
      const paid = await presentX402(url, credential, init)
      expect([paid.status, await paid.text(), settlementIn(paid).success]).toEqual([200, 'two words', true])
      expect((await presentX402(url, credential, init)).status).toBe(402)
      for (const challenge of challengesIn(unpaid)) {
        const authorization = await market.credentialFor(challenge)
        const answer = await fetch(url, { ...init, headers: { authorization } })
        expect([answer.status, await answer.text()]).toEqual([200, 'two words'])
      }
    } finally {
      await worker.close()
    }
  })
})
