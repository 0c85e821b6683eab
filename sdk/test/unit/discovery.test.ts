import { validate } from 'mppx/discovery'
import { describe, expect, test } from 'vitest'
import { discovery, l402JsonOf, llmsTxtOf, openapiOf, type PricedRoute, pricedRoutes } from '../../src/discovery/index.ts'
import { covers, templateOf } from '../../src/discovery/path.ts'
import { paywall } from '../../src/paywall/adapters/express.ts'

const SERVICE = { title: 'Jokes' }
const joke: PricedRoute = { method: 'GET', path: '/joke', amountSat: 25, description: 'A joke', protocols: ['mpp'] }
const route = (more: Partial<PricedRoute>): PricedRoute => ({ ...joke, ...more })

const openapi = (routes: PricedRoute[], more: object = {}): any => openapiOf({ ...SERVICE, ...more }, routes)
const l402Json = (routes: PricedRoute[], more: object = {}): any => l402JsonOf({ ...SERVICE, ...more }, routes)

describe('C77: from one list of prices', () => {
  test('C77: openapi.json has the price for MPP, the response 402 and the service', () => {
    const document = openapi([joke], {
      description: 'Fresh jokes',
      categories: ['fun'],
      docs: { homepage: 'https://jokes.example' },
    })
    expect(document).toEqual({
      openapi: '3.1.0',
      info: { title: 'Jokes', version: '1.0.0', description: 'Fresh jokes' },
      servers: [{ url: '/' }],
      security: [],
      'x-service-info': { categories: ['fun'], docs: { homepage: 'https://jokes.example', llms: '/llms.txt' } },
      paths: {
        '/joke': {
          get: {
            operationId: 'getJoke',
            summary: 'A joke',
            'x-payment-info': {
              offers: [{ intent: 'charge', method: 'lightning', amount: '25', currency: 'sat', description: 'A joke' }],
            },
            responses: { 200: { description: 'Success' }, 402: { description: 'Payment required: 25 sat, by MPP.' } },
          },
        },
      },
    })
  })

  test('C77: l402.json has what L402 opens, in millisatoshis, and nothing else', () => {
    const document = l402Json([joke, route({ path: '/articles/:id', protocols: ['l402', 'mpp'] })], {
      description: 'Fresh jokes',
    })
    expect(document).toEqual({
      version: '1.0',
      provider: { name: 'Jokes' },
      currencies: ['msat'],
      macaroon_versions: [0],
      payment_methods: ['bolt11'],
      services: [
        {
          name: 'Jokes',
          description: 'Fresh jokes',
          resources: [{ path: '/articles/:id', method: 'GET', pricing: { model: 'fixed', price_msat: 25_000 } }],
        },
      ],
    })
    expect(l402Json([joke])).toBeUndefined()
  })

  test('C77: a price function is amount null, and the model dynamic', () => {
    const routes = pricedRoutes({ 'GET /lorem': { amountSat: () => 7, protocol: 'both' } })
    expect(openapi(routes).paths['/lorem'].get['x-payment-info'].offers).toMatchObject([{ amount: null }])
    expect(l402Json(routes).services[0].resources[0].pricing).toEqual({ model: 'dynamic', price_msat: null })
    expect(llmsTxtOf(SERVICE, routes)).toContain('- `GET /lorem`, a price that varies (L402, MPP)')
  })

  test.each<[PricedRoute['protocols'], boolean, boolean]>([
    [['mpp'], true, false],
    [['l402'], false, true],
    [['x402'], false, false],
    [['l402', 'mpp', 'x402'], true, true],
  ])('C77: with %j, only what a client of that protocol can pay is advertised to it', (protocols, isMpp, isL402) => {
    const { get } = openapi([route({ protocols })]).paths['/joke']
    expect('x-payment-info' in get).toBe(isMpp)
    expect(get.responses).toHaveProperty('402')
    expect(l402Json([route({ protocols })]) !== undefined).toBe(isL402)
  })

  test('C77: what is free has no price and no 402', () => {
    const routes = pricedRoutes({ 'GET /health': { amountSat: 1, free: true, protocol: 'both' } })
    expect(openapi(routes).paths['/health'].get).toEqual({
      operationId: 'getHealth',
      summary: 'GET /health',
      responses: { 200: { description: 'Success' } },
    })
    expect(l402Json(routes)).toBeUndefined()
    expect(llmsTxtOf(SERVICE, routes)).toContain('- `GET /health`, free')
  })

  test('C77: a paywall and its options are the same price', () => {
    const options = { nodeId: 'node_secret', amountSat: 25, description: 'A joke', protocol: 'both' as const }
    const prices = [paywall(options), options].map((price) => pricedRoutes({ 'GET /joke': price }))
    expect(prices[0]).toEqual(prices[1])
    expect(prices[0]).toEqual([{ ...joke, isFree: false, protocols: ['l402', 'mpp'] }])
  })

  test('C77: no document has the node’s id, and publicUrl is the only address', async () => {
    const routes = { 'GET /joke': { nodeId: 'node_secret', amountSat: 25, protocol: 'both' as const } }
    const texts = async (more: object): Promise<string[]> => {
      const documents = discovery({ ...SERVICE, ...more, routes })
      const paths = ['/openapi.json', '/.well-known/l402.json', '/llms.txt']
      return Promise.all(paths.map(async (path) => (await documents(new Request(`http://evil.example${path}`))?.text()) ?? ''))
    }
    for (const text of await texts({})) expect(text).not.toMatch(/node_secret|evil|https?:/)
    const [described = '', l402 = '', llms] = await texts({ publicUrl: 'https://jokes.example/api/' })
    expect(JSON.parse(described)).toMatchObject({
      servers: [{ url: 'https://jokes.example/api' }],
      'x-service-info': { docs: { llms: 'https://jokes.example/api/llms.txt' } },
    })
    expect(JSON.parse(l402)).toMatchObject({
      provider: { uri: 'https://jokes.example/api/' },
      services: [{ resources: [{ path: '/api/joke' }] }],
    })
    expect(llms).toContain('`GET https://jokes.example/api/joke`, 25 sat')
  })

  test('C77: llms.txt says what it is, what costs how much, and what openapi.json cannot list', () => {
    const routes = [route({ description: 'A joke,\n# fresh' }), route({ method: '*', path: '/**', description: undefined })]
    expect(llmsTxtOf({ title: 'Jokes', description: 'Fresh jokes' }, routes).split('\n')).toEqual([
      '# Jokes',
      '',
      '> Fresh jokes',
      '',
      expect.stringContaining('402'),
      expect.stringContaining('The price in the 402 is the one that counts.'),
      '',
      '## Prices',
      '',
      '- `GET /joke`, 25 sat (MPP): A joke, # fresh',
      '- `any method /**`, 25 sat (MPP) (not listed in openapi.json: the method or path cannot be written there, or is outside its server URL)',
      '',
      '## Documents',
      '',
      '- [OpenAPI](/openapi.json): every operation, with its price',
      '',
    ])
  })
})

describe('C77: paths', () => {
  test.each([
    ['/joke', '/joke', []],
    ['/articles/:id', '/articles/{id}', ['id']],
    ['/articles/:id(\\d+)/pages/:page', '/articles/{id}/pages/{page}', ['id', 'page']],
    ['/articles/:id{[0-9]+}', '/articles/{id}', ['id']],
    ['/flights/:from-:to', '/flights/{from}-{to}', ['from', 'to']],
    ['/api/articles/[id]', '/api/articles/{id}', ['id']],
    ['/files/*', '/files/{wildcard}', ['wildcard']],
    ['/files/*/*', '/files/{wildcard}/{wildcard2}', ['wildcard', 'wildcard2']],
    ['/files/*rest', '/files/{rest}', ['rest']],
    ['/articles/{id}', '/articles/{id}', ['id']],
  ])('C77: %s is %s in OpenAPI', (pattern, path, parameters) => {
    expect(templateOf(pattern)).toEqual({ path, parameters })
  })

  test.each(['/**', '/a/**', '/articles/:id?', '/users{/:id}', '/(.*)', '/*.png', '/docs/[...slug]', '/a|b'])(
    'C77: %s has no form in OpenAPI',
    (pattern) => {
      expect(templateOf(pattern)).toBeUndefined()
      const routes = [route({ path: pattern, protocols: ['l402', 'mpp'] })]
      expect(openapi(routes).paths).toEqual({})
      expect(l402Json(routes)).toBeUndefined()
      expect(llmsTxtOf(SERVICE, routes)).toContain('not listed in openapi.json')
    },
  )

  test.each([
    ['/**', '/a/{id}', true],
    ['/a/**', '/a', true],
    ['/a/**', '/ab/c', false],
    ['/a/:id', '/a/{name}', true],
    ['/a/:id', '/a/best', true],
    ['/a/best', '/a/{id}', false],
    ['/a/*', '/a/b/c', false],
    ['/a/**/b', '/a/c/b', false],
  ])('C77: %s covers %s: %s', (pattern, template, isCovered) => {
    expect(covers(pattern, template)).toBe(isCovered)
  })

  test('C77: two routes that OpenAPI takes for one path are listed once', () => {
    const document = openapi([
      route({ path: '/a/:id' }),
      route({ path: '/a/:name', amountSat: 9 }),
      route({ method: 'POST', path: '/a/:x' }),
    ])
    expect(Object.keys(document.paths)).toEqual(['/a/{id}'])
    expect(document.paths['/a/{id}'].get['x-payment-info'].offers).toMatchObject([{ amount: '25' }])
    expect(document.paths['/a/{id}'].post.parameters).toMatchObject([{ name: 'id' }])
  })
})

describe('C78: the seller’s own document', () => {
  const own = (paths: object, more: object = {}): object => ({
    openapi: '3.0.3',
    info: { title: 'Mine', version: '7' },
    ...more,
    paths,
  })
  const responses = { 200: { description: 'A joke' } }
  const priced = (amount: unknown, more: object = {}): object => ({
    responses,
    'x-payment-info': { offers: [{ intent: 'charge', method: 'lightning', amount, ...more }] },
  })

  test('C78: is kept, and gets the prices', () => {
    const given = own(
      {
        '/joke': { get: { operationId: 'tell', responses, 'x-mine': 1 } },
        '/articles/{articleId}': { parameters: [{ name: 'articleId', in: 'path', required: true }], post: { responses } },
        '/health': { get: { responses } },
      },
      { 'x-service-info': { docs: { apiReference: '/docs' } } },
    )
    const before = JSON.stringify(given)
    const document = openapi([joke, route({ path: '/articles/:id' }), route({ path: '/new' })], { openapi: given })
    expect(document).toMatchObject({ openapi: '3.0.3', info: { title: 'Mine', version: '7' }, servers: [{ url: '/' }] })
    expect(document['x-service-info'].docs).toEqual({ apiReference: '/docs', llms: '/llms.txt' })
    expect(document.paths['/joke'].get).toMatchObject({
      operationId: 'tell',
      'x-mine': 1,
      'x-payment-info': { offers: [{ amount: '25' }] },
      responses: { 200: { description: 'A joke' }, 402: {} },
    })
    expect(document.paths['/articles/{articleId}'].post).toEqual({ responses })
    // The path already declares the parameter, so the added operation does not repeat it.
    expect(document.paths['/articles/{articleId}'].get).toMatchObject({ operationId: 'getArticlesArticleId' })
    expect(document.paths['/articles/{articleId}'].get).not.toHaveProperty('parameters')
    expect(document.paths['/health'].get).toEqual({ responses })
    expect(Object.keys(document.paths)).toEqual(['/joke', '/articles/{articleId}', '/health', '/new'])
    expect(JSON.stringify(given)).toBe(before)
  })

  test('C78: patterns price every operation they cover, except for those with a separate route', () => {
    const given = own({
      '/a/{id}': { get: { responses }, head: { responses }, put: { responses } },
      '/free': { get: { responses } },
    })
    const routes = [
      route({ method: '*', path: '/**', amountSat: 3 }),
      route({ path: '/free', isFree: true }),
      route({ method: 'GET', path: '/a/*', amountSat: 2 }),
    ]
    const { paths } = openapi(routes, { openapi: given })
    const amounts = ['get', 'head', 'put'].map((method) => paths['/a/{id}'][method]['x-payment-info'].offers[0].amount)
    expect(amounts).toEqual(['2', '2', '3'])
    expect(paths['/free'].get).toEqual({ responses })
  })

  test.each([
    ['https://jokes.example/v1', undefined, '/v1/joke'],
    ['/v1/', undefined, '/v1/joke'],
    ['https://jokes.example/shop/v1', 'https://jokes.example/shop', '/v1/joke'],
    ['https://{region}.jokes.example', undefined, '/joke'],
    ['https://jokes.example/{version}', undefined, '/v2/joke'],
  ])('C78: with the server %s and publicUrl %s, /joke is the route %s', (url, publicUrl, path) => {
    const server = { url, variables: { region: { default: 'eu' }, version: { default: 'v2' } } }
    const given = own({ '/joke': { get: { responses } } }, { servers: [server] })
    const document = openapi([route({ path }), route({ path: '/elsewhere' })], { openapi: given, publicUrl })
    expect(document.servers).toEqual([server])
    expect(document.paths['/joke'].get).toHaveProperty('x-payment-info')
    // The document cannot list a path outside the path of the server.
    expect('/elsewhere' in document.paths).toBe(path === '/joke')
    const llms = llmsTxtOf({ ...SERVICE, openapi: given, publicUrl }, [route({ path: '/elsewhere' })])
    expect(llms.includes('not listed in openapi.json')).toBe(path !== '/joke')
  })

  test.each<[string, object, Partial<PricedRoute>, RegExp]>([
    ['another price', priced('30'), {}, /GET \/joke says 30 sat, but the paywall charges 25 sat\. Remove it/],
    ['another price in the early form', { 'x-payment-info': { method: 'lightning', amount: '30' } }, {}, /says 30 sat/],
    ['another currency', priced('25', { currency: 'usd' }), {}, /says 25 usd, but the paywall charges 25 sat/],
    ['a price that varies, where it does not', priced(null), {}, /says a price that varies, but the paywall charges 25 sat/],
    ['a price for what varies', priced('25'), { amountSat: null }, /says 25 sat, but the paywall charges a price that varies/],
    ['MPP, where it is not offered', priced('25'), { protocols: ['l402'] }, /charges 25 sat, but not by MPP/],
    ['a price for what is free', priced('25'), { isFree: true }, /does not charge for it/],
    ['a price for what is not in `routes`', priced('25'), { path: '/other' }, /missing in `routes`/],
  ])('C78: %s is an error', (_what, operation, more, message) => {
    expect(() => openapi([route(more)], { openapi: own({ '/joke': { get: operation } }) })).toThrow(message)
  })

  test('C78: the same price, and offers by other payment methods, are not an error', () => {
    const other = { intent: 'charge', method: 'card', amount: '100', currency: 'usd' }
    const operation = { responses, 'x-payment-info': { offers: [{ method: 'lightning', amount: '25' }, other] } }
    const { get } = openapi([joke], { openapi: own({ '/joke': { get: operation } }) }).paths['/joke']
    expect(get['x-payment-info'].offers).toEqual([expect.objectContaining({ currency: 'sat', amount: '25' }), other])
  })

  test('C78: anything but an OpenAPI 3 document is an error', () => {
    for (const given of [{}, { swagger: '2.0' }, []])
      expect(() => openapi([joke], { openapi: given })).toThrow('`openapi` must be an OpenAPI 3 document.')
  })
})

test('C77: mppx accepts the documents', () => {
  const routes = [
    joke,
    route({ path: '/lorem', amountSat: null }),
    route({ path: '/a/:id', protocols: ['l402'] }),
    route({ path: '/health', isFree: true }),
  ]
  const more = { publicUrl: 'https://jokes.example', categories: ['fun'], docs: { apiReference: '/docs' } }
  expect(validate(openapi(routes))).toEqual([])
  expect(validate(openapi(routes, more))).toEqual([])
  // Shows that mppx detects an invalid document.
  expect(validate({ ...openapi(routes), paths: { '/x': { get: { 'x-payment-info': { amount: 7 } } } } })).not.toEqual([])
})

test.each<[string, object, RegExp]>([
  ['no title', { title: ' ' }, /`title` is missing/],
  ['a public URL with a password', { publicUrl: 'https://me:secret@jokes.example' }, /`publicUrl` must be an http or https URL/],
  ['a public URL with a query', { publicUrl: 'https://jokes.example/?a' }, /`publicUrl`/],
  ['six categories', { categories: [...'abcdef'] }, /`categories` must have at most 5 entries/],
  ['a link that is not a URL', { docs: { homepage: 'javascript:alert(1)' } }, /`docs\.homepage` must be a URL/],
  ['a route without a path', { routes: { GET: { amountSat: 1 } } }, /"GET" must be a method and a path/],
  ['a route in lowercase', { routes: { 'get /joke': { amountSat: 1 } } }, /"get \/joke" must be a method and a path/],
  ['a price of 0', { routes: { 'GET /joke': { amountSat: 0 } } }, /`amountSat` must be a whole number/],
  ['a misspelled protocol', { routes: { 'GET /joke': { amountSat: 1, protocol: 'lsat' } } }, /`protocol` must be 'mpp'/],
  [
    'something that is not a paywall',
    { routes: { 'GET /joke': { ready: async () => undefined } } },
    /must be a paywall or its options/,
  ],
])('C77: %s is an error at startup', (_what, more, message) => {
  expect(() => discovery({ ...SERVICE, routes: {}, ...more } as any)).toThrow(message)
})

describe('C78: documents say nothing false', () => {
  const own = (paths: object, more: object = {}) => ({ openapi: { openapi: '3.1.0', info: {}, paths, ...more } })
  const priceIn = (operation: any): unknown => operation['x-payment-info']?.offers[0].amount

  test('C77: if a route also requires an account, no document says that none is needed', () => {
    const routes = pricedRoutes({ 'GET /joke': { amountSat: 25, requiresAuth: true } })
    expect(openapi(routes)).not.toHaveProperty('security')
    expect(llmsTxtOf(SERVICE, routes)).not.toContain('without an account')
    expect(llmsTxtOf(SERVICE, [joke])).toContain('without an account')
  })

  test('C78: a route for every method has no price for OPTIONS', () => {
    const { paths } = openapi([route({ method: '*' })], own({ '/joke': { get: {}, options: {} } }))
    expect([priceIn(paths['/joke'].get), paths['/joke'].options]).toEqual(['25', {}])
  })

  test('C78: a path item that is a reference is an error, if a route is sold there', () => {
    const paths = { '/joke': { $ref: '#/components/pathItems/joke' } }
    expect(() => openapi([joke], own(paths))).toThrow('/joke is a `$ref`')
    expect(openapi([route({ path: '/other' })], own(paths)).paths['/joke']).toEqual(paths['/joke'])
  })

  test('C78: an operation with its own servers stays as it is, and a route beside it has the servers of the document', () => {
    const servers = [{ url: 'https://other.example/v2' }]
    const given = { '/joke': { servers, post: {} }, '/story': { get: { servers } } }
    const routes = [joke, route({ method: 'POST' }), route({ path: '/story' })]
    const { paths } = openapi(routes, own(given))
    expect([paths['/joke'].post, paths['/story'].get]).toEqual([{}, { servers }])
    expect([priceIn(paths['/joke'].get), paths['/joke'].get.servers]).toEqual(['25', [{ url: '/' }]])
  })

  test('C78: a route that is added does not need the key that the document asks for', () => {
    const keyed = own({}, { security: [{ key: [] }] })
    expect(openapi([joke], keyed).paths['/joke'].get.security).toEqual([])
    expect(openapi([route({ requiresAuth: true })], keyed).paths['/joke'].get).not.toHaveProperty('security')
  })

  test.each(['GET /openapi.json', '/llms.txt', 'GET /.well-known/l402.json'])(
    'C77: %s cannot be sold where discovery serves it for free',
    (key) => {
      const options = { amountSat: 25, protocols: ['l402'] as const }
      expect(() => discovery({ ...SERVICE, routes: { [key]: options } })).toThrow('cannot be sold')
      expect(() => discovery({ ...SERVICE, routes: { [key]: { ...options, free: true } } })).not.toThrow()
    },
  )
})
