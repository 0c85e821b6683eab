import { validate } from 'mppx/discovery'
import { describe, expect, test } from 'vitest'
import { type ProxyConfig, ProxyConfigError, type ProxyRouteConfig, placeOf } from '../../src/proxy/config/config.ts'
import { settingsOf } from '../../src/proxy/config/settings.ts'
import { freeSpelling } from '../../src/proxy/config/spellings.ts'

const GOOD = { upstream: 'http://127.0.0.1:3000', node: 'node_1', discovery: { title: 'Jokes' } }

type More = Partial<ProxyConfig>
const settings = (routes: ProxyRouteConfig[], more: More = {}) => settingsOf({ ...GOOD, routes, ...more })

function read(path: string, routes: ProxyRouteConfig[], more?: More): string | undefined {
  return settings(routes, more).documents?.answer('GET', path)?.body
}
const openapi = (routes: ProxyRouteConfig[], more?: More): any => JSON.parse(read('/openapi.json', routes, more) ?? '')
const l402 = (routes: ProxyRouteConfig[], more?: More): any => JSON.parse(read('/.well-known/l402.json', routes, more) ?? 'null')

/** `get /a 25`, one for each operation; `-` without a price. */
function priced({ paths }: any): string[] {
  return Object.entries<any>(paths).flatMap(([path, item]) =>
    Object.entries<any>(item).map(
      ([method, operation]) =>
        `${method} ${path} ${operation['x-payment-info']?.offers[0].amount ?? (operation.responses?.[402] ? 'null' : '-')}`,
    ),
  )
}

/** A seller's document with these operations. */
function own(...operations: string[]): object {
  const paths: Record<string, object> = {}
  for (const operation of operations) {
    const [method = '', path = ''] = operation.split(' ')
    paths[path] = { ...paths[path], [method]: {} }
  }
  return { openapi: '3.1.0', info: { title: 'Mine', version: '2' }, paths }
}

/** The places and texts of all mistakes. */
function mistakesIn(config: unknown): string[] {
  try {
    settingsOf(config as ProxyConfig)
    return []
  } catch (error) {
    if (!(error instanceof ProxyConfigError)) throw error
    return error.mistakes.map(({ path, message }) => `${placeOf(path)}: ${message}`)
  }
}

describe('C77: the documents of a proxy', () => {
  test('C77: a proxy without `discovery` has none', () => {
    expect(settings([{ match: '/a', amountSat: 1 }], { discovery: undefined }).documents).toBeUndefined()
  })

  test('C77: have one operation for each method, and no price for what is free', () => {
    const routes: ProxyRouteConfig[] = [
      { match: 'GET /health', free: true },
      { match: 'GET|POST|GET|HEAD|OPTIONS /words/:id', amountSat: 25, description: 'Words' },
      { match: 'PUT /quote', priceFrom: 'http://127.0.0.1/price' },
      { match: '/any', amountSat: 7 },
      { match: 'GET /gone', deny: 410 },
      { match: 'GET /files/**', amountSat: 3 },
    ]
    const document = openapi(routes, { protocols: ['mpp', 'l402'] })
    // The validator warns about every POST without a body.
    expect(validate(document).filter(({ severity }) => severity === 'error')).toEqual([])
    expect(priced(document)).toEqual(['get /health -', 'get /words/{id} 25', 'post /words/{id} 25', 'put /quote null'])
    expect(document.paths['/words/{id}'].get).toMatchObject({
      summary: 'Words',
      'x-payment-info': { offers: [{ description: 'Words' }] },
    })
    const resources = l402(routes, { protocols: ['mpp', 'l402'] }).services[0].resources
    expect(resources.map((one: any) => `${one.method} ${one.path} ${one.pricing.price_msat}`)).toEqual([
      'GET /words/:id 25000',
      'POST /words/:id 25000',
      'PUT /quote null',
    ])
    const text = read('/llms.txt', routes)
    expect(text).toContain('- `any method /any`, 7 sat (MPP)')
    expect(text).toContain('- `GET /files/**`, 3 sat (MPP)')
    expect(text).not.toMatch(/gone|OPTIONS|HEAD|node_1|127\.0\.0\.1/)
  })

  test('C77: leave out the methods that an earlier route takes', () => {
    const routes: ProxyRouteConfig[] = [
      { match: 'GET /a/*', deny: 404 },
      { match: 'GET|POST /a/b', amountSat: 5 },
      { match: 'GET /c', amountSat: 6 },
      { match: 'HEAD|PUT /c', amountSat: 7 },
    ]
    expect(priced(openapi(routes))).toEqual(['post /a/b 5', 'get /c 6', 'put /c 7'])
    expect(read('/llms.txt', routes)).not.toMatch(/GET \/a|HEAD/)
  })

  test('C77: take for a parameter only what the proxy takes for one', () => {
    const routes = ['/models:predict', '/a(b)', '/{x}', '/[y]', '/:z/*'].map((path) => ({ match: `GET ${path}`, amountSat: 5 }))
    expect(Object.keys(openapi(routes).paths)).toEqual([
      '/models%3Apredict',
      '/a%28b%29',
      '/%7Bx%7D',
      '/%5By%5D',
      '/{z}/{wildcard}',
    ])
    const document = openapi(routes, { openapi: own('get /models:predict', 'get /a(b)', 'get /{x}') })
    expect(priced(document)).toEqual([
      ...['get /models:predict 5', 'get /a(b) 5', 'get /{x} -'],
      ...['get /%7Bx%7D 5', 'get /%5By%5D 5', 'get /{z}/{wildcard} 5'],
    ])
  })

  test('C77: have the public URL', () => {
    const document = openapi([{ match: 'GET /a', amountSat: 1 }], { publicUrl: 'https://api.example.com/v1' })
    expect(document.servers).toEqual([{ url: 'https://api.example.com/v1' }])
  })
})

describe('C78: the seller’s own document', () => {
  test('C78: an operation has the price of the first route that takes it', () => {
    const routes: ProxyRouteConfig[] = [
      { match: '/admin/**', deny: 403 },
      { match: 'GET /a/**', amountSat: 10 },
      { match: '/a/b', amountSat: 25 },
      { match: 'GET /free', free: true },
      { match: '/**', amountSat: 3 },
    ]
    const operations = [
      'get /a/b',
      'post /a/b',
      'options /a/b',
      'head /a/b',
      'get /a/{id}',
      'get /admin/x',
      'get /free',
      'get /{any}/x',
    ]
    expect(priced(openapi(routes, { openapi: own(...operations) })).sort()).toEqual([
      'get /a/b 10',
      'get /a/{id} 10',
      'get /admin/x -',
      'get /free -',
      'get /{any}/x 3',
      'head /a/b 10',
      'options /a/b -',
      'post /a/b 25',
    ])
  })

  test('C78: a price that differs from the route’s is a mistake that names both', () => {
    const document: any = own('get /a', 'get /gone')
    const offers = [{ intent: 'charge', method: 'lightning', amount: '9' }]
    document.paths['/a'].get = { 'x-payment-info': { offers } }
    const routes = [
      { match: 'GET /a', amountSat: 5 },
      { match: 'GET /gone', deny: 410 },
    ]
    expect(mistakesIn({ ...GOOD, routes, openapi: document })).toEqual([
      'openapi: x-payment-info of GET /a says 9 sat, but the paywall charges 5 sat. Remove it from your document: prices are added.',
    ])
    document.paths = { '/gone': { get: { 'x-payment-info': { offers } } } }
    expect(mistakesIn({ ...GOOD, routes, openapi: document })).toEqual([
      expect.stringMatching(/^openapi: x-payment-info of GET \/gone says 9 sat, but the paywall does not charge for it/),
    ])
  })
})

describe('C73: mistakes', () => {
  const routes = [{ match: 'GET /a', amountSat: 5 }]
  test.each<[name: string, more: object, places: string[]]>([
    ['no title', { discovery: {} }, ['discovery.title']],
    ['an empty title', { discovery: { title: ' ' } }, ['discovery.title']],
    ['an unknown name', { discovery: { title: 'a', titel: 'a' } }, ['discovery.titel']],
    ['a version that is a number', { discovery: { title: 'a', version: 1.2 } }, ['discovery.version']],
    ['six categories', { discovery: { title: 'a', categories: [...'abcdef'] } }, ['discovery.categories']],
    [
      'docs',
      { discovery: { title: 'a', docs: { homepage: 'a', other: '/' } } },
      ['discovery.docs.other', 'discovery.docs.homepage'],
    ],
    ['openapi that is not an OpenAPI 3 document', { openapi: { swagger: '2.0' } }, ['openapi']],
    ['openapi that is text', { openapi: './openapi.yaml' }, ['openapi']],
    ['openapi without discovery', { discovery: undefined, openapi: own() }, ['openapi']],
    ['a public URL with a query', { publicUrl: 'https://a.example/?' }, ['publicUrl']],
  ])('C73: %s', (_name, more, places) => {
    expect(mistakesIn({ ...GOOD, routes, ...more }).map((text) => text.split(': ')[0])).toEqual(places)
  })

  test.each<[match: string, more: object, isMistake: boolean]>([
    ['GET /openapi.json', {}, true],
    ['/openapi.json', {}, true],
    ['HEAD /%6Flms.txt', {}, false],
    ['HEAD /%6Clms.txt', {}, true],
    ['POST /openapi.json', {}, false],
    ['GET /.well-known/l402.json', {}, false],
    ['GET /.well-known/l402.json', { protocols: ['l402'] }, true],
    ['GET /llms.txt', { discovery: { title: 'a', docs: { llms: '/llms.txt' } } }, false],
    ['GET /openapi.json', { discovery: undefined }, false],
    ['GET /*', {}, false],
    ['/**', {}, false],
  ])('C73: a route for %s, with %j, is never used: %s', (match, more, isMistake) => {
    const found = mistakesIn({ ...GOOD, routes: [...routes, { match, free: true }], ...more })
    expect(found).toEqual(
      isMistake ? [expect.stringMatching(/^routes\[1\]\.match: never matches, because discovery serves \//)] : [],
    )
  })
})

test.each<[paid: string, free: string, isFound: boolean]>([
  ['GET /a', '/**', true],
  ['GET /a', '/*', true],
  ['GET /a/:id', '/a/**', true],
  ['GET /a/:id', '/:any/*', true],
  ['GET /a', 'POST /**', false],
  ['GET /a', '/b/**', false],
  // The free route takes no other spelling of the path, only other methods.
  ['GET /a/:id', '/a/*', false],
  ['GET /1', '/*', false],
  ['GET /a/**', '/a/**', false],
])('C73: after the paid %s, the free %s takes other spellings of it: %s', (paid, free, isFound) => {
  const routes: ProxyRouteConfig[] = [
    { match: paid, amountSat: 5 },
    { match: free, free: true },
  ]
  expect(freeSpelling(settings(routes).routes)).toEqual(isFound ? { paid: 0, free: 1 } : undefined)
})
