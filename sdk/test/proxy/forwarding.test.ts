import { once } from 'node:events'
import { createServer } from 'node:net'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { Backend, type OpenProxy, openProxy, Raw, rawAnswer, statusIn } from './harness.ts'

/** What goes through the proxy, and what does not. No payment is involved. */

let backend: Backend
let open: OpenProxy
const ROUTES = [
  { match: 'GET|POST|PUT /free/**', free: true as const },
  { match: 'GET /dear/:id', amountSat: 1000 },
  { match: 'GET /gone', deny: 410 },
]

beforeAll(async () => {
  backend = await Backend.open()
  const headers = { set: { 'X-Api-Key': 'secret' }, remove: ['Cookie'] }
  open = await openProxy({ upstream: backend.url, routes: ROUTES, headers, limits: { maxBodyBytes: 1_000 } })
})
beforeEach(() => {
  backend.handler = undefined
  backend.seen.length = 0
})

const get = (path: string, ...headers: string[]): Promise<string> =>
  rawAnswer(open.port, `GET ${path} HTTP/1.1`, 'Host: shop', 'Connection: close', ...headers, '', '')

describe('routes', () => {
  test.each([
    ['/', 404],
    ['/other', 404],
    ['/gone', 410],
    ['/free/a', 200],
    ['/free', 200],
    ['/FREE/a', 404],
  ])('C73: %s is %i', async (path, status) => {
    expect(statusIn(await get(path))).toBe(status)
    expect(backend.seen.length).toBe(status === 200 ? 1 : 0)
  })

  test('C73: a method that no route has is 404', async () => {
    expect((await fetch(open.url('/free/a'), { method: 'DELETE' })).status).toBe(404)
    expect((await fetch(open.url('/free/a'), { method: 'OPTIONS' })).status).toBe(404)
    expect(statusIn(await rawAnswer(open.port, 'TRACE /free/a HTTP/1.1', 'Host: a', 'Connection: close', '', ''))).toBe(405)
    expect(await rawAnswer(open.port, 'CONNECT 127.0.0.1:80 HTTP/1.1', 'Host: a', '', '')).toBe('')
    expect(backend.seen).toEqual([])
  })

  test('C73: HEAD goes where GET goes, and OPTIONS of a paid route is free and runs nothing', async () => {
    expect((await fetch(open.url('/free/a'), { method: 'HEAD' })).status).toBe(200)
    expect(backend.last.method).toBe('HEAD')
    const answer = await fetch(open.url('/dear/1'), { method: 'OPTIONS' })
    expect([answer.status, answer.headers.get('allow'), backend.seen.length]).toEqual([204, 'GET, HEAD, OPTIONS', 1])
  })

  test('C73: with options: pass, the upstream responds to OPTIONS', async () => {
    const routes = [{ match: 'GET /dear/:id', amountSat: 1000, options: 'pass' as const }]
    const passing = await openProxy({ upstream: backend.url, routes })
    expect((await fetch(passing.url('/dear/1'), { method: 'OPTIONS' })).status).toBe(200)
    expect([backend.last.method, backend.last.headers['x-payment-id']]).toEqual(['OPTIONS', undefined])
  })

  /** Some upstream would take most of these for the paid path `/dear/1`. The others are malformed or not a path. */
  test.each([
    ...[
      '//dear/1',
      '/free//dear/1',
      '/free/../dear/1',
      '/free/%2e%2e/dear/1',
      '/free/..%2fdear/1',
      '/free/..;/dear/1',
      '/./dear/1',
    ],
    ...[
      '/free\\..\\dear/1',
      '/free/%5c..%5cdear/1',
      '/free/%252e%252e/dear/1',
      '/free/%c0%ae%c0%ae/dear/1',
      '/dear;x/1',
      '/free/a#/../dear',
    ],
    ...['http://shop/dear/1', 'http://shop/free/a', '*', '/free/%', '/free/%00'],
  ])('C74: %s is 400, and nothing is forwarded', async (path) => {
    expect([statusIn(await get(path)), backend.seen]).toEqual([400, []])
  })

  test('C74: the dear path in another spelling is still the dear path', async () => {
    // There is no gateway here, so a paid route is 503.
    for (const path of ['/dear/1', '/%64ear/1', '/d%65a%72/%31', '/dear/%2B']) expect(statusIn(await get(path))).toBe(503)
    expect(backend.seen).toEqual([])
  })

  test('C74: what is forwarded is what was matched', async () => {
    await get('/%66ree/a%7eb/caf%c3%a9?x=%2e&y=//')
    expect(backend.last.url).toBe('/free/a~b/caf%C3%A9?x=%2e&y=//')
  })
})

describe('headers', () => {
  test('C75: what tells the upstream who has paid never comes from the client, whatever its spelling', async () => {
    const names = [
      'X-Payment-Id',
      'x-payment-amount-sat',
      'X_Payment_Id',
      'x_payment-protocol',
      'X.Payment.Id',
      'X-PAYMENT',
      'x_payment',
    ]
    await get('/free/a', ...names.map((name) => `${name}: pay_1`), 'X-Other: kept')
    expect(backend.last.names).toContain('X-Other')
    expect(backend.last.names.filter((name) => /payment/i.test(name))).toEqual([])
  })

  test('C75: credentials are not forwarded, and other logins are', async () => {
    await get(
      '/free/a',
      ...[
        'Authorization: L402 abc:def',
        'Authorization: LSAT abc:def',
        'Authorization: payment abc',
        'Authorization: Bearer mine',
      ],
      ...['Payment-Authorization: Payment abc', 'PAYMENT-SIGNATURE: abc', 'X-PAYMENT: abc', 'Accept-Payment: lightning/charge'],
    )
    expect(backend.last.headers.authorization).toBe('Bearer mine')
    expect(backend.last.names.filter((name) => /payment/i.test(name))).toEqual([])
    await get('/free/a', 'Authorization: Bearer mine, L402 abc:def')
    expect(backend.last.headers.authorization).toBe('Bearer mine')
  })

  test('C75: headers are set and removed last, and the client cannot send its own in another spelling', async () => {
    await get('/free/a', 'X-Api-Key: forged', 'x_api_key: forged', 'Cookie: a=1', 'cookie: b=2')
    expect([backend.last.headers['x-api-key'], backend.last.names.filter((name) => /cookie|_/i.test(name))]).toEqual([
      'secret',
      [],
    ])
  })

  test('C75: hop-by-hop headers are not forwarded, nor are those that Connection names', async () => {
    await get(
      '/free/a',
      ...[
        'Connection: x-hop, x-payment-id, content-length, host',
        'X-Hop: 1',
        'Keep-Alive: timeout=5',
        'TE: trailers',
        'Trailer: a',
      ],
      ...['Proxy-Authorization: Basic abc', 'Proxy-Connection: close', 'Proxy: evil', 'Upgrade-Insecure-Requests: 1'],
    )
    const names = backend.last.names.map((name) => name.toLowerCase())
    expect(names.filter((name) => /^(x-hop|keep-alive|te|trailer|proxy.*)$/.test(name))).toEqual([])
    expect(names).toContain('upgrade-insecure-requests')
    expect(backend.last.headers.host).toBe(`127.0.0.1:${backend.port}`)
  })

  test('C75: the client’s claims about its address, and headers that change path or method, are replaced or removed', async () => {
    await get(
      '/free/a',
      ...[
        'X-Forwarded-For: 1.2.3.4',
        'X-Forwarded-Proto: https',
        'X-Forwarded-Host: evil',
        'X_Forwarded_For: 1.2.3.4',
        'Forwarded: for=1.2.3.4',
      ],
      ...[
        'X-Real-IP: 1.2.3.4',
        'X-Original-URL: /dear/1',
        'X-Rewrite-Url: /dear/1',
        'X-HTTP-Method-Override: DELETE',
        'x_http_method_override: PUT',
      ],
    )
    expect(backend.last.headers).toMatchObject({
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-proto': 'http',
      'x-forwarded-host': 'shop',
    })
    expect(backend.last.names.filter((name) => /real|original|rewrite|method|^forwarded|_/i.test(name))).toEqual([])
  })

  test('C75: what a trusted proxy reports is believed, and nothing before it', async () => {
    for (const trustProxy of [1, ['127.0.0.0/8'], ['::1', '127.0.0.1']]) {
      const behind = await openProxy({ upstream: backend.url, routes: ROUTES, trustProxy })
      const headers = {
        'x-forwarded-for': '6.6.6.6, 1.2.3.4',
        'x-forwarded-proto': 'https',
        'x-forwarded-host': 'api.example.com',
      }
      await fetch(behind.url('/free/a'), { headers })
      expect(backend.last.headers).toMatchObject({ ...headers, 'x-forwarded-for': '1.2.3.4, 127.0.0.1' })
    }
    const elsewhere = await openProxy({ upstream: backend.url, routes: ROUTES, trustProxy: ['10.0.0.0/8'] })
    await fetch(elsewhere.url('/free/a'), { headers: { 'x-forwarded-for': '1.2.3.4' } })
    expect(backend.last.headers['x-forwarded-for']).toBe('127.0.0.1')
  })

  test('C75: repeated response headers stay apart, and hop-by-hop ones are not forwarded', async () => {
    backend.handler = (_request, response) => {
      response.writeHead(200, ['Set-Cookie', 'a=1', 'Set-Cookie', 'b=2', 'Connection', 'x-hop', 'X-Hop', '1', 'X-Kept', '1'])
      response.end('ok')
    }
    const { headers } = await fetch(open.url('/free/a'))
    expect([headers.getSetCookie(), headers.get('x-hop'), headers.get('x-kept')]).toEqual([['a=1', 'b=2'], null, '1'])
  })
})

describe('bodies', () => {
  const post = (...lines: string[]): Promise<string> =>
    rawAnswer(open.port, 'POST /free/a HTTP/1.1', 'Host: shop', 'Connection: close', ...lines)

  test('C75: a body arrives as it was sent, with one length', async () => {
    await post('Content-Length: 5', '', 'hello')
    expect([backend.last.body, backend.last.headers['content-length']]).toEqual(['hello', '5'])
    await post('Transfer-Encoding: chunked', '', '5', 'hello', '0', '', '')
    expect([backend.last.body, backend.last.headers['transfer-encoding']]).toEqual(['hello', 'chunked'])
    expect(backend.last.headers['content-length']).toBeUndefined()
    await post('', '')
    expect([backend.last.body, backend.last.headers['content-length']]).toEqual(['', '0'])
    await post('Connection: content-length', 'Content-Length: 5', '', 'hello')
    expect(backend.last.body).toBe('hello')
  })

  const SMUGGLED = 'GET /dear/1 HTTP/1.1\r\nHost: shop\r\n\r\n'
  test.each<[name: string, ...lines: string[]]>([
    ['two lengths', 'Content-Length: 5', 'Content-Length: 6', '', `hello${SMUGGLED}`],
    ['a length and chunks', 'Content-Length: 5', 'Transfer-Encoding: chunked', '', '0', '', SMUGGLED],
    ['chunks and a length', 'Transfer-Encoding: chunked', 'Content-Length: 5', '', '0', '', SMUGGLED],
    ['two encodings', 'Transfer-Encoding: chunked', 'Transfer-Encoding: identity', '', '0', '', SMUGGLED],
    ['an unknown encoding', 'Transfer-Encoding: xchunked', '', '0', '', SMUGGLED],
    ['an encoding before chunked', 'Transfer-Encoding: gzip, chunked', '', '0', '', ''],
    ['a space before the colon', 'Transfer-Encoding : chunked', '', '0', '', SMUGGLED],
    ['a folded header', 'X-A: b', ' Transfer-Encoding: chunked', 'Content-Length: 5', '', `hello${SMUGGLED}`],
    ['a length with a sign', 'Content-Length: +5', '', `hello${SMUGGLED}`],
    ['a bad chunk size', 'Transfer-Encoding: chunked', '', '0x5', 'hello', '0', '', SMUGGLED],
    ['a bare newline in a chunk', 'Transfer-Encoding: chunked', '', '5\nhello', '0', '', SMUGGLED],
  ])('C75: smuggling by %s fails: the request is refused, and no second one arrives', async (_name, ...lines) => {
    const answer = await post(...lines)
    expect(statusIn(answer)).toBeGreaterThanOrEqual(400)
    expect(backend.seen.filter(({ url }) => url !== '/free/a')).toEqual([])
    expect(answer.match(/HTTP\/1\.1 /g)).toHaveLength(1)
  })

  test('C75: a body that is too large is 413', async () => {
    expect(statusIn(await post('Content-Length: 1001', '', ''))).toBe(413)
    expect(backend.seen).toEqual([])
    expect(statusIn(await post('Transfer-Encoding: chunked', '', '3e9', 'a'.repeat(1001), '0', '', ''))).toBe(413)
    expect(backend.seen.map(({ body }) => body)).not.toContain('a'.repeat(1001))
  })

  test('C75: 100 Continue is sent when the request is forwarded, and not for one that is refused', async () => {
    const head = (path: string): string[] => [
      `POST ${path} HTTP/1.1`,
      'Host: shop',
      'Expect: 100-continue',
      'Content-Length: 5',
      '',
      '',
    ]
    const passing = new Raw(open.port).write(...head('/free/a'))
    await passing.shows(/^HTTP\/1\.1 100 Continue\r\n\r\n/)
    passing.write('hello')
    await passing.shows(/200 OK[\s\S]*POST \/free\/a hello/)
    expect(backend.last.headers.expect).toBeUndefined()
    const refused = new Raw(open.port).write(...head('/nothing'))
    await refused.closed
    expect(refused.text).toMatch(/^HTTP\/1\.1 404 [\s\S]*Connection: close/)
  })
})

describe('streams', () => {
  test('C75: parts of a response arrive as they are sent, and so does its head', async () => {
    let send: (text: string | undefined) => void = () => undefined
    backend.handler = (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      send = (text) => void (text === undefined ? response.end() : response.write(text))
    }
    const answer = await fetch(open.url('/free/a'))
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader()
    for (const text of ['data: 1\n\n', 'data: 2\n\n']) {
      send(text)
      expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe(text)
    }
    send(undefined)
    expect((await reader.read()).done).toBe(true)
  })

  test('C75: parts of a body arrive as they are sent', async () => {
    const parts: string[] = []
    backend.handler = (request, response) => {
      request.on('data', (chunk) => {
        parts.push(String(chunk))
        response.write(chunk)
      })
      request.on('end', () => response.end())
    }
    const raw = new Raw(open.port).write('POST /free/a HTTP/1.1', 'Host: shop', 'Transfer-Encoding: chunked', '', '3', 'one', '')
    await raw.shows(/one/)
    raw.write('3', 'two', '')
    await raw.shows(/two/)
    raw.write('0', '', '')
    await raw.shows(/\r\n0\r\n\r\n$/)
    expect(parts).toEqual(['one', 'two'])
  })

  test('C75: a client that does not read slows the upstream down', async () => {
    let written = 0
    let isFull = false
    backend.handler = (_request, response) => {
      const chunk = Buffer.alloc(65_536)
      const more = (): void => {
        while (written < 500_000_000 && response.write(chunk)) written += chunk.length
        isFull = true
        response.once('drain', more)
      }
      more()
    }
    const raw = new Raw(open.port)
    raw.socket.pause()
    raw.write('GET /free/a HTTP/1.1', 'Host: shop', '', '')
    await expect.poll(() => isFull).toBe(true)
    const stopped = async (): Promise<boolean> => {
      const before = written
      await new Promise((resolve) => setTimeout(resolve, 500))
      return before === written
    }
    await expect.poll(stopped).toBe(true)
    expect(written).toBeLessThan(100_000_000)
    raw.socket.destroy()
  })

  test('C75: if the client leaves, the upstream’s request is aborted', async () => {
    const closed = new Promise((resolve) => {
      backend.handler = (_request, response) => void response.once('close', () => resolve(response.writableFinished))
    })
    const arrived = once(backend.server, 'request')
    const raw = new Raw(open.port).write('GET /free/a HTTP/1.1', 'Host: shop', '', '')
    await arrived
    raw.socket.destroy()
    expect(await closed).toBe(false)
  })

  test('C75: if the client leaves during its body, the upstream gets no complete body', async () => {
    const ended = new Promise((resolve) => {
      backend.handler = (request) => {
        request.on('error', () => undefined)
        request.resume().once('close', () => resolve(request.complete))
      }
    })
    const arrived = once(backend.server, 'request')
    const raw = new Raw(open.port).write('POST /free/a HTTP/1.1', 'Host: shop', 'Content-Length: 10', '', 'half')
    await arrived
    raw.socket.destroy()
    expect(await ended).toBe(false)
  })
})

describe('an upstream that fails', () => {
  test('C76: its own errors are passed on', async () => {
    backend.handler = (_request, response) => void response.writeHead(500, { 'x-own': '1' }).end('broken')
    const answer = await fetch(open.url('/free/a'))
    expect([answer.status, answer.headers.get('x-own'), await answer.text()]).toEqual([500, '1', 'broken'])
  })

  test('C76: it is not there: 502 with Retry-After', async () => {
    const { port } = (await Backend.open()).server.address() as { port: number }
    const away = createServer().listen(0, '127.0.0.1')
    await once(away, 'listening')
    const free = (away.address() as { port: number }).port
    await new Promise((resolve) => away.close(resolve))
    expect(free).not.toBe(port)
    const dead = await openProxy({ upstream: `http://127.0.0.1:${free}`, routes: ROUTES })
    const answer = await fetch(dead.url('/free/a'))
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([502, '5'])
    await expect(dead.proxy.reachUpstream()).rejects.toThrow(/ECONNREFUSED/)
    await open.proxy.reachUpstream()
  })

  test('C76: it does not respond in time: 504, and its request is aborted', async () => {
    const slow = await openProxy({ upstream: backend.url, routes: ROUTES, timeouts: { firstByteMs: 3_000 } })
    const closed = new Promise((resolve) => {
      backend.handler = (_request, response) => void response.once('close', resolve)
    })
    const answer = await fetch(slow.url('/free/a'))
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([504, '5'])
    await closed
  })

  test('C76: after the first byte, it may take longer', async () => {
    // Long enough for the first byte on a busy machine.
    const firstByteMs = 5_000
    const slow = await openProxy({ upstream: backend.url, routes: ROUTES, timeouts: { firstByteMs } })
    backend.handler = (_request, response) => {
      response.write('a')
      setTimeout(() => response.end('b'), firstByteMs + 500)
    }
    expect(await (await fetch(slow.url('/free/a'))).text()).toBe('ab')
  })

  test.each([
    ['with a length', { 'content-length': '100' }],
    ['in chunks', {}],
  ])('C76: it breaks off in the middle, %s: so does the response', async (_name, headers) => {
    backend.handler = (_request, response) => {
      response.writeHead(200, headers).write('half')
      setTimeout(() => response.destroy(), 50)
    }
    const raw = new Raw(open.port).write('GET /free/a HTTP/1.1', 'Host: shop', '', '')
    await raw.closed
    expect(raw.text).toContain('half')
    expect(raw.text).not.toMatch(/\r\n0\r\n\r\n/)
  })

  test('C76: it breaks off a response to an HTTP/1.0 client, which sees a reset and not an end', async () => {
    backend.handler = (_request, response) => {
      response.write('half')
      setTimeout(() => response.destroy(), 50)
    }
    const raw = new Raw(open.port)
    const failed = once(raw.socket, 'error')
    raw.write('GET /free/a HTTP/1.0', '', '')
    expect((await failed)[0]).toMatchObject({ code: 'ECONNRESET' })
  })

  test('C76: it responds before it has the whole body: the response arrives, and the connection stays usable', async () => {
    backend.handler = (_request, response) => void response.writeHead(401, { connection: 'close' }).end('no')
    const raw = new Raw(open.port).write('POST /free/a HTTP/1.1', 'Host: shop', 'Content-Length: 10', '', 'half')
    await raw.shows(/401 Unauthorized[\s\S]*no\r\n0\r\n\r\n$/)
    backend.handler = undefined
    raw.text = ''
    raw.write('+half2GET /free/next HTTP/1.1', 'Host: shop', '', '')
    await raw.shows(/GET \/free\/next/)
  })

  test.each([
    ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nhello'],
    ['an unknown encoding', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n'],
    ['another protocol', 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: own\r\n\r\nhello'],
    ['no HTTP', 'hello\r\n\r\n'],
  ])('C76: a malformed response is 502: %s', async (_name, bytes) => {
    const odd = createServer((socket) => {
      socket.on('error', () => undefined)
      socket.once('data', () => socket.end(bytes))
    }).listen(0, '127.0.0.1')
    await once(odd, 'listening')
    const { port } = odd.address() as { port: number }
    const proxy = await openProxy({ upstream: `http://127.0.0.1:${port}`, routes: ROUTES })
    expect((await fetch(proxy.url('/free/a'))).status).toBe(502)
    odd.close()
  })

  /**
   * Answers the first request on each connection, and resets the connection at the second one, as if it had closed the idle
   * connection just before.
   */
  async function resetting(): Promise<{ port: number; requests: string[] }> {
    const requests: string[] = []
    const server = createServer((socket) => {
      let count = 0
      socket.on('error', () => undefined)
      socket.on('data', (chunk) => {
        requests.push(String(chunk).split(' ')[0] ?? '')
        if (++count === 1) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
        else socket.resetAndDestroy()
      })
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    return { port: (server.address() as { port: number }).port, requests }
  }

  test('C76: a kept connection was closed: GET is repeated on a new one, POST is not', async () => {
    const { port, requests } = await resetting()
    const proxy = await openProxy({ upstream: `http://127.0.0.1:${port}`, routes: ROUTES })
    const send = async (method: string): Promise<number> => {
      const answer = await fetch(proxy.url('/free/a'), { method, ...(method === 'GET' ? {} : { body: 'pay' }) })
      await answer.text()
      return answer.status
    }
    expect([await send('GET'), await send('GET')]).toEqual([200, 200])
    expect(requests.splice(0)).toEqual(['GET', 'GET', 'GET'])
    expect([await send('GET'), await send('POST')]).toEqual([200, 502])
    expect(requests).toEqual(['GET', 'POST'])
  })
})

describe('upgrades', () => {
  const sockets = new WebSocketServer({ noServer: true })
  beforeAll(() => {
    backend.server.on('upgrade', (request, socket, head) => {
      backend.seen.push({
        method: 'UPGRADE',
        url: request.url ?? '',
        headers: request.headers,
        names: request.rawHeaders,
        body: '',
      })
      if (request.url === '/free/refused') return void socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno')
      sockets.handleUpgrade(request, socket, head, (client) => client.on('message', (data) => client.send(`echo ${data}`)))
    })
  })

  test('C75: a WebSocket on a free route works both ways', async () => {
    const client = new WebSocket(open.url('/free/ws').replace('http', 'ws'), { headers: { 'x-payment-id': 'pay_1' } })
    await once(client, 'open')
    client.send('hello')
    expect(String((await once(client, 'message'))[0])).toBe('echo hello')
    expect([backend.last.headers['x-api-key'], backend.last.headers['x-payment-id']]).toEqual(['secret', undefined])
    client.close()
    await once(client, 'close')
    for (const one of sockets.clients) await once(one, 'close')
  })

  test('C75: a WebSocket that the upstream refuses gets its response', async () => {
    const client = new WebSocket(open.url('/free/refused').replace('http', 'ws'))
    const [, answer] = await once(client, 'unexpected-response')
    expect(answer.statusCode).toBe(403)
    answer.destroy()
  })

  const upgrade = (path: string, to = 'websocket'): Promise<string> =>
    rawAnswer(
      open.port,
      `GET ${path} HTTP/1.1`,
      'Host: shop',
      'Connection: Upgrade',
      `Upgrade: ${to}`,
      'Sec-WebSocket-Version: 13',
      '',
      '',
    )

  test('C75: a WebSocket on any other route is refused, and nothing reaches the upstream', async () => {
    expect(statusIn(await upgrade('/dear/1'))).toBe(400)
    expect(statusIn(await upgrade('/gone'))).toBe(410)
    expect(statusIn(await upgrade('/nothing'))).toBe(404)
    expect(statusIn(await upgrade('/free/../dear/1'))).toBe(400)
    expect(backend.seen).toEqual([])
  })

  test('C75: an offer of another protocol, as Java’s client sends it, is ignored', async () => {
    expect(await upgrade('/free/a', 'h2c')).toMatch(/^HTTP\/1\.1 200 OK[\s\S]*GET \/free\/a/)
    expect(backend.last.headers.upgrade).toBeUndefined()
    expect(statusIn(await upgrade('/dear/1', 'h2c'))).toBe(503)
  })
})

test('C76: close finishes running requests, refuses new ones, and ends idle connections', async () => {
  const closing = await openProxy({ upstream: backend.url, routes: ROUTES })
  let finish = (): void => undefined
  const arrived = new Promise<void>((resolve) => {
    backend.handler = (_request, response) => {
      finish = () => void response.end('done')
      resolve()
    }
  })
  const idle = new Raw(closing.port).write('GET /nothing HTTP/1.1', 'Host: shop', '', '')
  await idle.shows(/404/)
  const running = new Raw(closing.port).write('GET /free/a HTTP/1.1', 'Host: shop', '', '')
  await arrived
  const closed = closing.proxy.close()
  await idle.closed
  await expect(fetch(closing.url('/free/a'))).rejects.toThrow()
  finish()
  await closed
  await running.closed
  expect(running.text).toMatch(/200 OK[\s\S]*Connection: close[\s\S]*done/)
})
