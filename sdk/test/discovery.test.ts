import { once } from 'node:events'
import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import express from 'express'
import { beforeAll, beforeEach, expect, test } from 'vitest'
import { discovery, paywall } from '../src/paywall/adapters/express.ts'
import { Market, present } from './paywall-harness.ts'
import { FOUND_SHOPS } from './shops/discovery.ts'
import { newShop, opened } from './shops/shop.ts'

/** Discovery as it is mounted in every framework, in front of a real paywall. */

let market: Market
beforeAll(async () => {
  market = await Market.open()
})
beforeEach(() => market.renew())

const DOCUMENTS = [
  ['/openapi.json', 'application/json'],
  ['/.well-known/l402.json', 'application/json'],
  ['/llms.txt', 'text/plain; charset=utf-8'],
] as const

async function withHost(url: string, host: string): Promise<string> {
  const sent = request(url, { headers: { host, 'x-forwarded-host': host } }).end()
  const [answer] = await once(sent, 'response')
  return text(answer)
}

test.each(FOUND_SHOPS)('C77: in %s, the documents are free, for everyone, for five minutes', async (_name, open) => {
  const url = await open({ ...market.terms, protocol: 'both' }, { title: 'Jokes' })
  for (const [path, type] of DOCUMENTS) {
    const answer = await fetch(`${url(path)}?now`)
    const body = await answer.text()
    expect([answer.status, answer.headers.get('content-type')?.replace(/(application\/json).*/, '$1')]).toEqual([200, type])
    expect(answer.headers.get('access-control-allow-origin')).toBe('*')
    expect(answer.headers.get('cache-control')).toBe('max-age=300')
    expect(body).toContain(path === '/openapi.json' ? '"amount":"10"' : path === '/llms.txt' ? '10 sat' : '"price_msat":10000')
    const head = await fetch(url(path), { method: 'HEAD' })
    expect([head.status, head.headers.get('cache-control'), await head.text()]).toEqual([200, 'max-age=300', ''])
    const preflight = await fetch(url(path), { method: 'OPTIONS' })
    expect([preflight.status, preflight.headers.get('access-control-allow-origin')]).toEqual([204, '*'])
    expect((await fetch(url(path), { method: 'POST' })).status).toBe(404)
    // A document contains nothing from the request.
    expect(await withHost(url(path), 'evil.example')).toBe(body)
  }
  // The paywall has seen none of these requests.
  expect(market.events).toEqual([])
})

test.each(FOUND_SHOPS)('C78: in %s, a 402 links to the documents, and the joke is still sold', async (_name, open) => {
  const url = await open({ ...market.terms, protocol: 'both' }, { title: 'Jokes' })
  const answer = await fetch(url('/joke'))
  expect([answer.status, answer.headers.get('link')]).toEqual([
    402,
    '</openapi.json>; rel="service-desc"; type="application/json", ' +
      '</.well-known/l402.json>; rel="service-meta"; type="application/json", ' +
      '</llms.txt>; rel="service-doc"; type="text/plain"',
  ])
  const paid = await present(url('/joke'), await market.buy(url('/joke')))
  expect([paid.status, paid.headers.get('link')]).toEqual([200, null])
})

test('C78: links have the path of publicUrl, and name only documents that are served', async () => {
  const [, open] = FOUND_SHOPS[0] ?? []
  const url = await open?.(market.terms, { title: 'Jokes', publicUrl: 'https://jokes.example/api', docs: { llms: '/about.txt' } })
  const answer = await fetch(url?.('/joke') ?? '')
  expect(answer.headers.get('link')).toBe('</api/openapi.json>; rel="service-desc"; type="application/json"')
  const missing = await Promise.all(['/.well-known/l402.json', '/llms.txt'].map((path) => fetch(url?.(path) ?? '')))
  expect(missing.map(({ status }) => status)).toEqual([404, 404])
})

test('C78: a paywall that is not advertised does not link to the documents of another', async () => {
  const app = express()
  const [listed, unlisted] = [{ ...market.terms }, { ...market.terms }]
  app.use(discovery({ title: 'Jokes', routes: { 'GET /listed': listed } }))
  for (const [path, options] of Object.entries({ '/listed': listed, '/unlisted': unlisted }))
    app.get(path, paywall(options), (_request, response) => void response.end())
  const { url } = await opened(app.listen(0, '127.0.0.1'), newShop())
  const links = await Promise.all(['/listed', '/unlisted'].map(async (path) => (await fetch(url(path))).headers.has('link')))
  expect(links).toEqual([true, false])
})

test('C78: discovery below a mount path serves nothing, because its paths would be wrong there', async () => {
  const app = express()
  app.use('/api', discovery({ title: 'Jokes', routes: {} }))
  const { url } = await opened(app.listen(0, '127.0.0.1'), newShop())
  expect((await fetch(url('/api/openapi.json'))).status).toBe(404)
})
