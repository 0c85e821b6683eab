import { beforeAll, beforeEach, expect, test, vi } from 'vitest'
import type { ProxyConfig } from '../../src/proxy/index.ts'
import { Market } from '../paywall-harness.ts'
import { Backend, type OpenProxy, openProxy } from './harness.ts'

/** What a proxy publishes. The upstream has its own documents at the same paths. */

const DOCUMENTS = ['/openapi.json', '/.well-known/l402.json', '/llms.txt']
const ROUTES = [
  { match: 'GET /joke', amountSat: 25 },
  { match: '/**', free: true as const },
]

let market: Market
let backend: Backend
beforeAll(async () => {
  market = await Market.open()
  backend = await Backend.open()
})
beforeEach(() => {
  backend.seen.length = 0
})

const open = (more: Partial<ProxyConfig> = {}): Promise<OpenProxy> => {
  const { client, nodeId } = market.terms
  const discovery = { title: 'Jokes' }
  return openProxy(
    { upstream: backend.url, node: nodeId, protocols: ['mpp', 'l402'], routes: ROUTES, discovery, ...more },
    { client },
  )
}

test.each(DOCUMENTS)('C77: %s is served before all routes, free and to everyone', async (path) => {
  const { url } = await open()
  const answer = await fetch(url(`${path}?x=1`))
  expect([answer.status, answer.headers.get('access-control-allow-origin'), answer.headers.get('cache-control')]).toEqual([
    200,
    '*',
    'max-age=300',
  ])
  expect(await answer.text()).toContain('/joke')
  const head = await fetch(url(path), { method: 'HEAD' })
  expect([head.status, await head.text()]).toEqual([200, ''])
  expect((await fetch(url(path), { method: 'OPTIONS' })).status).toBe(204)
  expect(backend.seen).toEqual([])
  expect((await fetch(url(path), { method: 'POST', body: 'x' })).status).toBe(200)
  expect(backend.seen.map(({ method, url: seen }) => `${method} ${seen}`)).toEqual([`POST ${path}`])
})

test('C77: without `discovery`, the routes decide about these paths', async () => {
  const { url } = await open({ discovery: undefined })
  for (const path of DOCUMENTS) expect(await (await fetch(url(path))).text()).toBe(`GET ${path} `)
  const closed = await open({ discovery: undefined, routes: ROUTES.slice(0, 1) })
  for (const path of DOCUMENTS) expect((await fetch(closed.url(path))).status).toBe(404)
})

test('C78: the 402s of a proxy link to its documents, and those of one without `discovery` do not', async () => {
  const { url } = await open()
  const unpaid = await fetch(url('/joke'))
  expect([unpaid.status, unpaid.headers.get('link')?.match(/<[^>]*>/g)]).toEqual([402, DOCUMENTS.map((path) => `<${path}>`)])
  const silent = await open({ discovery: undefined })
  expect((await fetch(silent.url('/joke'))).headers.get('link')).toBeNull()
})

test('selling 10: a proxy’s seller is told to set trustProxy', async () => {
  const lines: string[] = []
  vi.spyOn(console, 'error').mockImplementation((line) => void lines.push(String(line)))
  const { url } = await open({ limits: { openChallengesPerAddress: 1 } })
  const statuses = [await fetch(url('/joke')), await fetch(url('/joke'))].map(({ status }) => status)
  vi.restoreAllMocks()
  expect(statuses).toContain(429)
  expect(lines).toEqual([expect.stringMatching(/unpaid visits from 127\.0\.0\.1\. If this is your proxy, set `trustProxy`\.$/)])
})
