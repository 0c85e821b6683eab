import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { type Answer, basic, FULL, LIMITED, send } from '../harness.ts'
import { FORM, hub, node, payee } from './network.ts'

describe('hostile parameters', () => {
  const invoices: string[] = []
  let offer: string

  beforeAll(async () => {
    invoices.push((await payee.invoice({ amountSat: 1 })).serialized, (await payee.invoice()).serialized)
    offer = (await payee.post('/createoffer', { amountSat: 5, description: 'tea' })).text
  })

  const SENTENCES_OF_500 = [
    /^(amount|expiry) is not valid$/,
    /^invalid sub-millisatoshi precision$/,
    /^String index out of range: -\d+$/,
    /^Failed to parse multipart: Content-Type's boundary parameter is missing$/,
    /^Unexpected end of stream after reading \d+ characters$/,
    /^Incomplete trailing HEX escape: /,
    /^Wrong HEX escape: /,
  ]
  /** Expects that errors are always text, and that there is no 500 except those of phoenixd. */
  const expectDocumented = ({ status, text, headers }: Answer): void => {
    if (status === 500)
      expect(
        SENTENCES_OF_500.some((sentence) => sentence.test(text)),
        text,
      ).toBe(true)
    else expect([200, 400, 404, 415]).toContain(status)
    if (status === 200) expect(JSON.parse(text)).not.toBe(null)
    else expect(headers['content-type']).toBe('text/plain; charset=UTF-8')
  }

  const odd = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 200 }),
    fc.constantFrom('', ' ', '0', '-0', '+1', '-1', '1e3', '0x10', 'NaN', 'true', 'null', '1.5', '١', '\0', '😀'.repeat(64)),
    fc.constantFrom('9223372036854775807', '-9223372036854775808', '9223372036854775808', '9007199254740', '9007199254741'),
    fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }).map(String),
  )
  /** A valid value with some characters changed, dropped or doubled. */
  const spoiled = (real: () => string): fc.Arbitrary<string> =>
    fc
      .array(fc.tuple(fc.nat(), fc.constantFrom('q', 'p', 'Q', '1', ' ', '+', 'ö', '', 'zz')), { maxLength: 3 })
      .map((changes) => {
        let text = real()
        for (const [at, by] of changes) text = text.slice(0, at % text.length) + by + text.slice((at % text.length) + 1)
        return text
      })
  const formOf = (names: Record<string, fc.Arbitrary<string>>): fc.Arbitrary<string> =>
    fc
      .record(names, { requiredKeys: [] })
      .map((form) => new URLSearchParams(Object.entries(form).filter((pair): pair is [string, string] => pair[1] !== undefined)))
      .map(String)

  const post = (path: string, body: string | Buffer, type = FORM): Promise<Answer> =>
    send(node.port, 'POST', path, { headers: { authorization: basic(FULL), 'content-type': type }, body })

  const parameters = { numRuns: 150 }

  test('createinvoice', async () => {
    const hex = fc.oneof(odd, fc.stringMatching(/^[0-9a-f]{63,65}$/))
    const url = fc.oneof(odd, fc.webUrl(), fc.constantFrom('http://', 'http://[', '//x', 'javascript:1', 'http://x:99999'))
    const form = formOf({
      description: odd,
      descriptionHash: hex,
      amountSat: odd,
      expirySeconds: odd,
      externalId: odd,
      webhookUrl: url,
      unknown: odd,
    })
    await fc.assert(
      fc.asyncProperty(form, async (body) => expectDocumented(await post('/createinvoice', body))),
      parameters,
    )
  })

  test('createinvoice: decodeinvoice can read every invoice that it creates', async () => {
    const form = formOf({
      description: fc.string({ unit: 'grapheme', maxLength: 60 }),
      amountSat: fc.integer({ min: 0, max: 9_007_199_254_740 }).map(String),
      expirySeconds: fc.oneof(fc.nat().map(String), fc.constantFrom('0', '1', '4503599627370')),
    })
    await fc.assert(
      fc.asyncProperty(form, async (body) => {
        const sent = new URLSearchParams(body)
        const made = await post('/createinvoice', body)
        expect(made.status).toBe(sent.has('description') ? 200 : 400)
        if (made.status !== 200) return
        const decoded = await post('/decodeinvoice', new URLSearchParams({ invoice: made.json().serialized }).toString())
        expect(decoded.status).toBe(200)
        const amountSat = Number(sent.get('amountSat') ?? 0)
        expect(decoded.json().amount).toBe(amountSat === 0 ? undefined : amountSat * 1000)
        expect(decoded.json().description).toBe(sent.get('description'))
        expect(decoded.json().expirySeconds).toBe(Number(sent.get('expirySeconds') ?? 86_400))
      }),
      parameters,
    )
  })

  test('payinvoice', async () => {
    const invoice = fc.oneof(
      odd,
      fc.nat(1).chain((which) => spoiled(() => invoices[which] ?? '')),
    )
    const form = formOf({ invoice, amountSat: odd, sendAll: odd })
    await fc.assert(
      fc.asyncProperty(form, async (body) => expectDocumented(await post('/payinvoice', body))),
      parameters,
    )
  })

  test('decodeinvoice', async () => {
    const invoice = fc.oneof(
      odd,
      fc.nat(1).chain((which) => spoiled(() => invoices[which] ?? '')),
    )
    await fc.assert(
      fc.asyncProperty(formOf({ invoice }), async (body) => expectDocumented(await post('/decodeinvoice', body))),
      parameters,
    )
  })

  test('decodeoffer', async () => {
    const bech32 = fc.stringMatching(/^lno1[qpzry9x8gf2tvdw0s3jn54khce6mua7l]{1,200}$/)
    const form = formOf({
      offer: fc.oneof(
        odd,
        bech32,
        spoiled(() => offer),
      ),
    })
    await fc.assert(
      fc.asyncProperty(form, async (body) => expectDocumented(await post('/decodeoffer', body))),
      parameters,
    )
  })

  test('the list of incoming payments', async () => {
    const query = formOf({ from: odd, to: odd, limit: odd, offset: odd, all: odd, externalId: odd })
    await fc.assert(
      fc.asyncProperty(query, async (text) => {
        const answer = await node.get(`/payments/incoming?${text}`)
        expectDocumented(answer)
        if (answer.status === 200) expect(Array.isArray(answer.json())).toBe(true)
      }),
      parameters,
    )
  })

  test('bodies that are not forms, with any content type', async () => {
    const type = fc.constantFrom(
      FORM,
      `${FORM}; charset=utf-16`,
      'multipart/form-data',
      'multipart/form-data; boundary=',
      'multipart/form-data; boundary=x',
      'multipart/form-data; boundary="x"',
      `multipart/form-data; boundary=${'x'.repeat(100)}`,
      'application/json',
      'text/plain',
      ';',
    )
    const piece = fc.constantFrom(
      '--x\r\n',
      '--x--\r\n',
      '--x--',
      'Content-Disposition: form-data; name="description"\r\n\r\n',
      'Content-Disposition: form-data; name="description"; filename="a"\r\n\r\n',
      'Content-Disposition: form-data\r\n\r\n',
      'Content-Type: text/plain; charset=nonsense\r\n',
      'description=a',
      '&',
      '%ff%fe%',
      '\r\n',
      '\0',
    )
    const body = fc.oneof(
      fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
      fc.array(piece, { maxLength: 12 }).map((pieces) => Buffer.from(pieces.join(''))),
    )
    await fc.assert(
      fc.asyncProperty(body, type, async (bytes, name) => expectDocumented(await post('/createinvoice', bytes, name))),
      { numRuns: 250 },
    )
  })
})

describe('the control port and the hub', () => {
  type Door = { port: () => number; token: () => string; path: () => string; good: Record<string, unknown> }
  const control = (path: string, good: Record<string, unknown>): Door => ({
    port: () => node.controlPort,
    token: () => 'c'.repeat(64),
    path: () => path,
    good,
  })
  const ofHub = (path: string, good: Record<string, unknown>, token = (): string => hub.controlToken): Door => ({
    port: () => hub.port,
    token,
    path: () => path.replace(':node', node.nodeId),
    good,
  })
  const nodeToken = (): string => hub.nodeToken
  const delivery = {
    paymentId: '00000000-0000-4000-8000-000000000000',
    recipient: `02${'a'.repeat(64)}`,
    paymentHash: 'a'.repeat(64),
    paymentSecret: 'b'.repeat(64),
    amountMsat: 1000,
    again: false,
  }
  const POSTS: [string, Door][] = [
    ['control /fund', control('/fund', { amountSat: 1 })],
    ['control /clock', control('/clock', { advanceSeconds: 0 })],
    ['control /peer', control('/peer', { peer: 'up' })],
    ['control /fee-credit', control('/fee-credit', { feeCredit: 'off' })],
    ['control /payments', control('/payments', { payments: 'normal' })],
    ['control /answers', control('/answers', { answers: 'normal' })],
    ['control /explorer', control('/explorer', { explorer: 'up' })],
    ['control /fault', control('/fault', { fault: 'none' })],
    ['control /receive', control('/receive', delivery)],
    ['hub /register', ofHub('/register', { nodeId: `02${'a'.repeat(64)}`, controlPort: 1, controlToken: 'x' }, nodeToken)],
    ['hub /relay', ofHub('/relay', delivery, nodeToken)],
    ['hub /pay', ofHub('/pay', { invoice: 'lnbcrt1' })],
    ['hub /nodes/:node/fund', ofHub('/nodes/:node/fund', { amountSat: 1 })],
    ['hub /nodes/:node/fault', ofHub('/nodes/:node/fault', { fault: 'none' })],
    ['hub /nodes/:node/clock', ofHub('/nodes/:node/clock', { advanceSeconds: 0 })],
  ]

  const call = (
    door: Door,
    body: string | undefined,
    overrides: { method?: string; path?: string; token?: string | undefined } = {},
  ) => {
    const token = 'token' in overrides ? overrides.token : door.token()
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
    return send(door.port(), overrides.method ?? 'POST', overrides.path ?? door.path(), {
      headers,
      ...(body === undefined ? {} : { body }),
    })
  }
  const expectError = (answer: Answer, status: number): void => {
    expect([answer.status, answer.json()]).toEqual([status, { error: expect.stringMatching(/./) }])
    expect(answer.headers['content-type']).toBe('application/json')
  }

  test.each(POSTS)('%s: a body that is not a JSON object is 400', async (_name, door) => {
    for (const body of ['[]', 'null', '1', '"text"', 'true', '{', 'x', '\0', '[{"amountSat":1}]', `${'['.repeat(10_000)}`]) {
      expectError(await call(door, body), 400)
    }
  })

  const WRONG: unknown[] = [null, true, false, 0, -1, 1.5, 1e300, 2 ** 53, '', ' ', 'x', '1', [], ['up'], {}, { toString: 1 }]

  test.each(POSTS)('%s: a field that is missing or has the wrong type is 400', async (_name, door) => {
    for (const field of Object.keys(door.good)) {
      const wrong = WRONG.filter((value) => value !== door.good[field] && !isFine(field, value))
      for (const value of wrong) expectError(await call(door, JSON.stringify({ ...door.good, [field]: value })), 400)
      const { [field]: _, ...rest } = door.good
      expectError(await call(door, JSON.stringify(rest)), 400)
    }
  })

  /** Values that the field accepts. */
  function isFine(field: string, value: unknown): boolean {
    if (field === 'advanceSeconds') return value === 0
    if (field === 'controlToken') return typeof value === 'string' && value !== ''
    return field === 'again' && typeof value === 'boolean'
  }

  test.each(POSTS)('%s: 401 without its token, 405 with another method', async (_name, door) => {
    const body = JSON.stringify(door.good)
    for (const token of [undefined, '', 'x', door.token().slice(1), `${door.token()}x`, FULL, LIMITED]) {
      expectError(await call(door, body, { token }), 401)
    }
    for (const method of ['GET', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) expectError(await call(door, undefined, { method }), 405)
  })

  test('the nodes’ token gives no access to the operator’s routes, nor the other way round', async () => {
    for (const [name, door] of POSTS.filter(([name]) => name.startsWith('hub '))) {
      const other = /register|relay/.test(name) ? hub.controlToken : hub.nodeToken
      expectError(await call(door, JSON.stringify(door.good), { token: other }), 401)
    }
  })

  test.each(['/', '/funds', '/fund/', '//fund', '/getinfo', '/%66und', '/constructor', '/nodes/x/fund'])(
    '%s is 404 at the control port and at the hub',
    async (path) => {
      for (const door of [control(path, {}), ofHub(path, {})]) expectError(await call(door, '{}', { path }), 404)
    },
  )

  test('a node that has not joined is 404 at the hub', async () => {
    for (const verb of ['fund', 'clock', 'crash']) {
      const body = { amountSat: 1, advanceSeconds: 0 }
      expectError(await hub.post(`/nodes/02${'b'.repeat(64)}/${verb}`, body), 404)
    }
  })

  test('any JSON on any route is a 200, a 400 or a refusal, never a server error', async () => {
    const doors = POSTS.filter(([name]) => !/fault|peer|answers|explorer|payments|register/.test(name))
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...doors), fc.jsonValue(), fc.boolean(), async ([, door], value, mixed) => {
        const body = mixed && typeof value === 'object' && value !== null ? { ...door.good, ...value } : value
        expect([200, 400, 404, 409]).toContain((await call(door, JSON.stringify(body))).status)
      }),
      { numRuns: 200 },
    )
  })

  test('the API’s passwords give no access to the controls, and the API has no controls', async () => {
    for (const authorization of [basic(FULL), `Bearer ${FULL}`, `Bearer ${LIMITED}`]) {
      expect((await send(node.controlPort, 'GET', '/state', { headers: { authorization } })).status).toBe(401)
    }
    for (const path of ['/state', '/fund', '/crash', '/fault', '/clock', '/receive']) {
      for (const authorization of [basic(FULL), `Bearer ${'c'.repeat(64)}`]) {
        expect((await send(node.port, 'POST', path, { headers: { authorization } })).status).toBe(404)
      }
    }
  })
})
