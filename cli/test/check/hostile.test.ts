import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, describe, expect, test } from 'vitest'
import { NOWHERE } from '../../../server/test/support/payments.ts'
import { sanitize } from '../../src/terminal.ts'
import { home, inTerminal, onTerminal, run } from '../harness.ts'
import { Shop, withOrder } from './shop.ts'

/** Servers that are not sellers, and hostile sellers. */

async function serving(listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  afterAll(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const sells = (method: string) => ({ [method]: { 'x-payment-info': { offers: [{ method: 'lightning', amount: '25' }] } } })

describe('there is nothing to check', () => {
  test('nothing listens: exit 3', async () => {
    const ended = await run(['check', NOWHERE])
    expect([ended.code, ended.stdout, ended.error().code]).toEqual([3, '', 'connection_failed'])
  })

  test.each([
    [200, 2],
    [404, 5],
    [500, 3],
    [429, 6],
    [401, 1],
  ])('HTTP %i for everything: exit %i', async (status, code) => {
    const url = await serving(
      (_request, response) => void response.writeHead(status, { 'content-type': 'text/html' }).end('hello'),
    )
    const ended = await run(['check', url])
    // A failing server also fails to serve its discovery, which is a finding.
    expect([ended.code, ended.stdout !== '']).toEqual(status === 500 ? [9, true] : [code, false])
  })

  test.each(['ftp://example.com', 'example.com', 'http://me:secret@example.com/'])('%s is a usage error', async (url) => {
    const ended = await run(['check', url])
    expect([ended.code, ended.stderr.includes('secret')]).toEqual([2, false])
  })

  test('a redirect to another server is named and not followed', async () => {
    const shop = await Shop.open()
    const url = await serving((_request, response) => void response.writeHead(302, { location: `${shop.origin}/report` }).end())
    const ended = await run(['check', url])
    expect([ended.code, ended.error().next, shop.visits]).toEqual([2, `boltyard check ${shop.origin}/report`, []])
  })

  test('redirects in a circle end: exit 1', async () => {
    const url = await serving((_request, response) => void response.writeHead(302, { location: '/again' }).end())
    expect((await run(['check', url])).error().code).toBe('bad_redirection')
  })
})

describe('a hostile seller', () => {
  test('sends an endless body: the check reads only its beginning', async () => {
    const chunk = Buffer.alloc(1_048_576, 32)
    const url = await serving((request, response) => {
      if (request.url !== '/openapi.json') return void response.writeHead(404).end()
      response.writeHead(200, { 'content-type': 'application/json' })
      const more = (): void => {
        if (!response.destroyed) response.write(chunk, more)
      }
      more()
    })
    const ended = await run(['check', url])
    expect([ended.code, ended.json().findings]).toEqual([
      9,
      [expect.objectContaining({ id: 'discovery-malformed', seen: 'larger than 2 MB, or incomplete' })],
    ])
  })

  test('never finishes a response, or breaks it off: the check gives up after 10 s, and stops after three', async () => {
    const paths = Object.fromEntries(Array.from({ length: 10 }, (_, at) => [`/${at}`, sells('get')]))
    const url = await serving((request, response) => {
      if (request.url === '/openapi.json') response.end(JSON.stringify({ paths }))
      else if (/^\/\d$/.test(request.url ?? '')) {
        response.writeHead(402, { 'content-length': '1000' }).write('wait')
        // After these four bytes, the first path sends nothing more, and the others close the connection.
        if (request.url !== '/0') setTimeout(() => request.socket.destroy(), 100)
      } else response.writeHead(404).end()
    })
    const { findings, skipped } = (await run(['check', url])).json()
    const unanswered = findings.filter(({ id }: { id: string }) => id === 'no-answer')
    expect(unanswered.map(({ operation }: { operation: string }) => operation)).toEqual(['GET /0', 'GET /1', 'GET /2'])
    expect(skipped).toHaveLength(7)
  })

  test('also has a free stream without an end: that is not a fault', async () => {
    const shop = await Shop.open({
      openapi: (one) => ({ ...one, paths: { ...one.paths, '/stream': { get: {} } } }),
      serve: ({ url }) => (url === '/stream' ? { status: 200, body: 'data: 1\n\n', isEndless: true } : undefined),
    })
    const ended = await run(['check', `${shop.origin}/report`])
    expect([ended.code, ended.json().operations.length, shop.visits.filter(({ url }) => url === '/stream').length]).toEqual([
      0, 2, 1,
    ])
  })

  test('advertises ten thousand operations: fifty are called, and the report says so', async () => {
    const paths = Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`/op/${at}`, sells('get')]))
    const called = new Set<string>()
    const url = await serving((request, response) => {
      if (request.url === '/openapi.json') return void response.end(JSON.stringify({ paths }))
      if (request.url?.startsWith('/op/')) called.add(request.url)
      response.writeHead(404).end()
    })
    const { skipped, findings } = (await run(['check', url])).json()
    expect([called.size, findings.length]).toEqual([50, 500])
    expect(skipped).toContainEqual({ operation: '9950 operations', reason: 'Only the first 50 are checked.' })
  })

  test('redirects a request with a credential elsewhere: nothing is sent there', async () => {
    const elsewhere = await Shop.open()
    const shop = await Shop.open({
      serve: ({ headers }) =>
        headers.authorization || headers['payment-signature']
          ? { status: 307, headers: { location: `${elsewhere.origin}/report` } }
          : undefined,
    })
    const ended = await run(['check', `${shop.origin}/report`])
    expect([ended.code, elsewhere.visits]).toEqual([9, []])
  })

  test('advertises operations of another server: they are not called', async () => {
    const elsewhere = await Shop.open()
    const shop = await Shop.open({ openapi: (one) => ({ ...one, servers: [{ url: elsewhere.origin }] }) })
    const { skipped } = (await run(['check', `${shop.origin}/report`])).json()
    expect(elsewhere.visits).toEqual([])
    expect(skipped).toContainEqual({ operation: '/openapi.json', reason: expect.stringContaining(elsewhere.origin) })
  })

  test('only reads, unless something is advertised as paid; what was not called is named', async () => {
    const shop = await Shop.open({
      openapi: (one) => ({
        ...one,
        paths: { ...withOrder(one).paths, '/all': { delete: {}, get: {} }, '/users/{id}': { get: {}, put: sells('x').x } },
      }),
    })
    const { skipped } = (await run(['check', `${shop.origin}/report`])).json()
    expect(new Set(shop.visits.filter(({ url }) => url === '/all').map(({ method }) => method))).toEqual(new Set(['GET']))
    expect(
      new Set(shop.visits.filter(({ method }) => !['GET', 'HEAD', 'OPTIONS'].includes(method)).map(({ url }) => url)),
    ).toEqual(new Set(['/order', '/users/1']))
    expect(skipped.map(({ operation }: { operation: string }) => operation).sort()).toEqual([
      'DELETE /all',
      'GET /users/{id}',
      'PUT /users/{id}',
    ])
  })

  test('limits visits: the report says what is missing, and the exit code is 6, not 0', async () => {
    let left = 8
    const shop = await Shop.open({ serve: () => (left-- > 0 ? undefined : { status: 429 }) })
    const ended = await run(['check', `${shop.origin}/report`])
    expect(ended.code).toBe(6)
    expect(ended.json().skipped).toEqual([{ operation: 'GET /report', reason: expect.stringContaining('429') }])
    expect(ended.error()).toMatchObject({
      code: 'incomplete',
      message: 'The check is incomplete: the server returned HTTP 429.',
      next: 'Try again later.',
    })
  })

  test('limits visits already for its discovery: exit 6', async () => {
    const shop = await Shop.open({ serve: ({ url }) => (url === '/report' ? undefined : { status: 429 }) })
    const ended = await run(['check', `${shop.origin}/report`])
    expect([ended.code, ended.json().skipped.length]).toEqual([6, 4])
  })

  test('sends JSON that cannot be turned into text: it is a finding, not a crash', async () => {
    const deep = JSON.parse(`${'['.repeat(2_000)}${']'.repeat(2_000)}`)
    const odd = { toString: 1, valueOf: 1 }
    const shop = await Shop.open({
      request: (one) => ({ ...one, amount: deep, methodDetails: { ...one.methodDetails, paymentHash: odd, network: odd } }),
      x402: (one) => ({
        ...one,
        resource: { url: odd },
        accepts: one.accepts.map((entry: any) => ({ ...entry, amount: odd, payTo: deep })),
      }),
      openapi: (one) => ({
        ...one,
        paths: { '/report': { get: { 'x-payment-info': { offers: [{ method: 'lightning', amount: odd }] } } } },
      }),
      l402Json: () => ({ services: [{ resources: [{ path: odd, method: odd, pricing: { price_msat: odd } }] }] }),
    })
    const ended = await run(['check', `${shop.origin}/report`])
    expect([ended.code, ended.error().code]).toEqual([9, 'findings'])
    const ids = ended.json().findings.map(({ id }: { id: string }) => id)
    expect(ids).toEqual(expect.arrayContaining(['mpp-amount', 'mpp-payment-hash', 'mpp-network', 'x402-malformed']))
  })

  const EVIL = '\u001b]0;owned\u0007\u009b31m\u202e'

  test('writes escape sequences into its documents and challenges: they are replaced in the JSON', async () => {
    const shop = await Shop.open({
      openapi: (one) => ({ ...one, paths: { '/report': { get: {} }, [`/${EVIL}`]: sells('get') } }),
      request: (one) => ({ ...one, description: EVIL, currency: EVIL }),
    })
    const ended = await run(['check', `${shop.origin}/report`, '--json'])
    expect(ended.code).toBe(9)
    expect(sanitize(ended.stdout, '\n')).toBe(ended.stdout)
    for (const text of ended.json().findings.flatMap(Object.values)) expect(sanitize(text)).toBe(text)
  })

  onTerminal('escape sequences', () => {
    test('are not printed; findings are grouped by operation with what to do, and the count comes last', async () => {
      const shop = await Shop.open({
        request: (one) => ({ ...one, description: EVIL, amount: '1' }),
        headers: (one) => ({ ...one, 'cache-control': 'public' }),
      })
      const { code, plain, screen } = await inTerminal(['check', `${shop.origin}/report`], { cwd: home })
      expect(code).toBe(9)
      expect(screen).not.toContain('\u001b]0')
      expect(plain).toMatch(
        /✗ GET \/report {2}l402 25 sat, mpp 25 sat, x402 25 sat\n {2}error {4}mpp-amount: amount "1", but an invoice of 25 sat\n/,
      )
      expect(plain).toMatch(/expected Cache-Control: no-store on every 402\n/)
      expect(plain).toMatch(/boltyard: 2 errors and 1 warning found\.\n$/)
    })
  })
})

test('without --pay-sandbox no operator token is needed; with it, real money is never spent', async () => {
  const shop = await Shop.open()
  const missing = await run(['check', `${shop.origin}/report`, '--pay-sandbox'])
  expect([missing.code, missing.error().code, shop.visits]).toEqual([4, 'no_operator_token', []])
  const ended = await run(['check', `${shop.origin}/report`, '--pay-sandbox'], {
    env: { OPERATOR_TOKEN: 'x'.repeat(32), SERVICE_BASE_URL: `${NOWHERE}/v1` },
  })
  expect([ended.code, ended.json().purchases]).toEqual([0, []])
  const reasons = ended.json().skipped.map(({ reason }: { reason: string }) => reason)
  expect(reasons.filter((reason: string) => /is for mainnet, not for a sandbox/.test(reason))).toHaveLength(3)
})
