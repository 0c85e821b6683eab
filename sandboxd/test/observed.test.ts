import { once } from 'node:events'
import { connect } from 'node:net'
import { beforeAll, describe, expect, test } from 'vitest'
import { basic, FULL, send, startNetwork, type TestNode } from './harness.ts'

/** How a running phoenixd 0.8.0 differs from its documentation and source. P1, P2 … are lines of docs/contract/phoenixd.md. */

let payer: TestNode
let payee: TestNode
beforeAll(async () => {
  ;({ payer, payee } = await startNetwork())
})

const FORM = 'application/x-www-form-urlencoded'
const MISSING = 'Must provide either a description or descriptionHash'
const NO_LNURL = 'cannot be parsed as a bech32 or as a human readable lnurl'
const HASH = 'ab'.repeat(32)

const post = (path: string, body: string, contentType?: string) =>
  send(payee.port, 'POST', path, {
    headers: { authorization: basic(FULL), ...(contentType === undefined ? {} : { 'content-type': contentType }) },
    body,
  })

test.each([
  ['P3: names in a form are case-insensitive', 'Description=a&AMOUNTSAT=5', 200, '"amountSat": 5'],
  ['the first of two values counts', 'description=a&amountSat=5&amountSat=6', 200, '"amountSat": 5'],
  ['P13: a name without "=" is missing', 'description', 400, MISSING],
  ['P13: the same with another parameter', 'description&amountSat=5', 400, MISSING],
  ['P14: an escape that ends too early', 'description=100%', 500, 'Incomplete trailing HEX escape: %, in description=100% at 15'],
  ['P14: an invalid escape', 'description=%zz', 500, 'Wrong HEX escape: %zz, in description=%zz, at 12'],
  ['P11: a hash of 33 bytes', `descriptionHash=${HASH}cd`, 200, '"serialized"'],
  ['P11: a hash of 31 bytes', `descriptionHash=${HASH.slice(2)}`, 400, "descriptionHash couldn't be parsed/converted to hex32"],
  [
    'P11: a hash of 32 bytes and a half',
    `descriptionHash=${HASH}a`,
    400,
    "descriptionHash couldn't be parsed/converted to hex32",
  ],
])('createinvoice: %s', async (_name, body, status, text) => {
  const answer = await post('/createinvoice', body, FORM)
  expect([answer.status, answer.text]).toEqual([status, expect.stringContaining(text)])
})

test('P3: names in a query are case-insensitive', async () => {
  await payee.invoice()
  expect((await payee.get('/payments/incoming?ALL=true&LIMIT=1')).json()).toHaveLength(1)
})

test('P11: only the first 32 bytes of a longer hash count, even if it starts with 0x', async () => {
  const { paymentHash } = await payee.invoice()
  for (const longer of [`${paymentHash}00`, `0x${paymentHash}`])
    expect((await payee.get(`/payments/incoming/${longer}`)).json()).toMatchObject({ paymentHash })
})

test.each([
  [
    'P24: JSON',
    'application/json',
    '{"description":"x"}',
    400,
    'Failed to convert request body to class io.ktor.http.Parameters',
  ],
  ['P24: JSON without a body', 'application/json', '', 415, "Cannot transform this request's content to io.ktor.http.Parameters"],
  ['P25: an invalid type', 'garbage', 'description=x', 400, 'Illegal Content-Type header format: garbage'],
  [
    'P26: multipart without a boundary',
    'multipart/form-data',
    'description=x',
    500,
    "Failed to parse multipart: Content-Type's boundary parameter is missing",
  ],
  [
    'P26: multipart that ends too early',
    'multipart/form-data; boundary=B',
    '--B\r\nContent-Disposition: form-data; name="description"\r\n\r\nmulti\r\n--B\r\nContent-Disposition',
    500,
    'Unexpected end of stream after reading 19 characters',
  ],
  ['P26: multipart without a body', 'multipart/form-data; boundary=B', '', 400, MISSING],
])('%s', async (_name, contentType, body, status, text) => {
  const answer = await post('/createinvoice', body, contentType)
  expect([answer.status, answer.text]).toEqual([status, text])
})

test.each([
  ['*/*', 200, undefined],
  ['application/json', 200, undefined],
  ['application/json;q=0.5, text/plain', 200, undefined],
  ['text/html', 406, ''],
  ['text/plain', 406, ''],
  ['application/xml', 406, ''],
  ['image/png', 406, ''],
  ['garbage', 400, 'Illegal Accept header format: garbage'],
])('P20: JSON with Accept %s is %i; text ignores Accept', async (accept, status, text) => {
  const headers = { authorization: basic(FULL), accept }
  const json = await send(payee.port, 'GET', '/getinfo', { headers })
  expect([json.status, status === 200 ? undefined : json.text]).toEqual([status, text])
  expect((await send(payee.port, 'GET', '/getoffer', { headers })).status).toBe(200)
  expect((await send(payee.port, 'GET', '/nope', { headers })).status).toBe(404)
})

test.each([
  ['Basic !!!!', 400, 'Invalid auth header'],
  ['Basic ***', 400, 'Invalid auth header'],
  ['Basic', 401, expect.stringMatching(/^Invalid authentication/)],
  ['@@@', 401, expect.stringMatching(/^Invalid authentication/)],
  ['Bearer abc', 401, expect.stringMatching(/^Invalid authentication/)],
  ['Digest username="a", response="b"', 401, expect.stringMatching(/^Invalid authentication/)],
])('P21: the credentials %s are %i', async (authorization, status, text) => {
  const answer = await send(payee.port, 'GET', '/getinfo', { headers: { authorization } })
  expect([answer.status, answer.text]).toEqual([status, text])
})

test('P22: /websocket without an upgrade is 400 and empty, whatever the verb and the password', async () => {
  for (const method of ['GET', 'POST']) {
    for (const headers of [{}, { authorization: basic(FULL) }, { authorization: basic('wrong') }]) {
      const answer = await send(payee.port, method, '/websocket', { headers })
      expect([answer.status, answer.text]).toEqual([400, ''])
    }
  }
})

test('P15: an offer for a negative amount is accepted', async () => {
  expect((await payee.post('/createoffer', { amountSat: -1, description: 'x' })).text).toMatch(/^lno1/)
})

test('P16: an amount to pay that overflows is not positive', async () => {
  const { serialized, paymentHash } = await payee.invoice()
  const reason = 'payment amount must be positive'
  expect(await payer.pay(serialized, { amountSat: '9223372036854775807' })).toEqual({ paymentHash, reason })
})

test('P17: an offer gets no response', async () => {
  const offer = (await payee.get('/getoffer')).text
  const answer = (await payer.post('/payoffer', { offer, amountSat: 5 })).json()
  expect(answer).toEqual({ offerId: expect.stringMatching(/^[0-9a-f]{64}$/), reason: 'no response to the invoice request' })
})

test.each(['-1', '0', '99999999999', '9223372036854775807'])('P18: there is no liquidity of %s sat', async (amountSat) => {
  const answer = await payee.get(`/estimateliquidityfees?amountSat=${amountSat}`)
  expect([answer.status, answer.text]).toEqual([400, `no available funding rates for amount=${amountSat} sat`])
})

test.each([
  ['P28', '/lnurlpay', { lnurl: 'lnurlp://127.0.0.1:9/x?tag=payRequest' }, 500, NO_LNURL],
  ['P28', '/lnurlwithdraw', { lnurl: 'lnurlw://127.0.0.1:9/x?tag=withdrawRequest' }, 500, NO_LNURL],
  ['P28', '/lnurlauth', { lnurl: `keyauth://127.0.0.1:9/x?tag=login&k1=${HASH}` }, 500, NO_LNURL],
  ['P29', '/lnurlpay', { lnurl: 'https://service.com/api' }, 400, 'could not connect to service.com'],
  [
    'P29',
    '/paylnaddress',
    { address: '₿a@b.invalid', amountSat: 5 },
    500,
    'cannot resolve address: could not connect to b.invalid',
  ],
  [
    'P30',
    '/sendtoaddress',
    { address: 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080', amountSat: 90_000_000, feerateSatByte: 2 },
    200,
    'no channel available',
  ],
])('%s: %s %j', async (_rule, path, form, status, text) => {
  const answer = await payer.post(path, form as Record<string, string | number>)
  expect([answer.status, answer.text]).toEqual([status, text])
})

describe('P1: concurrent refused payments that get no response', () => {
  test('wait until the switch is off; other calls and payments continue, and nothing is paid twice', async () => {
    const paid = await payee.invoice({ amountSat: 21 })
    await payer.pay(paid.serialized)
    const before = await payer.balance()
    await payer.control('payments', { payments: 'lose' })
    let answered = false
    const lost = payer.pay(paid.serialized).finally(() => {
      answered = true
    })
    const other = await payee.invoice({ amountSat: 1 })
    expect(await payer.pay(other.serialized)).toMatchObject({
      paymentHash: other.paymentHash,
      paymentPreimage: expect.any(String),
    })
    expect(answered).toBe(false)
    expect((await payer.get(`/payments/outgoingbyhash/${paid.paymentHash}`)).json()).toMatchObject({ isPaid: true })
    await payer.control('payments', { payments: 'normal' })
    expect(await lost).toEqual({ paymentHash: paid.paymentHash, reason: 'this invoice has already been paid' })
    expect((await payer.balance()).balanceSat).toBe(before.balanceSat - 1 - 4)
  })
})

describe('the bytes of HTTP', () => {
  const AUTHORIZATION = `Authorization: ${basic(FULL)}\r\n`

  /** Sends these bytes and returns everything received until the other side closes. */
  async function raw(bytes: string): Promise<string> {
    const socket = connect(payee.port, '127.0.0.1')
    let text = ''
    socket.setEncoding('latin1')
    socket.on('data', (chunk: string) => {
      text += chunk
    })
    socket.write(bytes)
    await once(socket, 'close')
    return text
  }
  const headOf = (text: string): string[] => text.slice(0, text.indexOf('\r\n\r\n')).split('\r\n')

  test.each([
    ['JSON', 'GET /getbalance', 200, ['Content-Length', 'Content-Type']],
    ['text', 'GET /getoffer', 200, ['Content-Length', 'Content-Type']],
    ['an error', 'GET /nope', 404, ['Content-Length', 'Content-Type']],
    ['an empty error', 'GET /websocket', 400, ['Content-Length']],
  ])('%s has these headers and no others', async (_name, request, status, names) => {
    const text = await raw(
      `${request} HTTP/1.1\r\nHost: x\r\n${AUTHORIZATION}\r\n${request} HTTP/1.1\r\nConnection: close\r\n${AUTHORIZATION}\r\n`,
    )
    const [line, ...headers] = headOf(text)
    expect(line).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    expect(headers.map((header) => header.split(':')[0]).sort()).toEqual(names)
    // Two responses show that the connection stayed open after the first.
    expect(text.match(/HTTP\/1\.1 \d{3} /g)).toHaveLength(2)
  })

  test('a request without a password is challenged in the WWW-Authenticate header, with this spelling', async () => {
    const text = await raw('GET /getinfo HTTP/1.1\r\nConnection: close\r\n\r\n')
    expect(headOf(text)).toContain('WWW-Authenticate: Basic realm="Ktor Server", charset=UTF-8')
  })

  test('neither Host nor HTTP/1.1 is needed, and an HTTP/1.0 connection stays open on request', async () => {
    const keep = `GET /getbalance HTTP/1.0\r\nConnection: keep-alive\r\n${AUTHORIZATION}\r\n`
    const text = await raw(`${keep}GET /getbalance HTTP/1.0\r\n${AUTHORIZATION}\r\n`)
    expect(text.match(/HTTP\/1\.\d 200 /g)).toHaveLength(2)
  })

  test('a path is not normalized', async () => {
    expect((await raw(`GET /x/../getbalance HTTP/1.1\r\nConnection: close\r\n${AUTHORIZATION}\r\n`)).slice(0, 12)).toBe(
      'HTTP/1.1 404',
    )
  })

  test.each([
    ['a request line', `GET /getinfo?${'a'.repeat(8_200)} HTTP/1.1\r\n\r\n`],
    ['a header', `GET /getinfo HTTP/1.1\r\nCookie: ${'a'.repeat(8_200)}\r\n\r\n`],
    ['a very long header', `GET /getinfo HTTP/1.1\r\nCookie: ${'a'.repeat(200_000)}\r\n\r\n`],
  ])('%s of more than 8192 characters is refused, and the connection closed', async (_name, bytes) => {
    const text = await raw(bytes)
    expect([headOf(text)[0], text.split('\r\n\r\n')[1]]).toEqual([
      'HTTP/1.0 400 Bad Request',
      'Line exceeds limit of 8192 characters',
    ])
  })

  test('headers may be longer than that together', async () => {
    const headers = Array.from({ length: 6 }, (_, at) => `X-${at}: ${'a'.repeat(8_000)}\r\n`).join('')
    const text = await raw(`GET /getbalance HTTP/1.1\r\nConnection: close\r\n${AUTHORIZATION}${headers}\r\n`)
    expect(headOf(text)[0]).toBe('HTTP/1.1 200 OK')
  })

  test('input that is not HTTP gets an error', async () => {
    const text = await raw('HELLO\r\n\r\n')
    expect([headOf(text)[0], text.split('\r\n\r\n')[1]]).toEqual(['HTTP/1.0 400 Bad Request', 'Failed to parse version: HELLO'])
  })
})
