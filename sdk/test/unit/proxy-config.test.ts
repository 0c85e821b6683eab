import { describe, expect, test } from 'vitest'
import { type ProxyConfig, ProxyConfigError, placeOf } from '../../src/proxy/config/config.ts'
import { listenOf } from '../../src/proxy/config/schema.ts'
import { settingsOf } from '../../src/proxy/config/settings.ts'

const GOOD: ProxyConfig = {
  upstream: 'http://127.0.0.1:3000',
  node: 'node_1',
  routes: [{ match: 'GET /a', amountSat: 5 }],
}

/** The places of all mistakes. */
function mistakesIn(config: unknown): string[] {
  try {
    settingsOf(config as ProxyConfig)
    return []
  } catch (error) {
    if (!(error instanceof ProxyConfigError)) throw error
    return error.mistakes.map(({ path }) => placeOf(path))
  }
}
const withRoute = (route: object) => ({ ...GOOD, routes: [route] })

test('C73: the smallest configuration has these defaults', () => {
  expect(settingsOf(GOOD)).toMatchObject({
    listen: { host: '127.0.0.1', port: 8080 },
    maxOpenVisits: 100,
    maxBodyBytes: 10_485_760,
    trustProxy: false,
    routes: [{ firstByteMs: 60_000 }],
  })
  expect(settingsOf(GOOD).routes[0]?.listed).toEqual({
    match: 'GET /a',
    methods: ['GET'],
    path: '/a',
    access: 'paid',
    amountSat: 5,
    protocols: ['mpp'],
    description: 'GET /a',
    bind: 'path',
  })
})

test('C73: a route overrides the general settings', () => {
  const { routes } = settingsOf({
    ...GOOD,
    protocols: ['x402', 'l402', 'mpp'],
    holdSeconds: 30,
    timeouts: { firstByteMs: 5 },
    routes: [
      { match: '/a', priceFrom: 'http://127.0.0.1/price', protocols: ['l402'], timeouts: { firstByteMs: 6 } },
      { match: '/b', amountSat: 1, resource: 'all', html: true },
      { match: '/c', free: true },
      { match: '/**', deny: 403 },
    ],
  })
  expect(routes.map(({ firstByteMs }) => firstByteMs)).toEqual([6, 5, 5, 5])
  expect(routes.map(({ config: { holdSeconds, html } }) => [holdSeconds, html])).toEqual([
    [30, undefined],
    [30, true],
    [30, undefined],
    [30, undefined],
  ])
  expect(routes.map(({ listed }) => listed)).toMatchObject([
    { access: 'paid', amountSat: null, priceFrom: 'http://127.0.0.1/price', protocols: ['l402'], bind: 'url' },
    { access: 'paid', amountSat: 1, protocols: ['l402', 'mpp', 'x402'], resource: 'all' },
    { access: 'free' },
    { access: 'denied', status: 403 },
  ])
  expect(routes[1]?.listed.bind).toBeUndefined()
})

describe('mistakes', () => {
  test.each<[name: string, config: unknown, places: string[]]>([
    ['nothing', undefined, ['the configuration']],
    ['a list', [], ['the configuration']],
    ['an empty configuration', {}, ['upstream', 'node', 'routes']],
    ['no routes', { ...GOOD, routes: [] }, ['routes']],
    ['an unknown name', { ...GOOD, nodes: 1 }, ['nodes']],
    ['unknown names further down', { ...GOOD, limits: { max: 1 }, l402: { reuse: 'never', x: 1 } }, ['limits.max', 'l402.x']],
    ['an unknown name in a route', withRoute({ match: '/a', amountSats: 5 }), ['routes[0].amountSats', 'routes[0]']],
    ['a group that is not an object', { ...GOOD, limits: 5, headers: [] }, ['limits', 'headers']],
    ['upstream with a path', { ...GOOD, upstream: 'http://127.0.0.1:3000/api' }, ['upstream']],
    ['upstream that is not a URL', { ...GOOD, upstream: '127.0.0.1:3000' }, ['upstream']],
    ['upstream with a password', { ...GOOD, upstream: 'http://a:b@127.0.0.1' }, ['upstream']],
    ['listen', { ...GOOD, listen: 'everywhere' }, ['listen']],
    ['protocols', { ...GOOD, protocols: ['mpp', 'l420'] }, ['protocols']],
    ['no protocols', { ...GOOD, protocols: [] }, ['protocols']],
    ['protocols that are not a list', { ...GOOD, protocols: 'mpp' }, ['protocols']],
    [
      'limits',
      { ...GOOD, limits: { openChallengesPerAddress: -1, maxBodyBytes: '1' } },
      ['limits.openChallengesPerAddress', 'limits.maxBodyBytes'],
    ],
    ['l402', { ...GOOD, l402: { reuse: '1h' } }, ['l402.reuse']],
    ['l402 without reuse', { ...GOOD, l402: {} }, ['l402.reuse']],
    ['holdSeconds', { ...GOOD, holdSeconds: 601 }, ['holdSeconds']],
    [
      'flags',
      { ...GOOD, html: 'yes', releaseOnDisconnect: 0, requiresAuth: null },
      ['requiresAuth', 'releaseOnDisconnect', 'html'],
    ],
    ['timeouts', { ...GOOD, timeouts: { firstByteMs: 0 } }, ['timeouts.firstByteMs']],
    ['trustProxy', { ...GOOD, trustProxy: true }, ['trustProxy']],
    ['trustProxy, an address', { ...GOOD, trustProxy: ['10.0.0.0/33'] }, ['trustProxy']],
    ['publicUrl', { ...GOOD, publicUrl: 'api.example.com' }, ['publicUrl']],
    ['bindHeaders', { ...GOOD, bindHeaders: ['payment-signature'] }, ['bindHeaders']],
    ['a header that frames a message', { ...GOOD, headers: { set: { 'Content-Length': '1' } } }, ['headers.set']],
    ['a header that says who paid', { ...GOOD, headers: { set: { 'X-Payment-Id': '1' } } }, ['headers.set']],
    ['a header with two lines', { ...GOOD, headers: { set: { a: 'b\r\nc: d' } } }, ['headers.set']],
    ['headers to remove', { ...GOOD, headers: { remove: ['a b'] } }, ['headers.remove']],
    ['no match', withRoute({ amountSat: 5 }), ['routes[0].match']],
    ['an invalid match', withRoute({ match: 'get /a', free: true }), ['routes[0].match']],
    ['a match that is too long', withRoute({ match: `/${'a'.repeat(500)}`, free: true }), ['routes[0].match']],
    ['a route that is not an object', withRoute([]), ['routes[0]', 'routes[0]']],
    ['no kind', withRoute({ match: '/a' }), ['routes[0]']],
    ['two kinds', withRoute({ match: '/a', free: true, amountSat: 5 }), ['routes[0]']],
    ['a price of 0', withRoute({ match: '/a', amountSat: 0 }), ['routes[0].amountSat']],
    ['a price of text', withRoute({ match: '/a', amountSat: '5' }), ['routes[0].amountSat']],
    ['a price with decimals', withRoute({ match: '/a', amountSat: 0.5 }), ['routes[0].amountSat']],
    ['priceFrom', withRoute({ match: '/a', priceFrom: '/price' }), ['routes[0].priceFrom']],
    ['free: false', withRoute({ match: '/a', free: false }), ['routes[0].free']],
    ['deny: 402', withRoute({ match: '/a', deny: 402 }), ['routes[0].deny']],
    ['deny: 200', withRoute({ match: '/a', deny: 200 }), ['routes[0].deny']],
    ['bind', withRoute({ match: '/a', amountSat: 1, bind: 'body' }), ['routes[0].bind']],
    ['bind and resource', withRoute({ match: '/a', amountSat: 1, bind: 'url', resource: 'x' }), ['routes[0].bind']],
    ['a resource that is not ASCII', withRoute({ match: '/a', amountSat: 1, resource: 'ü' }), ['routes[0].resource']],
    [
      'a description that is too long',
      withRoute({ match: '/a', amountSat: 1, description: 'a'.repeat(501) }),
      ['routes[0].description'],
    ],
    [
      'a setting of payments on a free route',
      withRoute({ match: '/a', free: true, bind: 'path', html: true }),
      ['routes[0].bind', 'routes[0].html'],
    ],
  ])('C73: %s', (_name, config, places) => {
    expect(mistakesIn(config)).toEqual(places)
  })

  test('C73: all of them are reported at once, and none repeats a value', () => {
    const secret = 'hunter2'
    const config = {
      listen: secret,
      upstream: secret,
      routes: [{ match: secret, amountSat: secret }],
      headers: { set: { a: `${secret}\n` } },
    }
    const error = (() => {
      try {
        settingsOf(config as never)
      } catch (thrown) {
        return thrown as ProxyConfigError
      }
    })()
    expect(error?.mistakes).toHaveLength(6)
    expect(error?.message).toMatch(/routes\[0\]\.amountSat: It must be a whole number from 1 to/)
    expect(error?.message).not.toContain(secret)
  })

  test('C73: a route that an earlier one hides is a mistake', () => {
    const routes = [
      { match: '/**', free: true },
      { match: 'GET /dear', amountSat: 1000 },
    ]
    expect(mistakesIn({ ...GOOD, routes })).toEqual(['routes[1].match'])
    expect(mistakesIn({ ...GOOD, routes: routes.reverse() })).toEqual([])
  })
})

test.each([
  ['0.0.0.0:8080', '0.0.0.0', 8080],
  ['localhost:0', 'localhost', 0],
  ['[::1]:80', '::1', 80],
  [8080, '127.0.0.1', 8080],
  ['8080', '127.0.0.1', 8080],
])('C73: listen %s', (value, host, port) => {
  expect(listenOf(value)).toEqual({ host, port })
})
test.each(['', 'a', ':80', '::1:80', 'a:70000', 'a b:80', -1, 1.5, null])('C73: %s is not a valid `listen`', (value) => {
  expect(listenOf(value)).toBeUndefined()
})
