import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type Answer, basic, FULL, LIMITED, send, startNetwork, type TestHub, type TestNode } from './harness.ts'

let hub: TestHub
let node: TestNode
let payee: TestNode
const open: Socket[] = []

beforeAll(async () => {
  ;({ hub, payer: node, payee } = await startNetwork())
})

/** Whatever was done to them, the same processes still answer, and none of them has complained of an error of its own. */
afterEach(async () => {
  try {
    expect((await node.get('/getinfo')).status).toBe(200)
    expect((await node.state()).nodeId).toBe(node.nodeId)
    expect((await hub.get('/wallet')).status).toBe(200)
  } finally {
    const complaints = [node, payee, hub].map(({ daemon }) => daemon.stderr)
    const dead = [node, payee, hub].filter(({ daemon }) => daemon.child.exitCode !== null)
    // The next test is to judge its own hostility, not this one's.
    for (const daemon of [node.daemon, payee.daemon, hub.daemon]) daemon.stderr = ''
    for (const one of dead) await one.start()
    expect([...new Set(complaints.join('').split('\n'))]).toEqual([''])
    expect(dead).toHaveLength(0)
  }
})

afterAll(() => {
  for (const socket of open) socket.destroy()
})

const AUTHORIZATION = `Authorization: ${basic(FULL)}`
const FORM = 'application/x-www-form-urlencoded'

/** Sends these bytes as they are, and answers with all that comes back until the other side closes. */
async function raw(port: number, bytes: string | Buffer): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(chunk))
  socket.on('error', () => undefined)
  socket.write(bytes)
  await new Promise((resolve) => socket.once('close', resolve))
  return Buffer.concat(chunks).toString('latin1')
}

const statusOf = (text: string): number => Number(/^HTTP\/1\.[01] (\d{3})/.exec(text)?.[1] ?? 0)

describe('bodies that are too large', () => {
  const post = (port: number, path: string, headers: Record<string, string>, body: Buffer): Promise<Answer> =>
    send(port, 'POST', path, { headers, body })

  test('one byte more than one MiB to the API: 413', async () => {
    const headers = { authorization: basic(FULL), 'content-type': FORM }
    const answer = await post(node.port, '/createinvoice', headers, Buffer.alloc(1024 * 1024 + 1, 'a'))
    expect([answer.status, answer.headers['content-type']]).toEqual([413, 'text/plain; charset=UTF-8'])
  })

  test('200 MiB announced and sent as long as it is taken: 413 or cut off, never swallowed', async () => {
    const socket = connect(node.port, '127.0.0.1')
    socket.on('error', () => undefined)
    const chunks: Buffer[] = []
    socket.on('data', (chunk) => chunks.push(chunk))
    const closed = new Promise((resolve) => socket.once('close', resolve))
    const length = 200 * 1024 * 1024
    socket.write(
      `POST /createinvoice HTTP/1.1\r\nHost: x\r\n${AUTHORIZATION}\r\nContent-Type: ${FORM}\r\nContent-Length: ${length}\r\n\r\n`,
    )
    const piece = Buffer.alloc(1024 * 1024, 'a')
    let sent = 0
    while (sent < length && socket.writable) {
      sent += piece.length
      await new Promise((resolve) => socket.write(piece, resolve))
    }
    await closed
    expect(sent).toBeLessThan(length / 4)
    expect([0, 413]).toContain(statusOf(Buffer.concat(chunks).toString('latin1')))
  })

  test('the same in pieces of unknown number: 413', async () => {
    const head = `POST /createinvoice HTTP/1.1\r\nHost: x\r\n${AUTHORIZATION}\r\nContent-Type: ${FORM}\r\nTransfer-Encoding: chunked\r\n\r\n`
    const chunk = `10000\r\n${'a'.repeat(0x10000)}\r\n`
    expect(statusOf(await raw(node.port, `${head}${chunk.repeat(17)}0\r\n\r\n`))).toBe(413)
  })

  test('one MiB exactly is read', async () => {
    const headers = { authorization: basic(FULL), 'content-type': FORM }
    const description = 'description=x&padding='
    const body = Buffer.from(description + 'a'.repeat(1024 * 1024 - description.length))
    expect((await post(node.port, '/createinvoice', headers, body)).status).toBe(200)
  })

  test('to the control port and to the hub: 413', async () => {
    const body = Buffer.from(JSON.stringify({ amountSat: 1, padding: 'a'.repeat(1024 * 1024) }))
    const toNode = await post(node.controlPort, '/fund', { authorization: `Bearer ${'c'.repeat(64)}` }, body)
    const toHub = await post(hub.port, '/pay', { authorization: `Bearer ${hub.controlToken}` }, body)
    expect([toNode.status, toHub.status]).toEqual([413, 413])
  })

  test('without a password a large body is not read at all: 401', async () => {
    const answer = await post(node.port, '/createinvoice', { 'content-type': FORM }, Buffer.alloc(2 * 1024 * 1024, 'a'))
    expect(answer.status).toBe(401)
  })
})

describe('connections', () => {
  test('three thousand that say nothing do not keep getinfo from answering', async () => {
    const idle: Socket[] = []
    for (let batch = 0; batch < 30; batch++) {
      await Promise.all(
        Array.from({ length: 100 }, async () => {
          const socket = connect(node.port, '127.0.0.1')
          socket.on('error', () => undefined)
          idle.push(socket)
          await once(socket, 'connect')
        }),
      )
    }
    const startedAt = Date.now()
    expect((await node.get('/getinfo')).status).toBe(200)
    expect((await node.post('/createinvoice', { description: 'in the crowd' })).status).toBe(200)
    expect(Date.now() - startedAt).toBeLessThan(2_000)
    expect(idle.filter((socket) => socket.destroyed || socket.readyState !== 'open')).toEqual([])
    for (const socket of idle) socket.resetAndDestroy()
  })

  test.each([
    { title: 'nothing', bytes: '' },
    { title: 'half a request line', bytes: 'GET /geti' },
    {
      title: 'half a body',
      bytes: `POST /createinvoice HTTP/1.1\r\nHost: x\r\n${AUTHORIZATION}\r\nContent-Type: ${FORM}\r\nContent-Length: 100\r\n\r\ndesc`,
    },
    {
      title: 'a refused upgrade',
      bytes: 'GET /websocket HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
    },
    {
      title: 'an upgrade of another path',
      bytes: 'GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
    },
    {
      title: 'an accepted upgrade',
      bytes: `GET /websocket HTTP/1.1\r\nHost: x\r\n${AUTHORIZATION}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`,
    },
    { title: 'a request that is answered', bytes: 'GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n' },
    { title: 'a request that is malformed', bytes: 'NONSENSE\r\n\r\n' },
  ])('a hundred that break off by a reset after $title do no harm', async ({ bytes }) => {
    await Promise.all(
      Array.from({ length: 100 }, async (_, index) => {
        const socket = connect(node.port, '127.0.0.1')
        socket.on('error', () => undefined)
        await once(socket, 'connect')
        if (bytes) await new Promise((resolve) => socket.write(bytes, resolve))
        if (index % 2) await new Promise(setImmediate)
        const closed = once(socket, 'close')
        socket.resetAndDestroy()
        await closed
      }),
    )
  })

  test('one that sends a request byte by byte gets its answer', async () => {
    const socket = connect(node.port, '127.0.0.1')
    socket.setNoDelay(true)
    const answered = once(socket, 'data')
    for (const byte of Buffer.from(`GET /getbalance HTTP/1.1\r\nHost: x\r\n${AUTHORIZATION}\r\n\r\n`)) {
      await new Promise((resolve) => socket.write(Buffer.of(byte), resolve))
    }
    const [data] = await answered
    socket.destroy()
    expect(statusOf(String(data))).toBe(200)
  })
})

describe('what is not HTTP', () => {
  test.each([
    { title: 'words', bytes: 'hello, is anybody there?\r\n\r\n' },
    { title: 'a TLS handshake', bytes: Buffer.from('16030100a5010000a10303', 'hex') },
    { title: 'zeros', bytes: Buffer.alloc(1000) },
    { title: 'another version', bytes: 'GET /getinfo HTTP/9.9\r\nHost: x\r\n\r\n' },
    { title: 'HTTP/2', bytes: 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' },
    { title: 'an unknown method', bytes: 'STEAL /getinfo HTTP/1.1\r\nHost: x\r\n\r\n' },
    { title: 'a NUL in the path', bytes: 'GET /get\0info HTTP/1.1\r\nHost: x\r\n\r\n' },
    { title: 'a NUL in a header', bytes: 'GET /getinfo HTTP/1.1\r\nHost: x\r\nX: a\0b\r\n\r\n' },
    { title: 'a space in a header name', bytes: 'GET /getinfo HTTP/1.1\r\nHost : x\r\n\r\n' },
    {
      title: 'two lengths',
      bytes: 'POST /createinvoice HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
    },
    { title: 'a negative length', bytes: 'POST /createinvoice HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n' },
    {
      title: 'a length and chunks',
      bytes: 'POST /createinvoice HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    },
    {
      title: 'a chunk with a size that is none',
      bytes: `POST /createinvoice HTTP/1.1\r\nHost: x\r\n${AUTHORIZATION}\r\nContent-Type: ${FORM}\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n`,
    },
    { title: 'a header of 100 kB', bytes: `GET /getinfo HTTP/1.1\r\nHost: x\r\nX: ${'a'.repeat(100_000)}\r\n\r\n` },
    { title: 'a path of 100 kB', bytes: `GET /${'a'.repeat(100_000)} HTTP/1.1\r\nHost: x\r\n\r\n` },
  ])('$title: 400 (431 for too much) or a closed connection, at all three ports', async ({ bytes }) => {
    for (const port of [node.port, node.controlPort, hub.port]) {
      const text = await raw(port, bytes)
      expect([0, 400, 431], text.slice(0, 80)).toContain(statusOf(text))
    }
  })
})

describe('paths and headers', () => {
  const get = async (path: string, extra = ''): Promise<{ status: number; body: string }> => {
    const text = await raw(node.port, `GET ${path} HTTP/1.1\r\nHost: x\r\n${AUTHORIZATION}\r\n${extra}Connection: close\r\n\r\n`)
    return { status: statusOf(text), body: text.slice(text.indexOf('\r\n\r\n') + 4) }
  }
  /** Without the lengths between which a body may be cut into pieces. */
  const jsonOf = (body: string): any => JSON.parse(body.slice(body.indexOf('{'), body.lastIndexOf('}') + 1))

  const named = (texts: string[]): { name: string; text: string }[] =>
    texts.map((text) => ({ name: text.length > 40 ? `${text.slice(0, 20)}… (${text.length} characters)` : text, text }))

  test.each(
    named([
      '/getinfo/',
      '/GETINFO',
      '/getinfo/x',
      '/getinfo%00',
      '/getinfo;x=1',
      '/%',
      '/%zz',
      '/\\getinfo',
      '/payments/incoming/',
      '/payments//incoming',
      '/constructor',
      '/__proto__',
      '/..%2fgetinfo',
      '*',
      `/${'a'.repeat(8_000)}`,
      `/${'a/'.repeat(4_000)}`,
      `/${'%2e%2e/'.repeat(1_000)}etc/passwd`,
      '/../../../../etc/passwd',
    ]),
  )('$name is no endpoint', async ({ text: path }) => {
    expect(await get(path)).toEqual({ status: 404, body: 'Unknown endpoint (check api doc)' })
  })

  test.each(['getinfo', '?x=1', '/état', '/getinfo /getbalance', ''])(
    'the target "%s" is malformed or no endpoint',
    async (target) => {
      expect([400, 404]).toContain((await get(target)).status)
    },
  )

  // Whether these are the endpoint or none is left open; they are never an error of the server.
  test.each(['//getinfo', '///getinfo', '/./getinfo', '/%2e%2e/getinfo', '/%67etinfo', 'http://elsewhere/getinfo', '/getinfo#x'])(
    '%s is getinfo or no endpoint',
    async (path) => {
      const { status, body } = await get(path)
      if (status === 200) expect(jsonOf(body).nodeId).toBe(node.nodeId)
      else expect([status, body]).toEqual([404, 'Unknown endpoint (check api doc)'])
    },
  )

  test.each([
    { name: 'an empty query', path: '/getinfo?', status: 200 },
    { name: 'an odd query', path: '/getinfo?a=b&a=c&&&=&%zz=%', status: 200 },
    { name: 'a long query', path: `/getinfo?${'a=b&'.repeat(2_000)}`, status: 200 },
    { name: 'a hash that is no hex', path: `/payments/incoming/${'g'.repeat(64)}`, status: 400 },
    { name: 'an unknown hash', path: `/payments/incoming/${'0'.repeat(64)}`, status: 404 },
    { name: 'a hash of 8 kB', path: `/payments/incoming/${'0'.repeat(8_000)}`, status: 404 },
    { name: 'a hash like a method of objects', path: '/payments/incoming/constructor', status: 400 },
    { name: 'an id like a property of objects', path: '/payments/outgoing/__proto__', status: 400 },
    { name: 'an unknown id', path: '/payments/outgoing/00000000-0000-4000-8000-000000000000', status: 404 },
    { name: 'a hash of NUL', path: '/payments/outgoingbyhash/%00', status: 400 },
  ])('$name is answered with $status', async ({ path, status }) => {
    expect((await get(path)).status).toBe(status)
  })

  test.each([
    {
      name: 'an offer to go on in HTTP/2, as curl --http2 makes it',
      headers: 'Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nConnection: Upgrade, HTTP2-Settings\r\n',
    },
    { name: 'encodings accepted', headers: 'Accept-Encoding: br, gzip\r\n' },
    {
      name: 'conditions',
      headers: 'If-None-Match: *\r\nIf-Modified-Since: Thu, 01 Jan 2099 00:00:00 GMT\r\nRange: bytes=0-1\r\n',
    },
    { name: 'another method on top', headers: 'X-HTTP-Method-Override: DELETE\r\n' },
    { name: 'a type of no body', headers: 'Content-Type: text/plain\r\n' },
    { name: 'another origin', headers: 'Origin: http://evil.example\r\nReferer: http://evil.example/\r\n' },
    { name: 'a thousand cookies', headers: `Cookie: ${'a=b; '.repeat(1_000)}\r\n` },
  ])('getinfo answers as ever to a request with $name', async ({ headers }) => {
    const { status, body } = await get('/getinfo', headers)
    expect([status, status === 200 && jsonOf(body).nodeId]).toEqual([200, node.nodeId])
  })

  test.each(
    named([
      'Basic',
      'Basic ',
      `Basic ${Buffer.from(FULL).toString('base64')}`,
      `Basic ${Buffer.from(`:${FULL} `).toString('base64')}`,
      `Basic ${Buffer.from(`:${FULL}\0`).toString('base64')}`,
      `Basic ${Buffer.from(`:${FULL.toUpperCase()}`).toString('base64')}`,
      `Basic ${Buffer.from(':').toString('base64')}`,
      `Bearer ${FULL}`,
      `Digest username="", response="${FULL}"`,
      `Basic ${'QQ'.repeat(4_000)}`,
      FULL,
    ]),
  )('the credentials $name open nothing', async ({ text: authorization }) => {
    expect((await send(node.port, 'GET', '/getinfo', { headers: { authorization } })).status).toBe(401)
  })
})

describe('parameters that nobody would send', () => {
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
  /** Never a crash, never a 500 but those that phoenixd has, always text for an error. */
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
  /** A real one with some of its characters changed, dropped or doubled. */
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

  test('createinvoice: what it makes, decodeinvoice can read', async () => {
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

  test('bodies that are no form, whatever they are called', async () => {
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

  test.each(POSTS)('%s: a body that is no JSON object is 400', async (_name, door) => {
    for (const body of ['[]', 'null', '1', '"text"', 'true', '{', 'x', '\0', '[{"amountSat":1}]', `${'['.repeat(10_000)}`]) {
      expectError(await call(door, body), 400)
    }
  })

  const WRONG: unknown[] = [null, true, false, 0, -1, 1.5, 1e300, 2 ** 53, '', ' ', 'x', '1', [], ['up'], {}, { toString: 1 }]

  test.each(POSTS)('%s: any field of a wrong type or missing is 400', async (_name, door) => {
    for (const field of Object.keys(door.good)) {
      const wrong = WRONG.filter((value) => value !== door.good[field] && !isFine(field, value))
      for (const value of wrong) expectError(await call(door, JSON.stringify({ ...door.good, [field]: value })), 400)
      const { [field]: _, ...rest } = door.good
      expectError(await call(door, JSON.stringify(rest)), 400)
    }
  })

  /** Values that the field does take. */
  function isFine(field: string, value: unknown): boolean {
    if (field === 'advanceSeconds') return value === 0
    if (field === 'controlToken') return typeof value === 'string' && value !== ''
    return field === 'again' && typeof value === 'boolean'
  }

  test.each(POSTS)('%s: without its token 401, by another method 405', async (_name, door) => {
    const body = JSON.stringify(door.good)
    for (const token of [undefined, '', 'x', door.token().slice(1), `${door.token()}x`, FULL, LIMITED]) {
      expectError(await call(door, body, { token }), 401)
    }
    for (const method of ['GET', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) expectError(await call(door, undefined, { method }), 405)
  })

  test('the token of the nodes does not open what is for the operator, nor the other way round', async () => {
    for (const [name, door] of POSTS.filter(([name]) => name.startsWith('hub '))) {
      const other = /register|relay/.test(name) ? hub.controlToken : hub.nodeToken
      expectError(await call(door, JSON.stringify(door.good), { token: other }), 401)
    }
  })

  test.each(['/', '/funds', '/fund/', '//fund', '/getinfo', '/%66und', '/constructor', '/nodes/x/fund'])(
    '%s is unknown to both: 404',
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

  test('any JSON at any door is a 200, a 400 or a refusal, never an error of the server', async () => {
    const doors = POSTS.filter(([name]) => !/fault|peer|answers|explorer|payments|register/.test(name))
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...doors), fc.jsonValue(), fc.boolean(), async ([, door], value, mixed) => {
        const body = mixed && typeof value === 'object' && value !== null ? { ...door.good, ...value } : value
        expect([200, 400, 404, 409]).toContain((await call(door, JSON.stringify(body))).status)
      }),
      { numRuns: 200 },
    )
  })

  test('the passwords of the API open no control, and no control is in the API', async () => {
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
