import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { type Answer, basic, FULL, send } from '../harness.ts'
import { AUTHORIZATION, FORM, hub, node, raw, statusOf } from './network.ts'

describe('bodies that are too large', () => {
  const post = (port: number, path: string, headers: Record<string, string>, body: Buffer): Promise<Answer> =>
    send(port, 'POST', path, { headers, body })

  test('one byte more than one MiB to the API: 413', async () => {
    const headers = { authorization: basic(FULL), 'content-type': FORM }
    const answer = await post(node.port, '/createinvoice', headers, Buffer.alloc(1024 * 1024 + 1, 'a'))
    expect([answer.status, answer.headers['content-type']]).toEqual([413, 'text/plain; charset=UTF-8'])
  })

  test('200 MiB are announced and sent: 413 or a closed connection, long before everything is read', async () => {
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

  test('more than one MiB in chunks, without a content length: 413', async () => {
    const head = `POST /createinvoice HTTP/1.1\r\nHost: x\r\n${AUTHORIZATION}\r\nContent-Type: ${FORM}\r\nTransfer-Encoding: chunked\r\n\r\n`
    const chunk = `10000\r\n${'a'.repeat(0x10000)}\r\n`
    expect(statusOf(await raw(node.port, `${head}${chunk.repeat(17)}0\r\n\r\n`))).toBe(413)
  })

  test('exactly one MiB is accepted', async () => {
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
  test('three thousand silent connections do not keep getinfo from responding', async () => {
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
    expect(Date.now() - startedAt).toBeLessThan(60_000)
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
  ])('a hundred connections that are reset after $title do no harm', async ({ bytes }) => {
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

  test('a client that sends its request byte by byte gets a response', async () => {
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

describe('input that is not HTTP', () => {
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
      title: 'a chunk with an invalid size',
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
  )('$name is not an endpoint', async ({ text: path }) => {
    expect(await get(path)).toEqual({ status: 404, body: 'Unknown endpoint (check api doc)' })
  })

  test.each(['getinfo', '?x=1', '/état', '/getinfo /getbalance', ''])(
    'the target "%s" is malformed or not an endpoint',
    async (target) => {
      expect([400, 404]).toContain((await get(target)).status)
    },
  )

  // Whether these targets match the endpoint is not specified, but they must not cause a server error.
  test.each(['//getinfo', '///getinfo', '/./getinfo', '/%2e%2e/getinfo', '/%67etinfo', 'http://elsewhere/getinfo', '/getinfo#x'])(
    '%s is either getinfo or not an endpoint',
    async (path) => {
      const { status, body } = await get(path)
      if (status === 200) expect(JSON.parse(body).nodeId).toBe(node.nodeId)
      else expect([status, body]).toEqual([404, 'Unknown endpoint (check api doc)'])
    },
  )

  test.each([
    { name: 'an empty query', path: '/getinfo?', status: 200 },
    { name: 'an odd query', path: '/getinfo?a=b&a=c&&&=&%zz=%', status: 200 },
    { name: 'a long query', path: `/getinfo?${'a=b&'.repeat(2_000)}`, status: 200 },
    { name: 'a hash that is not hex', path: `/payments/incoming/${'g'.repeat(64)}`, status: 400 },
    { name: 'an unknown hash', path: `/payments/incoming/${'0'.repeat(64)}`, status: 404 },
    { name: 'a hash of 8 kB', path: `/payments/incoming/${'0'.repeat(8_000)}`, status: 404 },
    { name: 'a hash named like a method of objects', path: '/payments/incoming/constructor', status: 400 },
    { name: 'an id named like a property of objects', path: '/payments/outgoing/__proto__', status: 400 },
    { name: 'an unknown id', path: '/payments/outgoing/00000000-0000-4000-8000-000000000000', status: 404 },
    { name: 'a hash of NUL', path: '/payments/outgoingbyhash/%00', status: 400 },
  ])('$name is answered with $status', async ({ path, status }) => {
    expect((await get(path)).status).toBe(status)
  })

  test.each([
    {
      name: 'an offer to upgrade to HTTP/2, as sent by curl --http2',
      headers: 'Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nConnection: Upgrade, HTTP2-Settings\r\n',
    },
    { name: 'accepted encodings', headers: 'Accept-Encoding: br, gzip\r\n' },
    {
      name: 'conditions',
      headers: 'If-None-Match: *\r\nIf-Modified-Since: Thu, 01 Jan 2099 00:00:00 GMT\r\nRange: bytes=0-1\r\n',
    },
    { name: 'a header that overrides the method', headers: 'X-HTTP-Method-Override: DELETE\r\n' },
    { name: 'a content type without a body', headers: 'Content-Type: text/plain\r\n' },
    { name: 'another origin', headers: 'Origin: http://evil.example\r\nReferer: http://evil.example/\r\n' },
    { name: 'a thousand cookies', headers: `Cookie: ${'a=b; '.repeat(1_000)}\r\n` },
  ])('getinfo responds as usual to a request with $name', async ({ headers }) => {
    const { status, body } = await get('/getinfo', headers)
    expect([status, status === 200 && JSON.parse(body).nodeId]).toEqual([200, node.nodeId])
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
  )('the credentials $name give no access', async ({ text: authorization }) => {
    expect((await send(node.port, 'GET', '/getinfo', { headers: { authorization } })).status).toBe(401)
  })
})
