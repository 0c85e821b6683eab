import { once } from 'node:events'
import { beforeAll, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { encodeOffer } from '../src/lightning/offer.ts'
import { type Answer, basic, FULL, LIMITED, send, TestNode } from './harness.ts'

const CONTROL_TOKEN = 'b'.repeat(64)
const UNAUTHORIZED = 'Invalid authentication (use basic auth with the http password set in phoenix.conf)'
const UNKNOWN_ENDPOINT = 'Unknown endpoint (check api doc)'
const WRONG_VERB = 'Invalid http method (use the correct GET/POST)'
const HASH = '01'.repeat(32)
const UUID = '7a4c5e3e-7d1c-4d5b-9d3c-0f3c2b1a0987'
const ADDRESS = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'
const LNURL = 'https://example.com/lnurl?tag=withdrawRequest'

type Form = Record<string, string>
/** `passes`: the status for a caller with the right password. */
type Endpoint = { verb: 'GET' | 'POST'; path: string; access: 'F' | 'L'; form?: Form; passes: number }

let node: TestNode
let invoice = ''
const offer = encodeOffer({ nodeId: `02${HASH}` })

/** All HTTP endpoints except the websocket, which needs an upgrade. */
const ENDPOINTS: Endpoint[] = [
  { verb: 'GET', path: '/getinfo', access: 'L', passes: 200 },
  { verb: 'GET', path: '/getbalance', access: 'L', passes: 200 },
  { verb: 'GET', path: '/estimateliquidityfees?amountSat=1', access: 'L', passes: 200 },
  { verb: 'GET', path: '/listchannels', access: 'L', passes: 200 },
  { verb: 'POST', path: '/createinvoice', access: 'L', form: { description: 'x' }, passes: 200 },
  { verb: 'POST', path: '/createoffer', access: 'L', passes: 200 },
  { verb: 'GET', path: '/getoffer', access: 'L', passes: 200 },
  { verb: 'GET', path: '/getlnaddress', access: 'L', passes: 200 },
  { verb: 'GET', path: '/payments/incoming', access: 'L', passes: 200 },
  { verb: 'GET', path: `/payments/incoming/${HASH}`, access: 'L', passes: 404 },
  { verb: 'GET', path: '/payments/outgoing', access: 'L', passes: 200 },
  { verb: 'GET', path: `/payments/outgoing/${UUID}`, access: 'L', passes: 404 },
  { verb: 'GET', path: `/payments/outgoingbyhash/${HASH}`, access: 'L', passes: 404 },
  { verb: 'POST', path: '/payinvoice', access: 'F', form: { invoice: 'mine', amountSat: '1' }, passes: 200 },
  { verb: 'POST', path: '/payoffer', access: 'F', form: { offer, amountSat: '1' }, passes: 200 },
  { verb: 'POST', path: '/paylnaddress', access: 'F', form: { address: 'a@b.example', amountSat: '1' }, passes: 500 },
  { verb: 'POST', path: '/decodeinvoice', access: 'L', form: { invoice: 'mine' }, passes: 200 },
  { verb: 'POST', path: '/decodeoffer', access: 'L', form: { offer }, passes: 200 },
  { verb: 'POST', path: '/lnurlpay', access: 'F', form: { lnurl: LNURL }, passes: 400 },
  { verb: 'POST', path: '/lnurlwithdraw', access: 'L', form: { lnurl: LNURL }, passes: 400 },
  { verb: 'POST', path: '/lnurlauth', access: 'F', form: { lnurl: LNURL }, passes: 400 },
  {
    verb: 'POST',
    path: '/sendtoaddress',
    access: 'F',
    form: { amountSat: '1', address: ADDRESS, feerateSatByte: '1' },
    passes: 200,
  },
  { verb: 'POST', path: '/bumpfee', access: 'F', form: { feerateSatByte: '1' }, passes: 200 },
  {
    verb: 'POST',
    path: '/closechannel',
    access: 'F',
    form: { channelId: HASH, address: ADDRESS, feerateSatByte: '1' },
    passes: 200,
  },
  { verb: 'POST', path: '/export', access: 'L', passes: 200 },
]
/** The eight endpoints of S03. */
const FULL_ONLY = ENDPOINTS.filter(({ access }) => access === 'F')
const FOR_BOTH = ENDPOINTS.filter(({ access }) => access === 'L')
/** Leaves out the two that never refuse a body: /export reads none, and /sendtoaddress turns every failure into a 200. */
const READING_A_FORM = ENDPOINTS.filter(({ verb, path }) => verb === 'POST' && path !== '/export' && path !== '/sendtoaddress')

beforeAll(async () => {
  node = await new TestNode({ conf: { 'sandbox-control-token': CONTROL_TOKEN } }).start()
  invoice = (await node.invoice()).serialized
})

function call({ verb, path, form }: Endpoint, authorization?: string): Promise<Answer> {
  const headers: Record<string, string> = authorization === undefined ? {} : { authorization }
  if (verb === 'GET') return send(node.port, verb, path, { headers })
  const fields = new URLSearchParams(form)
  if (fields.get('invoice') === 'mine') fields.set('invoice', invoice)
  headers['content-type'] = 'application/x-www-form-urlencoded'
  return send(node.port, verb, path, { headers, body: fields.toString() })
}

function expectSentence(answer: Answer, status: number, sentence: string): void {
  expect([answer.status, answer.headers['content-type'], answer.text]).toEqual([status, 'text/plain; charset=UTF-8', sentence])
}

function expectUnauthorized(answer: Answer): void {
  expectSentence(answer, 401, UNAUTHORIZED)
  expect(answer.headers['www-authenticate']).toBe('Basic realm="Ktor Server", charset=UTF-8')
}

const UPGRADE = {
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': Buffer.alloc(16).toString('base64'),
}

describe('access', () => {
  test.each(ENDPOINTS)('S01: $verb $path without credentials is 401 with phoenixd’s message and challenge', async (endpoint) => {
    expectUnauthorized(await call(endpoint))
  })

  test('S01 P23: an upgrade to /websocket without credentials is 401, too, but without WWW-Authenticate', async () => {
    const answer = await send(node.port, 'GET', '/websocket', { headers: UPGRADE })
    expectSentence(answer, 401, UNAUTHORIZED)
    expect(answer.headers).not.toHaveProperty('www-authenticate')
    expectUnauthorized(
      await send(node.port, 'GET', '/websocket', { headers: { ...UPGRADE, authorization: basic('a'.repeat(64)) } }),
    )
  })

  test('S01: credentials are checked first: no invoice is created, and the body is not validated', async () => {
    const before = (await node.get('/payments/incoming?all=true&limit=-1')).json().length
    const headers = { 'content-type': 'application/json' }
    expectUnauthorized(await send(node.port, 'POST', '/createinvoice', { headers, body: '{"description":"x"}' }))
    expectUnauthorized(await node.post('/createinvoice', { description: 'x' }, 'wrong'))
    expect((await node.get('/payments/incoming?all=true&limit=-1')).json()).toHaveLength(before)
  })

  test.each([
    ['another password of the same length', basic('a'.repeat(64))],
    ['an empty password', basic('')],
    ['all but the first character', basic(FULL.slice(1))],
    ['one character more', basic(`${FULL}f`)],
    ['a trailing newline', basic(`${FULL}\n`)],
    ['capital letters', basic(FULL.toUpperCase())],
    ['both passwords at once', basic(FULL + LIMITED)],
    ['the password as user name', basic('', FULL)],
    ['no colon', `Basic ${Buffer.from(FULL).toString('base64')}`],
    ['Bearer', `Bearer ${FULL}`],
    ['the bare password', FULL],
    ['half a base64 group', 'Basic A'],
    ['base64 that is not UTF-8', `Basic ${Buffer.from([0xff, 0xfe, 0x3a, 0xff]).toString('base64')}`],
    ['nothing after Basic', 'Basic'],
    ['an empty header', ''],
    ['the token of the controls', basic(CONTROL_TOKEN)],
  ])('S01: %s is 401, on an endpoint that reads and on one that pays', async (_name, authorization) => {
    for (const endpoint of [...FOR_BOTH.slice(0, 1), ...FULL_ONLY.slice(0, 1)])
      expectUnauthorized(await call(endpoint, authorization))
  })

  test.each(['', 'phoenix-cli', 'full-access', 'nobody', 'Jürgen ₿', LIMITED])(
    'S02: the user name "%s" is ignored',
    async (user) => {
      const payer = FULL_ONLY[0] as Endpoint
      for (const endpoint of ENDPOINTS) expect((await call(endpoint, basic(FULL, user))).status).toBe(endpoint.passes)
      expectUnauthorized(await call(payer, basic(LIMITED, user)))
      expect((await call(FOR_BOTH[0] as Endpoint, basic(LIMITED, user))).status).toBe(200)
    },
  )

  test.each(FULL_ONLY)('S03: the limited password on $path is 401, the full one passes', async (endpoint) => {
    expectUnauthorized(await call(endpoint, basic(LIMITED)))
    expect((await call(endpoint, basic(FULL))).status).toBe(endpoint.passes)
  })

  test.each(FOR_BOTH)('S04: the limited password passes on $verb $path as the full one does', async (endpoint) => {
    expect((await call(endpoint, basic(LIMITED))).status).toBe(endpoint.passes)
    expect((await call(endpoint, basic(FULL))).status).toBe(endpoint.passes)
  })

  test('S04: the limited password opens the websocket', async () => {
    const socket = new WebSocket(`ws://127.0.0.1:${node.port}/websocket`, { headers: { authorization: basic(LIMITED) } })
    await once(socket, 'open')
    socket.terminate()
  })

  test('S04: the limited password sees payments, preimages included', async () => {
    const { paymentHash } = await node.invoice()
    const found = (await node.get(`/payments/incoming/${paymentHash}`, LIMITED)).json()
    expect(found).toMatchObject({ paymentHash, isPaid: false })
    expect(found.preimage).toMatch(/^[0-9a-f]{64}$/)
  })
})

describe('the control port needs its own token', () => {
  test.each([
    ['full', FULL],
    ['limited', LIMITED],
    ['an empty', ''],
  ])('%s phoenixd password gives no access, neither as a token nor as a password', async (_name, password) => {
    const before = await send(node.controlPort, 'GET', '/state', { headers: { authorization: `Bearer ${CONTROL_TOKEN}` } })
    expect(before.status).toBe(200)
    for (const verb of ['fund', 'clock', 'peer', 'fee-credit', 'payments', 'answers', 'explorer', 'fault', 'crash', 'receive']) {
      expect((await node.control(verb, { amountSat: 1, advanceSeconds: 1, fault: 'crash' }, password)).status).toBe(401)
    }
    const headers = { authorization: basic(password), 'content-type': 'application/json' }
    expect((await send(node.controlPort, 'POST', '/fund', { headers, body: '{"amountSat":1}' })).status).toBe(401)
    expect((await send(node.controlPort, 'GET', '/state', { headers })).status).toBe(401)
    expect(await node.balance()).toEqual({ balanceSat: 0, feeCreditSat: 0 })
  })

  test.each([
    'state',
    'fund',
    'clock',
    'peer',
    'fee-credit',
    'payments/hold',
    'answers',
    'explorer',
    'fault',
    'crash',
    'receive',
  ])('the phoenixd API has no /%s', async (verb) => {
    expectSentence(await node.post(`/${verb}`), 404, UNKNOWN_ENDPOINT)
    const headers = { authorization: `Bearer ${CONTROL_TOKEN}` }
    expectSentence(await send(node.port, 'POST', `/${verb}`, { headers }), 404, UNKNOWN_ENDPOINT)
  })
})

describe('errors', () => {
  const pathOf = (endpoint: Endpoint): string => endpoint.path.split('?')[0] ?? ''

  test.each([
    '/',
    '/nope',
    '/GetInfo',
    '/payments',
    '/payments/sideways',
    '/getinfo/x',
    '/websockets',
    '/phoenix.conf',
    '/..%2fseed.dat',
    ...ENDPOINTS.map((endpoint) => `${pathOf(endpoint)}/x/y`),
  ])('S05: %s is unknown, with any credentials', async (path) => {
    for (const method of ['GET', 'POST']) {
      expectSentence(await send(node.port, method, path), 404, UNKNOWN_ENDPOINT)
      const headers = { authorization: basic(FULL) }
      expectSentence(await send(node.port, method, path, { headers }), 404, UNKNOWN_ENDPOINT)
    }
  })

  test.each(ENDPOINTS)('S06: $path with a verb other than $verb is 405', async (endpoint) => {
    const headers = { authorization: basic(FULL) }
    for (const method of [endpoint.verb === 'GET' ? 'POST' : 'GET', 'PUT', 'DELETE', 'PATCH']) {
      expectSentence(await send(node.port, method, pathOf(endpoint), { headers }), 405, WRONG_VERB)
    }
  })

  test.each([
    { path: '/nope', form: {}, status: 404 },
    { path: '/getinfo', form: {}, status: 405 },
    { path: '/createinvoice', form: {}, status: 400 },
    { path: '/createinvoice', form: { description: 'x', amountSat: 'abc' }, status: 400 },
    { path: '/createinvoice', form: { description: 'x', expirySeconds: '-1' }, status: 500 },
    { path: '/payinvoice', form: { invoice: 'lnbcrt1' }, status: 400 },
    { path: '/paylnaddress', form: { address: 'a@b.example', amountSat: '1' }, status: 500 },
    { path: '/lnurlpay', form: { lnurl: 'x' }, status: 500 },
  ])('S07: the $status of $path is text, not JSON, even if the client asks for JSON', async ({ path, form, status }) => {
    const headers = {
      authorization: basic(FULL),
      accept: 'application/json',
      'content-type': 'application/x-www-form-urlencoded',
    }
    const answer = await send(node.port, 'POST', path, { headers, body: new URLSearchParams(form).toString() })
    expect([answer.status, answer.headers['content-type']]).toEqual([status, 'text/plain; charset=UTF-8'])
    expect(answer.text).not.toBe('')
    expect(() => answer.json()).toThrow(SyntaxError)
  })

  test('S07: the 404 of a payment that does not exist is text, too', async () => {
    expectSentence(await node.get(`/payments/incoming/${HASH}`), 404, 'Not found')
  })

  test.each(READING_A_FORM)('S08: $path rejects JSON (400), text and a body without a type (415)', async ({ path }) => {
    const post = (type: string | undefined, body: string): Promise<Answer> =>
      send(node.port, 'POST', path, { headers: { authorization: basic(FULL), ...(type ? { 'content-type': type } : {}) }, body })
    for (const type of ['application/json', 'application/json; charset=utf-8']) {
      const json = await post(type, '{"description":"x"}')
      expect([json.status, json.headers['content-type']]).toEqual([400, 'text/plain; charset=UTF-8'])
      expect(json.text).toMatch(/^Failed to convert request body to \S.*Parameters$/)
    }
    for (const type of ['text/plain', 'application/octet-stream', undefined]) {
      const other = await post(type, 'description=x')
      expect([other.status, other.headers['content-type']]).toEqual([415, 'text/plain; charset=UTF-8'])
      expect(other.text).toMatch(/^Cannot transform this request's content to \S.*Parameters$/)
    }
  })
})

describe('parameters', () => {
  async function multipart(fields: Form): Promise<{ headers: Record<string, string>; body: Buffer }> {
    const form = new FormData()
    for (const [name, value] of Object.entries(fields)) form.set(name, value)
    const encoded = new Response(form)
    const headers = { authorization: basic(FULL), 'content-type': encoded.headers.get('content-type') ?? '' }
    return { headers, body: Buffer.from(await encoded.arrayBuffer()) }
  }

  test.each(['a coffee', '', 'Grüße "&=+% ₿ 😀', 'two\r\nlines', 'x'.repeat(128)])(
    'S09: multipart/form-data is accepted; the description %j arrives unchanged',
    async (description) => {
      const form = await multipart({ description, amountSat: '7', externalId: 'ex-1', expirySeconds: '60' })
      const made = await send(node.port, 'POST', '/createinvoice', form)
      expect(made.status).toBe(200)
      expect(made.json().amountSat).toBe(7)
      const found = await node.incoming(made.json().paymentHash)
      expect(found).toMatchObject({ description, requestedSat: 7, externalId: 'ex-1' })
      expect(found.expiresAt - found.createdAt).toBe(60_000)
    },
  )

  test('S09: a multipart body as written by curl -F is accepted', async () => {
    const lines = ['--XX', 'Content-Disposition: form-data; name="invoice"', '', invoice, '--XX--', '']
    const headers = { authorization: basic(FULL), 'content-type': 'multipart/form-data; boundary=XX' }
    const answer = await send(node.port, 'POST', '/decodeinvoice', { headers, body: lines.join('\r\n') })
    expect([answer.status, answer.json().description]).toEqual([200, 'test'])
  })

  test.each([
    { path: '/payinvoice', form: {}, name: 'invoice' },
    { path: '/payinvoice', form: { amountSat: '5' }, name: 'invoice' },
    { path: '/decodeinvoice', form: {}, name: 'invoice' },
    { path: '/payoffer', form: { amountSat: '5' }, name: 'offer' },
    { path: '/decodeoffer', form: {}, name: 'offer' },
    { path: '/payoffer', form: { offer }, name: 'amountSat' },
    { path: '/paylnaddress', form: { address: 'a@b.example' }, name: 'amountSat' },
    { path: '/lnurlpay', form: {}, name: 'lnurl' },
    { path: '/lnurlwithdraw', form: {}, name: 'lnurl' },
    { path: '/lnurlauth', form: {}, name: 'lnurl' },
    { path: '/bumpfee', form: {}, name: 'feerateSatByte' },
    { path: '/closechannel', form: {}, name: 'channelId' },
    { path: '/closechannel', form: { channelId: HASH }, name: 'address' },
    { path: '/closechannel', form: { channelId: HASH, address: ADDRESS }, name: 'feerateSatByte' },
  ])('S10: $path with $form lacks $name', async ({ path, form, name }) => {
    expectSentence(await node.post(path, form), 400, `Request parameter ${name} is missing`)
  })

  test('S10: /estimateliquidityfees without a query lacks amountSat', async () => {
    expectSentence(await node.get('/estimateliquidityfees'), 400, 'Request parameter amountSat is missing')
  })

  test('S10: a POST takes its parameters from the body, not from the query', async () => {
    const answer = await node.post(`/decodeinvoice?invoice=${invoice}`)
    expectSentence(answer, 400, 'Request parameter invoice is missing')
  })

  test('unknown parameters are ignored', async () => {
    expect((await node.post('/createinvoice', { description: 'x', colour: 'blue' })).status).toBe(200)
    expect((await node.get('/getinfo?colour=blue')).status).toBe(200)
  })

  test.each([
    'abc',
    '',
    ' ',
    '1.5',
    '1e3',
    '0x10',
    ' 1',
    '1 ',
    '1_000',
    '--1',
    '+',
    '9223372036854775808',
    '-9223372036854775809',
  ])('S11: amountSat=%j is not an integer', async (amountSat) => {
    const sentence = "Request parameter amountSat couldn't be parsed/converted to integer"
    expectSentence(await node.post('/createinvoice', { description: 'x', amountSat }), 400, sentence)
    expectSentence(await node.post('/payinvoice', { invoice, amountSat }), 400, sentence)
  })

  test.each([
    { path: '/createinvoice', form: { description: 'x', expirySeconds: 'abc' }, name: 'expirySeconds', type: 'integer' },
    { path: '/createoffer', form: { description: 'x', amountSat: 'abc' }, name: 'amountSat', type: 'integer' },
    { path: '/payoffer', form: { offer, amountSat: 'abc' }, name: 'amountSat', type: 'integer' },
    { path: '/paylnaddress', form: { address: 'a@b.example', amountSat: 'abc' }, name: 'amountSat', type: 'integer' },
    { path: '/lnurlpay', form: { lnurl: LNURL, amountSat: 'abc' }, name: 'amountSat', type: 'integer' },
    { path: '/bumpfee', form: { feerateSatByte: 'abc' }, name: 'feerateSatByte', type: 'integer' },
    { path: '/createinvoice', form: { descriptionHash: 'abc' }, name: 'descriptionHash', type: 'hex32' },
    { path: '/closechannel', form: { channelId: 'abc' }, name: 'channelId', type: 'hex32' },
    { path: '/payinvoice', form: { invoice: 'abc' }, name: 'invoice', type: 'bolt11invoice' },
    { path: '/decodeinvoice', form: { invoice: '' }, name: 'invoice', type: 'bolt11invoice' },
    { path: '/payoffer', form: { offer: 'abc', amountSat: '1' }, name: 'offer', type: 'offer' },
    { path: '/decodeoffer', form: { offer: '' }, name: 'offer', type: 'offer' },
    { path: '/paylnaddress', form: { address: 'abc', amountSat: '1' }, name: 'address', type: 'username@domain' },
  ])('S11: $path with $form: $name is not of type $type', async ({ path, form, name, type }) => {
    expectSentence(await node.post(path, form), 400, `Request parameter ${name} couldn't be parsed/converted to ${type}`)
  })

  test.each([
    { path: '/estimateliquidityfees?amountSat=abc', name: 'amountSat', type: 'integer' },
    ...['from', 'to', 'limit', 'offset'].flatMap((name) => [
      { path: `/payments/incoming?${name}=abc`, name, type: 'integer' },
      { path: `/payments/outgoing?${name}=abc`, name, type: 'integer' },
    ]),
    { path: '/payments/outgoing/abc', name: 'uuid', type: 'uuid' },
    { path: '/payments/outgoingbyhash/abc', name: 'paymentHash', type: 'hex32' },
  ])('S11: GET $path: $name is not of type $type', async ({ path, name, type }) => {
    expectSentence(await node.get(path), 400, `Request parameter ${name} couldn't be parsed/converted to ${type}`)
  })

  test.each(['from', 'to'])('S11: POST /export reads %s from the query', async (name) => {
    const sentence = `Request parameter ${name} couldn't be parsed/converted to integer`
    expectSentence(await node.post(`/export?${name}=abc`), 400, sentence)
    expect((await node.post('/export', { [name]: 'abc' })).status).toBe(200)
  })
})
