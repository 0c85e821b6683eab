import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import express from 'express'
import { validate } from 'mppx/validation'
import { beforeAll, expect, test } from 'vitest'
import { type Ended, run } from '../cli/test/harness.ts'
import { discovery, paywall } from '../sdk/src/paywall/adapters/express.ts'
import { createProxy, type ProxyConfig } from '../sdk/src/proxy/index.ts'
import type { Protocol } from '../sdk/src/types.ts'
import { Market } from '../sdk/test/paywall-harness.ts'
import { FOUND_SHOPS } from '../sdk/test/shops/discovery.ts'
import { newShop, opened, type ShopOptions } from '../sdk/test/shops/shop.ts'
import { temporaryDirectory } from '../server/test/support/server.ts'
import { lint } from './openapi-lint.ts'

/** `boltyard check` reads, without the SDK's code, what the SDK's discovery publishes. */

let market: Market
beforeAll(async () => {
  market = await Market.open()
})

const check = (url: string): Promise<Ended> => run(['check', url])

async function expectSound(url: string): Promise<any> {
  const { code, json, stderr } = await check(url)
  const report = json()
  expect({ findings: report.findings, skipped: report.skipped, stderr }).toEqual({ findings: [], skipped: [], stderr: '' })
  expect(code).toBe(0)
  return report
}

type Prices = Record<string, ShopOptions>

/** Sells what is in `sold`, and advertises `advertised`. */
async function openShop(sold: Prices, advertised: Prices, openapi?: object): Promise<(path: string) => string> {
  const app = express()
  app.use(discovery({ title: 'Jokes', routes: advertised, openapi }))
  for (const [key, options] of Object.entries(sold)) {
    const [method = '', path = ''] = key.split(' ')
    app.route(path)[method.toLowerCase() as 'get'](paywall(options), (_request, response) => void response.end())
  }
  return (await opened(app.listen(0, '127.0.0.1'), newShop())).url
}

/** A proxy in front of a program that also returns the price of `/quote`. */
async function openSellingProxy(more: Partial<ProxyConfig>): Promise<(path: string) => string> {
  const program = createServer((_request, response) => void response.end('{"amountSat":7}')).listen(0, '127.0.0.1')
  const { url: upstream } = await opened(program, newShop())
  const { client, nodeId } = market.terms
  const proxy = createProxy(
    {
      listen: '127.0.0.1:0',
      upstream: new URL(upstream('/')).origin,
      node: nodeId,
      discovery: { title: 'Jokes' },
      limits: { openChallengesPerAddress: 0 },
      routes: [
        { match: 'GET /free', free: true },
        { match: 'GET /joke', amountSat: 25, description: 'A joke' },
        { match: 'GET /quote', priceFrom: upstream('/price') },
        { match: '/**', deny: 404 },
      ],
      ...more,
    },
    { client },
  )
  const { port } = await proxy.listen()
  program.once('close', () => void proxy.close({ graceMs: 0 }))
  return (path) => `http://127.0.0.1:${port}${path}`
}

const COMBINATIONS: [name: string, protocols: Protocol[]][] = [
  ['MPP', ['mpp']],
  ['L402', ['l402']],
  ['x402', ['x402']],
  ['MPP and L402', ['mpp', 'l402']],
  ['MPP and x402', ['mpp', 'x402']],
  ['L402 and x402', ['l402', 'x402']],
  ['all three', ['mpp', 'l402', 'x402']],
]

test.each(COMBINATIONS)('C77: with discovery, a shop that sells by %s has no findings', async (_name, protocols) => {
  const sold = {
    'GET /joke': { ...market.terms, protocols, description: 'A joke' },
    'GET /words': { ...market.terms, protocols, amountSat: () => 7 },
    'GET /free': { ...market.terms, protocols, free: true },
  }
  const report = await expectSound((await openShop(sold, sold))('/joke'))
  const isL402 = protocols.includes('l402')
  expect(report.discovery.map(({ status }: { status: string }) => status)).toEqual([
    'found',
    isL402 ? 'found' : 'absent',
    'found',
  ])
  const operations = report.operations.map(({ operation, status }: Record<string, unknown>) => `${operation} ${status}`)
  expect(operations.sort()).toEqual(['GET /free 200', 'GET /joke 402', 'GET /words 402'])
})

test.each(COMBINATIONS)('C77: with discovery, a proxy that sells by %s has no findings', async (_name, protocols) => {
  const report = await expectSound((await openSellingProxy({ protocols }))('/'))
  const l402 = protocols.includes('l402') ? 'found' : 'absent'
  expect(report.discovery.map(({ status }: { status: string }) => status)).toEqual(['found', l402, 'found'])
  const operations = report.operations.map(({ operation, status }: Record<string, unknown>) => `${operation} ${status}`)
  expect(operations.sort()).toEqual(['GET /free 200', 'GET /joke 402', 'GET /quote 402'])
})

test('C78: parameters, methods and the seller’s own document have no findings with a proxy', async () => {
  const paths = { '/wild/{any}': { get: {} }, '/joke': { get: { summary: 'A joke' } }, '/free': { get: {} } }
  const openapi = { openapi: '3.1.0', info: { title: 'Mine', version: '1' }, paths }
  const routes: ProxyConfig['routes'] = [
    { match: 'GET /free', free: true },
    { match: 'GET|POST /joke', amountSat: 25 },
    { match: 'GET /articles/secret', deny: 404 },
    { match: 'GET /articles/:id', amountSat: 5 },
    { match: 'GET /wild/**', amountSat: 4 },
    { match: '/wild/:any', amountSat: 3 },
  ]
  const url = await openSellingProxy({ protocols: ['mpp', 'l402', 'x402'], openapi, routes })
  const { operations } = await expectSound(url('/'))
  const found = operations.map(({ operation, status }: Record<string, unknown>) => `${operation} ${status}`)
  expect(found.sort()).toEqual([
    'GET /articles/{id} 402',
    'GET /free 200',
    'GET /joke 402',
    'GET /wild/{any} 402',
    'POST /joke 402',
  ])
})

test('C77: parameters, and methods other than GET, have no findings', async () => {
  const sold = {
    'GET /articles/:id': { ...market.terms, protocol: 'both' as const },
    'POST /articles': { ...market.terms, protocol: 'both' as const },
    'DELETE /articles/:id': { ...market.terms, protocol: 'both' as const },
  }
  const { operations } = await expectSound((await openShop(sold, sold))('/'))
  expect(operations).toHaveLength(3)
})

test.each(FOUND_SHOPS)('C77: with discovery in %s, the shop has no findings', async (_name, open) => {
  const url = await open({ ...market.terms, protocol: 'both' }, { title: 'Jokes' })
  await expectSound(url('/'))
})

test('C77: a shop that does not do what it advertises has findings', async () => {
  const terms = { ...market.terms, protocol: 'both' as const }
  const advertised = { ...terms, amountSat: 9 }
  const url = await openShop(
    { 'GET /price': terms, 'GET /mpp': { ...terms, protocol: 'mpp' }, 'GET /free': { ...terms, free: true } },
    { 'GET /price': advertised, 'GET /mpp': terms, 'GET /free': terms },
    { openapi: '3.1.0', info: { title: 'Jokes', version: '1' }, paths: { '/free': { get: {} } } },
  )
  const { code, json } = await check(url('/price'))
  const found = json().findings.map(({ id, operation }: Record<string, unknown>) => `${operation} ${id}`)
  expect([...new Set(found)].sort()).toEqual([
    'GET /free not-charged',
    'GET /mpp discovery-offer-missing',
    'GET /price discovery-price',
  ])
  expect(code).toBe(9)
})

test('C77: an operation that is charged by MPP needs x-payment-info, even if its 402 is declared', async () => {
  const openapi = {
    openapi: '3.1.0',
    info: { title: 'Jokes', version: '1' },
    paths: { '/joke': { get: { responses: { 402: {} } } } },
  }
  const url = await openShop({ 'GET /joke': market.terms }, {}, openapi)
  expect((await check(url('/'))).json().findings).toMatchObject([{ id: 'unadvertised-charge' }])
})

test('C77: mppx finds the documents and the challenges that they promise', async () => {
  const sold = { 'GET /joke': { ...market.terms, description: 'A joke' }, 'GET /words': { ...market.terms, amountSat: () => 7 } }
  const url = await openShop(sold, sold)
  expect(await foundByMppx(url('/'))).toEqual(['/joke', '/words'])
})

test('C77: mppx finds the documents of a proxy and the challenges that they promise', async () => {
  const url = await openSellingProxy({
    routes: [
      { match: 'GET /joke', amountSat: 25 },
      { match: 'GET /articles/:id', amountSat: 5 },
    ],
  })
  expect(await foundByMppx(url('/'))).toEqual(['/joke', '/articles/{id}'])
})

/** The paths of the endpoints that mppx finds. None may have a fault. */
async function foundByMppx(url: string): Promise<string[]> {
  const { discovery: found, endpoints } = await validate({ url, skipPayment: true })
  const checks = [...found.checks, ...endpoints.flatMap(({ challenge, errorHandling }) => [...challenge, ...errorHandling])]
  // The realm is the gateway's, on another port.
  expect([...new Set(checks.filter(({ severity }) => severity !== 'pass').map(({ label }) => label))]).toEqual([
    'Realm matches server hostname',
  ])
  expect(checks.filter(({ severity }) => severity === 'pass').length).toBeGreaterThan(15)
  return endpoints.map(({ path }) => path)
}

test('C77: redocly’s recommended rules have no error for openapi.json, and one warning, about the missing license', async () => {
  const sold = {
    'GET /articles/:id': market.terms,
    'POST /articles': { ...market.terms, description: 'A new article' },
    'GET /words': { ...market.terms, amountSat: () => 7, protocol: 'l402' as const },
  }
  const url = await openShop(sold, sold)
  const file = join(temporaryDirectory(), 'openapi.json')
  writeFileSync(file, await (await fetch(url('/openapi.json'))).text())
  expect(lint(file).map(({ ruleId, severity }) => `${severity} ${ruleId}`)).toEqual(['warn info-license'])
})
