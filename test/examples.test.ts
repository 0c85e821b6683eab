import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { getRequestListener } from '@hono/node-server'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { challengesIn, Market, present } from '../sdk/test/paywall-harness.ts'
import { type Created, fund } from '../server/test/support/nodes.ts'

/** The programs in examples/, run unchanged. */

const example = (name: string): string => fileURLToPath(new URL(`../examples/${name}`, import.meta.url))
const tsx = createRequire(import.meta.url).resolve('tsx')
const running: ChildProcess[] = []
const servers: Server[] = []
let market: Market
let agentsNode: Created

beforeAll(async () => {
  market = await Market.open()
  agentsNode = market.otherNode
  await fund(market.server, agentsNode, 10_000)
  vi.stubEnv('SERVICE_API_KEY', market.owner.key.key)
  vi.stubEnv('SERVICE_BASE_URL', `${market.server.url}/v1`)
  vi.stubEnv('NODE_ID', market.node.node.id)
})
afterAll(() => {
  for (const child of running) child.kill()
  for (const server of servers) server.close()
  vi.unstubAllEnvs()
})

function run(name: string, args: string[], env: Record<string, string>): { child: ChildProcess; printed: Promise<string> } {
  const child = spawn(process.execPath, ['--import', tsx, example(name), ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  running.push(child)
  return { child, printed: once(child.stdout, 'data').then(([chunk]) => String(chunk).trim()) }
}

async function served(fetch: (request: Request) => Response | Promise<Response>): Promise<string> {
  const server = createServer({ keepAliveTimeout: 0 }, getRequestListener(fetch)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  servers.push(server)
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('agent.ts buys the joke of express-joke.ts with its own node and pays once', async () => {
  const shop = await run('express-joke.ts', [], { PORT: '0' }).printed
  const { node, credentials } = agentsNode
  const agent = run('agent.ts', [shop], { NODE_URL: node.endpointUrl, NODE_PASSWORD: credentials.password })
  expect(JSON.parse(await agent.printed)).toEqual({ joke: expect.stringContaining('six blocks') })
  expect(await once(agent.child, 'exit')).toEqual([0, null])
  const { payments } = await market.client.payments.list({ nodeId: market.node.node.id })
  expect(payments.filter(({ status }) => status === 'paid')).toMatchObject([{ amountSat: 10, description: 'A joke' }])
})

test('hono-worker.ts sells words, and a payment for two words buys only two', async () => {
  const { default: app } = await import('../examples/hono-worker.ts')
  const url = await served((request) => app.fetch(request))
  const credential = await market.buy(`${url}/lorem?words=2`)
  expect((await present(`${url}/lorem?words=20`, credential)).status).toBe(402)
  const answer = await present(`${url}/lorem?words=2`, credential)
  expect([answer.status, await answer.text()]).toEqual([200, 'lorem lorem'])
})

test('next-joke sells a day: its credential can be reused', async () => {
  const { GET } = await import('../examples/next-joke/app/api/joke/route.ts')
  const url = `${await served(GET)}/api/joke`
  const challenges = challengesIn(await fetch(url))
  expect(challenges).toEqual([expect.stringMatching(/^L402 /)])
  const credential = await market.credentialFor(challenges[0] ?? '')
  for (let time = 0; time < 3; time++) {
    const answer = await present(url, credential)
    expect([answer.status, await answer.json()]).toEqual([200, { joke: expect.any(String) }])
  }
})
