import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { getRequestListener } from '@hono/node-server'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Ended, run } from '../cli/test/harness.ts'
import { Market } from '../sdk/test/paywall-harness.ts'
import { SHOPS } from '../sdk/test/paywall-shops.ts'
import { eventually, freePort, temporaryDirectory } from '../server/test/support/server.ts'

/** Everything that we publish for sellers passes the check that we give to everyone. */

const ROOT = fileURLToPath(new URL('../', import.meta.url))
const running: ChildProcess[] = []
const servers: Server[] = []
let market: Market

beforeAll(async () => {
  market = await Market.open()
  vi.stubEnv('SERVICE_API_KEY', market.owner.key.key)
  vi.stubEnv('SERVICE_BASE_URL', `${market.server.url}/v1`)
  vi.stubEnv('NODE_ID', market.node.node.id)
})
afterAll(() => {
  for (const child of running) child.kill()
  for (const server of servers) server.close()
  vi.unstubAllEnvs()
})

const check = (url: string, ...more: string[]): Promise<Ended> =>
  run(['check', url, '--pay-sandbox', ...more], {
    env: { SERVICE_BASE_URL: `${market.server.url}/v1`, OPERATOR_TOKEN: market.server.operatorToken },
  })

/** Checks the shop, buys from it, and expects no findings. */
async function expectSound(url: string, protocols: string[]): Promise<void> {
  const { code, stdout, stderr } = await check(url)
  const report = JSON.parse(stdout || stderr)
  expect({ findings: report.findings, skipped: report.skipped }).toEqual({ findings: [], skipped: [] })
  expect([code, stderr]).toEqual([0, ''])
  expect(report.operations.map(({ status }: { status: number }) => status)).toEqual([402])
  expect(report.purchases.map(({ protocol }: { protocol: string }) => protocol)).toEqual(protocols)
  for (const { protocol, deliveries } of report.purchases) if (protocol === 'mpp') expect(deliveries).toBe(1)
}

async function served(fetch: (request: Request) => Response | Promise<Response>): Promise<string> {
  const server = createServer({ keepAliveTimeout: 0 }, getRequestListener(fetch)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  servers.push(server)
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test.each(SHOPS)('the paywall in %s has no findings, with every protocol', async (_name, open) => {
  const shop = await open({ ...market.terms, protocol: 'both' })
  await expectSound(shop.url('/jokes/1'), ['l402', 'mpp'])
})

test('examples/express-joke.ts has no findings', async () => {
  const tsx = createRequire(import.meta.url).resolve('tsx')
  const child = spawn(process.execPath, ['--import', tsx, join(ROOT, 'examples/express-joke.ts')], {
    env: { ...process.env, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  running.push(child)
  const [line] = await once(child.stdout, 'data')
  await expectSound(String(line).trim(), ['l402', 'mpp'])
})

test('examples/hono-worker.ts has no findings', async () => {
  const { default: app } = await import('../examples/hono-worker.ts')
  await expectSound(`${await served((request) => app.fetch(request))}/lorem?words=2`, ['mpp'])
})

test('examples/next-joke has no findings', async () => {
  const { GET } = await import('../examples/next-joke/app/api/joke/route.ts')
  const shop = await served((request) =>
    new URL(request.url).pathname === '/api/joke' ? GET(request) : new Response('', { status: 404 }),
  )
  await expectSound(`${shop}/api/joke`, ['l402'])
})

test('the shop of docs/gateway.md has no findings', async () => {
  const [, program = ''] = /```js\n([\s\S]*?)```/.exec(readFileSync(join(ROOT, 'docs/gateway.md'), 'utf8')) ?? []
  const file = join(temporaryDirectory(), 'shop.mjs')
  writeFileSync(file, program)
  const port = String(await freePort())
  running.push(spawn(process.execPath, [file], { env: { ...process.env, PORT: port }, stdio: 'inherit' }))
  const url = `http://127.0.0.1:${port}`
  await eventually(async () => (await fetch(url).catch(() => undefined))?.status === 404, 'the shop to open')
  for (const path of ['/cheap', '/dear']) await expectSound(url + path, ['mpp'])
})
