import { once } from 'node:events'
import { connect } from 'node:net'
import { beforeAll, describe, expect, test } from 'vitest'
import { type Answer, eventually, type Server, sendRaw, startServer } from '../support/server.ts'

let server: Server

beforeAll(async () => {
  server = await startServer({ store: 'embedded', env: { NODE_PRICE_SAT_PER_DAY: '0' } })
})

const JSON_TYPE = 'application/json; charset=utf-8'

/** The shape of every error, with the id that its log lines contain. */
function expectProblem(answer: Answer, status: number, code: string, says: string | RegExp = /./): void {
  expect([answer.status, answer.headers['content-type']]).toEqual([status, JSON_TYPE])
  expect(answer.json()).toEqual({ error: expect.objectContaining({ code, message: expect.stringMatching(says) }) })
  expect(answer.headers['x-request-id']).toMatch(/^[A-Za-z0-9._-]{1,64}$/)
  expect(answer.text).not.toMatch(/\n\s+at /)
}

const newAccount = (body: string | Buffer, headers: Record<string, string> = {}): Promise<Answer> =>
  server.operator('POST', '/accounts', { body, headers: { 'content-type': 'application/json', ...headers } })

const withCredit = (text: string): string => `{"name":"test","creditSat":${text}}`

describe('C1: JSON in and out', () => {
  test('C1: an answer is application/json; charset=utf-8', async () => {
    const answer = await server.send('GET', '/v1/api-key', { token: server.firstRun.apiKey })
    expect([answer.status, answer.headers['content-type']]).toEqual([200, JSON_TYPE])
  })

  test('C1: 204 has no body and no content type', async () => {
    const { accountId, id } = await server.newKey()
    const answer = await server.operator('DELETE', `/accounts/${accountId}/keys/${id}`)
    expect([answer.status, answer.text, answer.headers['content-type']]).toEqual([204, '', undefined])
  })

  test('C1: text is returned as it was sent, in every script', async () => {
    const name = 'Ünïcode 節点 🟠 "\\/'
    const account = await server.newAccount({ name })
    expect(account.name).toBe(name)
    expect((await server.operator('GET', `/accounts/${account.id}`)).json().name).toBe(name)
  })
})

describe('C2: every error has one shape', () => {
  test.each(['{', '', ' ', '{"name":"x",}', "{'name':'x'}", 'name=x', '{"name":"x"}x', 'undefined', 'NaN', '\ufeff{"name":"x"}'])(
    'C2: 400 for a body of %j, which is not JSON',
    async (body) => expectProblem(await newAccount(body), 400, 'bad_request'),
  )

  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'application/jsonp',
    'text/json',
    'multipart/form-data; boundary=x',
    '',
  ])('C2: 415 for a body of type %j', async (type) =>
    expectProblem(await newAccount('{"name":"x"}', { 'content-type': type }), 415, 'unsupported_media_type'),
  )

  test('C2: 415 for a body without a type', async () => {
    expectProblem(await server.operator('POST', '/accounts', { body: '{"name":"x"}' }), 415, 'unsupported_media_type')
  })

  test.each(['application/json', 'Application/JSON', 'application/json; charset=utf-8', 'application/json;charset=UTF-8'])(
    'C2: a body of type %s is accepted as JSON',
    async (type) => expect((await newAccount('{"name":"x"}', { 'content-type': type })).status).toBe(201),
  )

  test('C2: 413 for one byte more than 64 KiB; 64 KiB are read', async () => {
    const padded = (bytes: number): string => '{"name":"x"}'.padEnd(bytes, ' ')
    expect((await newAccount(padded(65_536))).status).toBe(201)
    expectProblem(await newAccount(padded(65_537)), 413, 'payload_too_large')
  })

  test('C2: 413 for a body over 64 KiB that does not declare its length', async () => {
    const head = `POST /operator/v1/accounts HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${server.operatorToken}\r\n`
    const chunk = `${(70_000).toString(16)}\r\n${' '.repeat(70_000)}\r\n`
    const text = await sendRaw(
      server.port,
      `${head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${chunk}0\r\n\r\n`,
    )
    expect(text).toMatch(/^HTTP\/1\.1 413 /)
    expect(text).toContain('"code":"payload_too_large"')
  })

  test.each([
    '/v1',
    '/v1/',
    '/v1/api-key/',
    '/v1/nothing',
    '/v2/api-key',
    '/operator/v1',
    '/V1/api-key',
    '/v1//api-key',
    '/docs/nothing',
  ])('C2: 404 for the unknown path %s', async (path) => expectProblem(await server.send('GET', path), 404, 'not_found'))

  test('C2: 404 for an unknown path, whatever its body and content type', async () => {
    const body = { body: 'x', headers: { 'content-type': 'text/plain' } }
    expectProblem(await server.send('POST', '/v1/nothing', body), 404, 'not_found')
    expectProblem(
      await server.send('POST', '/v1/nothing', { ...body, headers: { 'content-type': 'application/json' } }),
      404,
      'not_found',
    )
  })

  test.each([
    { method: 'POST', path: '/v1/api-key', allow: 'GET, HEAD' },
    { method: 'OPTIONS', path: '/v1/api-key', allow: 'GET, HEAD' },
    { method: 'PROPFIND', path: '/v1/api-key?x=1', allow: 'GET, HEAD' },
    { method: 'DELETE', path: '/healthz', allow: 'GET, HEAD' },
    { method: 'PUT', path: '/operator/v1/accounts', allow: 'GET, HEAD, POST' },
    { method: 'PUT', path: '/operator/v1/accounts/acct_x/keys/key_x', allow: 'DELETE, PATCH' },
    { method: 'GET', path: '/operator/v1/accounts/acct_x/keys/key_x', allow: 'DELETE, PATCH' },
  ])('C2: 405 for $method $path, which takes $allow', async ({ method, path, allow }) => {
    const answer = await server.send(method, path)
    expectProblem(answer, 405, 'method_not_allowed')
    expect(answer.headers.allow).toBe(allow)
  })

  test('C2: 405 for a wrong method, whatever the body', async () => {
    const answer = await server.send('POST', '/v1/api-key', { body: 'x', headers: { 'content-type': 'text/plain' } })
    expectProblem(answer, 405, 'method_not_allowed')
  })

  test.each(['/v1/%', '/v1/%zz', '/%c0%af', '/operator/v1/accounts/%ff', '/operator/v1/accounts/%ed%a0%80'])(
    'C2: 400 for the path %s, which cannot be decoded',
    async (path) => expectProblem(await server.send('GET', path, { token: server.operatorToken }), 400, 'bad_request'),
  )

  test('C2: a path with a segment of 10,000 characters is 404', async () => {
    expectProblem(await server.operator('GET', `/accounts/${'a'.repeat(10_000)}`), 404, 'not_found')
  })

  test('C2: 500 reveals only the id under which the log has the cause', async () => {
    const sql = server.sql()
    await sql`ALTER VIEW activity_log RENAME TO elsewhere`
    const answer = await server.operator('GET', `/accounts/${server.firstRun.accountId}/activity`, {
      headers: { 'x-request-id': 'broken-1' },
    })
    await sql`ALTER VIEW elsewhere RENAME TO activity_log`
    expectProblem(answer, 500, 'internal_error')
    expect(answer.json().error.requestId).toBe('broken-1')
    expect(answer.text).not.toMatch(/activity|relation|42P01/)
    await server.printed(/"reqId":"broken-1".*relation \\"activity_log\\" does not exist/, 'stderr')
  })
})

describe('C2: invalid input on the socket gets the same shape, and never a 500', () => {
  const nonsense: [title: string, bytes: string][] = [
    ['no HTTP', 'hello\r\n\r\n'],
    ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
    ['an unknown method', 'FETCH /v1/api-key HTTP/1.1\r\nHost: localhost\r\n\r\n'],
    ['an unknown version', 'GET /v1/api-key HTTP/9.9\r\nHost: localhost\r\n\r\n'],
    ['no host', 'GET /v1/api-key HTTP/1.1\r\n\r\n'],
    ['a header without a colon', 'GET /v1/api-key HTTP/1.1\r\nHost: localhost\r\nnonsense\r\n\r\n'],
    ['a header with a space in its name', 'GET /v1/api-key HTTP/1.1\r\nHost: localhost\r\nX Y: z\r\n\r\n'],
    ['a NUL in a header', 'GET /v1/api-key HTTP/1.1\r\nHost: localhost\r\nX: \x00\r\n\r\n'],
    ['20,000 bytes of headers', `GET /v1/api-key HTTP/1.1\r\nHost: localhost\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`],
    ['a path of 20,000 bytes', `GET /${'x'.repeat(20_000)} HTTP/1.1\r\nHost: localhost\r\n\r\n`],
    ['an invalid path', 'GET nonsense HTTP/1.1\r\nHost: localhost\r\n\r\n'],
    ['a full URL as the path', 'GET http://other.example/v1/api-key HTTP/1.1\r\nHost: localhost\r\n\r\n'],
    ['raw UTF-8 in the path', 'GET /v1/\xc3\xa9 HTTP/1.1\r\nHost: localhost\r\n\r\n'],
    ['a length that is not a number', 'POST /v1/api-key HTTP/1.1\r\nHost: localhost\r\nContent-Length: many\r\n\r\n'],
    ['a negative length', 'POST /v1/api-key HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n'],
    ['two lengths', 'POST /v1/api-key HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'],
    [
      'a length and chunks (smuggling)',
      'POST /v1/api-key HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    ['an invalid chunk size', 'POST /v1/api-key HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n'],
    ['an unknown expectation', 'GET /v1/api-key HTTP/1.1\r\nHost: localhost\r\nExpect: miracles\r\nConnection: close\r\n\r\n'],
    [
      'an upgrade to an unknown protocol',
      'GET /v1/api-key HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade, close\r\nUpgrade: tea\r\n\r\n',
    ],
    [
      'a Bearer token in Latin-1',
      'GET /v1/api-key HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \xe9\xff\r\nConnection: close\r\n\r\n',
    ],
  ]

  test.concurrent.each(nonsense)('C2: %s', async (_title, bytes) => {
    const text = await sendRaw(server.port, Buffer.from(bytes, 'latin1'))
    const [head = '', body = ''] = text.split('\r\n\r\n')
    expect(head).toMatch(/^HTTP\/1\.1 4\d\d /)
    expect(head).toMatch(/^content-type: application\/json; charset=utf-8$/im)
    expect(head).toMatch(/^x-request-id: [A-Za-z0-9._-]+$/im)
    expect(JSON.parse(body)).toEqual({ error: { code: expect.stringMatching(/^[a-z_]+$/), message: expect.any(String) } })
  })

  test('C2: afterwards, the service responds as before', async () => {
    expect((await server.send('GET', '/readyz')).status).toBe(200)
  })

  test('C2: a client that disconnects in the middle of a body affects no one else', async () => {
    const socket = connect(server.port, '127.0.0.1')
    socket.write(
      `POST /operator/v1/accounts HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: gone-1\r\nAuthorization: Bearer ${server.operatorToken}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"name":`,
    )
    await server.printed(/"reqId":"gone-1"/, 'stderr')
    socket.destroy()
    await once(socket, 'close')
    expect((await server.send('GET', '/readyz')).status).toBe(200)
    expect(server.stderr).not.toMatch(/"reqId":"gone-1".*internal error/)
  })
})

describe('C3: request ids', () => {
  test('C3: every response has its own, success or error', async () => {
    const ids = await Promise.all(
      ['/healthz', '/healthz', '/readyz', '/v1/api-key', '/nothing', '/docs', '/openapi.json', '/%'].map(
        async (path) => (await server.send('GET', path)).headers['x-request-id'],
      ),
    )
    for (const id of ids) expect(id).toMatch(/^req_[0-9a-hjkmnp-tv-z]{20}$/)
    expect(new Set(ids).size).toBe(ids.length)
  })

  test.each(['a', 'Az09._-', 'x'.repeat(64)])('C3: the client’s own %s is kept', async (id) => {
    const answer = await server.send('GET', '/healthz', { headers: { 'x-request-id': id } })
    expect(answer.headers['x-request-id']).toBe(id)
  })

  test.each(['', 'x'.repeat(65), 'a b', 'a/b', 'é', '{"a":1}', 'a,b'])('C3: %j is replaced', async (id) => {
    const answer = await server.send('GET', '/healthz', { headers: { 'x-request-id': id } })
    expect(answer.headers['x-request-id']).toMatch(/^req_/)
  })

  test('C3: two ids in one request are replaced by a new one', async () => {
    const answer = await server.send('GET', '/healthz', { headers: { 'x-request-id': ['one', 'two'] } })
    expect(answer.headers['x-request-id']).toMatch(/^req_/)
  })

  test('C3: the log has the same id, and neither token nor query', async () => {
    const headers = { 'x-request-id': 'find-me-1', cookie: 'session=hidden-cookie' }
    await server.send('GET', '/v1/api-key?secret=hidden-query', { headers, token: 'hidden-token' })
    await server.printed(/"reqId":"find-me-1".*"status":401/, 'stderr')
    expect(server.stderr).not.toContain('hidden-')
  })
})

describe('C4: the key is checked before anything else in the request', () => {
  const keyless: [title: string, options: { body?: string; headers?: Record<string, string> }][] = [
    ['no JSON', { body: '{', headers: { 'content-type': 'application/json' } }],
    ['the wrong type', { body: 'x', headers: { 'content-type': 'text/plain' } }],
    ['an unknown field', { body: '{"x":1}', headers: { 'content-type': 'application/json' } }],
    ['too much', { body: ' '.repeat(70_000), headers: { 'content-type': 'application/json' } }],
  ]
  test.each(keyless)('C4: without a token, %s is 401', async (_title, options) => {
    expectProblem(await server.send('POST', '/operator/v1/accounts', options), 401, 'unauthorized')
  })

  test('C4: an unknown query parameter is 401 without a key, and 400 with one', async () => {
    expectProblem(await server.send('GET', '/v1/api-key?x=1'), 401, 'unauthorized')
    expectProblem(await server.send('GET', '/v1/api-key?x=1', { token: server.firstRun.apiKey }), 400, 'bad_request', /"x"/)
  })

  test('C4: the body is checked before the resource is looked up', async () => {
    const answer = await server.operator('POST', '/accounts/acct_none/credit', { json: { amountSat: '5', reason: 'x' } })
    expectProblem(answer, 400, 'bad_request')
  })
})

describe('C5: nothing is coerced, nothing is ignored', () => {
  test.each(['1', '1.0', '1e0', '10e-1', '0', '-0', '9007199254'])('C5: %s is an integer', async (text) => {
    const answer = await newAccount(withCredit(text))
    expect([answer.status, answer.json().creditSat]).toEqual([201, Number(text) + 0])
  })

  test.each(['1.5', '"5"', '"1"', 'true', 'null', '[1]', '{}', '-1', '9007199255', '1e400', '""'])(
    'C5: %s is not a valid integer',
    async (text) => expectProblem(await newAccount(withCredit(text)), 400, 'bad_request', /"creditSat"/),
  )

  test.each([1, true, null, ['x'], { a: 'x' }])('C5: %j is not a string', async (name) => {
    expectProblem(await server.operator('POST', '/accounts', { json: { name } }), 400, 'bad_request', /"name"/)
  })

  test.each([0, 1, 'true', 'false', null, ''])('C5: %j is not a boolean', async (disabled) => {
    const { accountId, id } = await server.newKey()
    const answer = await server.operator('PATCH', `/accounts/${accountId}/keys/${id}`, { json: { disabled } })
    expectProblem(answer, 400, 'bad_request', /"disabled"/)
  })

  test('C5: a single value is not a list', async () => {
    const { id } = await server.newAccount()
    const answer = await server.operator('POST', `/accounts/${id}/keys`, { json: { name: 'x', scopes: 'nodes:read' } })
    expectProblem(answer, 400, 'bad_request', /"scopes"/)
  })

  test('C5: an unknown field is named, and nothing changes', async () => {
    const before = (await server.operator('GET', '/accounts')).json().accounts.length
    expectProblem(await newAccount('{"name":"x","colour":"red"}'), 400, 'bad_request', /"colour"/)
    expectProblem(await newAccount('{"name":"x","Name":"y"}'), 400, 'bad_request', /"Name"/)
    expect((await server.operator('GET', '/accounts')).json().accounts).toHaveLength(before)
  })

  test('C5: a missing field is named', async () => {
    expectProblem(await newAccount('{}'), 400, 'bad_request', /"name"/)
  })

  test.each(['/v1/api-key?colour=red', '/v1/api-key?=', '/v1/api-key?colour', '/v1/api-key?colour=1&colour=2'])(
    'C5: an unknown query parameter is refused: %s',
    async (path) =>
      expectProblem(await server.send('GET', path, { token: server.firstRun.apiKey }), 400, 'bad_request', /""|"colour"/),
  )

  test('C5: the operator API refuses unknown query parameters too', async () => {
    expectProblem(await server.operator('GET', '/accounts?colour=red'), 400, 'bad_request', /"colour"/)
    expectProblem(await server.operator('POST', '/accounts?colour=red', { json: { name: 'x' } }), 400, 'bad_request', /"colour"/)
  })

  test.each(['[]', '[{"name":"x"}]', '"name"', '1', 'true', 'null'])('C5: %s is not an object', async (body) => {
    expectProblem(await newAccount(body), 400, 'bad_request')
  })

  const bytes: [title: string, body: Buffer][] = [
    ['a byte that never occurs in UTF-8', Buffer.from('{"name":"\xff"}', 'latin1')],
    ['an overlong slash', Buffer.from('{"name":"\xc0\xaf"}', 'latin1')],
    ['half a character', Buffer.from('{"name":"\xe7\xaf"}', 'latin1')],
    ['a surrogate in UTF-8', Buffer.from('{"name":"\xed\xa0\x80"}', 'latin1')],
    ['UTF-16', Buffer.from('{"name":"x"}', 'utf16le')],
  ]
  test.each(bytes)('C5: %s is refused, not replaced', async (_title, body) => {
    expectProblem(await newAccount(body), 400, 'bad_request')
  })

  test.each(['{"name":"\\ud800"}', '{"name":"a\\udc00b"}', '{"name":"\\udc00\\ud800"}', '{"name":"x","\\ud800":1}'])(
    'C5: half a surrogate pair is refused: %s',
    async (body) => expectProblem(await newAccount(body), 400, 'bad_request'),
  )

  test('C5: a whole surrogate pair is a character', async () => {
    expect((await newAccount('{"name":"\\ud83d\\udfe0"}')).json().name).toBe('🟠')
  })

  test.each(['\\u0000', '\\n', '\\u007f', '\\u009f', ' ', '\\u3000', ''])('C5: a name of "%s" is refused', async (name) => {
    expectProblem(await newAccount(`{"name":"${name}"}`), 400, 'bad_request', /"name"/)
  })

  test('C5: a name has at most 100 characters, counted as people count them', async () => {
    expect((await server.operator('POST', '/accounts', { json: { name: '🟠'.repeat(100) } })).status).toBe(201)
    expectProblem(await server.operator('POST', '/accounts', { json: { name: 'x'.repeat(101) } }), 400, 'bad_request', /"name"/)
  })

  test('C5: a name of 60,000 spaces is refused quickly', async () => {
    // The fastest of several requests, because a stall of the machine is not slow parsing.
    let leastMs = Number.POSITIVE_INFINITY
    for (let time = 0; time < 5; time++) {
      const began = performance.now()
      expectProblem(await newAccount(`{"name":"${' '.repeat(60_000)}\\u0000"}`), 400, 'bad_request')
      leastMs = Math.min(leastMs, performance.now() - began)
    }
    expect(leastMs).toBeLessThan(3_000)
  })

  test.each(['['.repeat(32_000) + ']'.repeat(32_000), `${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`, '['.repeat(65_000)])(
    'C5: deep nesting is refused (%#)',
    async (body) => expectProblem(await newAccount(body), 400, 'bad_request'),
  )

  test.each([
    '{"name":"x","__proto__":{"creditSat":5}}',
    '{"__proto__":{"name":"x"}}',
    '{"name":"x","constructor":{"prototype":{"a":1}}}',
    '{"name":{"__proto__":null}}',
    '{"name":"x","\\u005f_proto__":1}',
  ])('C5: the prototype cannot be reached: %s', async (body) => {
    expectProblem(await newAccount(body), 400, 'bad_request')
  })
})

describe('C6: bodies that may be absent', () => {
  const revoke = async (options: { body?: string; headers?: Record<string, string> }): Promise<Answer> => {
    const { accountId, id } = await server.newKey()
    return server.operator('DELETE', `/accounts/${accountId}/keys/${id}`, options)
  }
  const json = { 'content-type': 'application/json' }

  test.each([{}, { body: '{}', headers: json }, { body: '', headers: json }, { headers: json }])(
    'C6: an action accepts %j',
    async (options) => expect((await revoke(options)).status).toBe(204),
  )

  test('C6: a body that is there must be JSON', async () => {
    expectProblem(await revoke({ body: 'x', headers: { 'content-type': 'text/plain' } }), 415, 'unsupported_media_type')
    expectProblem(await revoke({ body: '{', headers: json }), 400, 'bad_request')
  })
})

test('C7: times are whole Unix seconds', async () => {
  const before = Math.floor(Date.now() / 1000)
  const account = await server.newAccount()
  const [row] = (await server.operator('GET', `/accounts/${account.id}/activity`)).json().activity
  const after = Math.floor(Date.now() / 1000)
  for (const time of [account.createdAt, row.at]) {
    expect(Number.isInteger(time)).toBe(true)
    expect(time).toBeGreaterThanOrEqual(before)
    expect(time).toBeLessThanOrEqual(after)
  }
})

test('C8: ids are a prefix and 20 characters of Crockford’s base 32, and sort by creation', async () => {
  const accounts: string[] = []
  for (let index = 0; index < 5; index++) {
    accounts.push((await server.newAccount()).id)
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
  const key = await server.newKey()
  for (const id of accounts) expect(id).toMatch(/^acct_[0-9a-hjkmnp-tv-z]{20}$/)
  expect(key.id).toMatch(/^key_[0-9a-hjkmnp-tv-z]{20}$/)
  expect([...accounts].sort()).toEqual(accounts)
  expect(new Set(accounts).size).toBe(5)
})

describe('C9: resources of other accounts do not exist for the caller', () => {
  const strange = [
    'acct_0',
    'acct_00000000000000000000',
    'ACCT_00000000000000000000',
    '%00',
    '%F0%9F%9F%A0',
    '..%2f..',
    "'--",
    'x'.repeat(200),
  ]

  test.each(strange)('C9: the account %s is unknown, on every path', async (id) => {
    const answers = await Promise.all([
      server.operator('GET', `/accounts/${id}`),
      server.operator('GET', `/accounts/${id}/activity`),
      server.operator('POST', `/accounts/${id}/credit`, { json: { amountSat: 1, reason: 'x' } }),
      server.operator('POST', `/accounts/${id}/keys`, { json: { name: 'x', scopes: [] } }),
    ])
    for (const answer of answers) expectProblem(answer, 404, 'not_found', 'There is no such account.')
  })

  test('C9: a key of another account is as unknown as one that never existed', async () => {
    const [mine, other] = await Promise.all([server.newKey(), server.newKey()])
    for (const id of [other.id, 'key_00000000000000000000', 'key_', '%00', 'x'.repeat(200)]) {
      const path = `/accounts/${mine.accountId}/keys/${id}`
      expectProblem(await server.operator('PATCH', path, { json: { disabled: true } }), 404, 'not_found', 'There is no such key.')
      expectProblem(await server.operator('DELETE', path), 404, 'not_found', 'There is no such key.')
    }
    expect((await server.send('GET', '/v1/api-key', { token: other.key })).status).toBe(200)
  })
})

describe('public routes', () => {
  test.each(['/healthz', '/readyz'])('%s is {"status":"ok"}', async (path) => {
    const answer = await server.send('GET', path)
    expect([answer.status, answer.text, answer.headers['content-type']]).toEqual([200, '{"status":"ok"}', JSON_TYPE])
  })

  test('/docs is a page, with the scripts that it names', async () => {
    const answer = await server.send('GET', '/docs')
    expect([answer.status, answer.headers['content-type']]).toEqual([200, expect.stringMatching(/^text\/html/)])
    const scripts = [...answer.text.matchAll(/<script[^>]* src="([^"]+)"/g)].map(
      ([, path = '']) => new URL(path, `${server.url}/docs`),
    )
    expect(scripts.length).toBeGreaterThan(0)
    for (const { pathname } of scripts) expect((await server.send('GET', pathname)).status).toBe(200)
    expect(answer.headers['content-security-policy']).toBeDefined()
  })

  test('/openapi.json is OpenAPI 3.1: all paths, parameters, answers and keys are declared', async () => {
    const document = (await server.send('GET', '/openapi.json')).json()
    expect(document).toMatchObject({ openapi: expect.stringMatching(/^3\.1\.\d+$/), info: { title: 'Boltyard', version: '1' } })
    expect(Object.keys(document.paths)).toEqual(
      expect.arrayContaining(['/healthz', '/readyz', '/v1/api-key', '/operator/v1/accounts/{id}/keys/{keyId}']),
    )
    const schemes = Object.keys(document.components.securitySchemes)
    for (const [path, item] of Object.entries<Record<string, any>>(document.paths)) {
      expect(path).toMatch(/^\/[^:*?]*$/)
      for (const [method, operation] of Object.entries(item)) {
        expect(['get', 'post', 'put', 'patch', 'delete']).toContain(method)
        expect(operation.summary).toEqual(expect.any(String))
        const declared = (operation.parameters ?? []).filter((one: any) => one.in === 'path').map((one: any) => one.name)
        expect(declared.sort()).toEqual([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name).sort())
        for (const one of operation.parameters ?? [])
          if (one.$ref === undefined) expect(one).toMatchObject({ name: expect.any(String), schema: expect.any(Object) })
        for (const requirement of operation.security ?? [])
          expect(schemes).toEqual(expect.arrayContaining(Object.keys(requirement)))
        if (!/^\/(healthz|readyz)$/.test(path)) expect(operation.security).toHaveLength(1)
        if (operation.requestBody) expect(Object.keys(operation.requestBody.content)).toEqual(['application/json'])
        for (const [status, declared] of Object.entries<any>(operation.responses)) {
          const answer = declared.$ref ? document.components.responses[declared.$ref.split('/').at(-1)] : declared
          expect(status).toMatch(/^[2-5]\d\d$/)
          expect(answer.description).toEqual(expect.any(String))
          if (status === '204') expect(answer.content).toBeUndefined()
        }
      }
    }
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)].map(([, path = '']) => path)
    for (const path of references) expect(path.split('/').reduce((at: any, name) => at?.[name], document)).toBeDefined()
  })
})

/** Last, because it takes the store down for a while. */
describe('C2: while the store is down', () => {
  test('C2: 503 with Retry-After for what needs it, 200 for /healthz, and recovery without a restart', async () => {
    const { key } = await server.newKey()
    const { giveBack } = await server.takeStoreAway()
    const times: number[] = []
    for (let round = 0; round < 15; round++) {
      const began = performance.now()
      const answers = await Promise.all([
        server.operator('GET', '/accounts'),
        server.operator('POST', '/accounts', { json: { name: 'x' } }),
        server.send('GET', '/v1/api-key', { token: key }),
        server.send('GET', '/readyz'),
      ])
      times.push(performance.now() - began)
      for (const answer of answers) {
        expectProblem(answer, 503, 'service_unavailable')
        expect(answer.headers['retry-after']).toMatch(/^[1-9]\d*$/)
      }
      // Only a request that may have changed something gets this warning.
      expect(answers.map(({ text }) => text.includes('A change may have been made'))).toEqual([false, true, false, false])
      expect((await server.send('GET', '/healthz')).status).toBe(200)
    }
    // With exponential backoff, all later requests would wait longer. The fastest counts, because a stall of the machine delays only some.
    expect(Math.min(...times.slice(-5))).toBeLessThan(10_000)
    giveBack()
    await eventually(async () => (await server.send('GET', '/readyz')).status === 200, 'the store to be back')
    expect((await server.send('GET', '/v1/api-key', { token: key })).status).toBe(200)
    expect((await server.operator('POST', '/accounts', { json: { name: 'x' } })).status).toBe(201)
  })
})
