import { once } from 'node:events'
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { WebSocket } from 'ws'
import { basic, FULL, LIMITED, send, startNetwork, type TestNode } from '../../../sandboxd/test/harness.ts'
import { bothWays, DOMAIN, fakeNode, HANDSHAKE_LINES, main, node, raw, sockets, statusOf, withLimits } from '../support/proxy.ts'

describe('C28: a real daemon behind the proxy', () => {
  let payer: TestNode
  let payee: TestNode
  const at = (path: string): string => `/n/node_payee${path}`
  beforeAll(async () => {
    ;({ payer, payee } = await startNetwork())
    main.nodes.set('node_payee', { host: '127.0.0.1', port: payee.port })
  })

  test('C28: getinfo returns the node’s response with either password, and its refusal without one', async () => {
    for (const password of [FULL, LIMITED]) {
      const headers = { authorization: basic(password) }
      const answer = await send(main.port, 'GET', at('/getinfo'), { headers })
      expect([answer.status, answer.json()]).toEqual([200, (await payee.get('/getinfo', password)).json()])
      expect(answer.json().nodeId).toBe(payee.nodeId)
    }
    const refused = await send(main.port, 'GET', at('/getinfo'))
    const direct = await send(payee.port, 'GET', '/getinfo')
    expect([refused.status, refused.text, refused.headers['www-authenticate']]).toEqual([
      direct.status,
      direct.text,
      direct.headers['www-authenticate'],
    ])
    expect(refused.status).toBe(401)
  })

  test('C28: getinfo returns the node’s response by host name, too', async () => {
    const headers = { authorization: basic(FULL), host: `payee.${DOMAIN}:8080` }
    expect((await send(main.port, 'GET', '/getinfo', { headers })).json().nodeId).toBe(payee.nodeId)
  })

  test('C28: forms, urlencoded and multipart, arrive unchanged', async () => {
    const description = 'ünï & = +%'
    const form = new URLSearchParams({ description, amountSat: '21' }).toString()
    const multipart = ['description', 'amountSat']
      .map(
        (name) => `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${name === 'amountSat' ? 21 : description}\r\n`,
      )
      .join('')
    for (const [type, body] of [
      ['application/x-www-form-urlencoded', form],
      ['multipart/form-data; boundary=b', `${multipart}--b--\r\n`],
    ] as const) {
      const headers = { authorization: basic(FULL), 'content-type': type }
      const answer = await send(main.port, 'POST', at('/createinvoice'), { headers, body })
      expect([answer.status, answer.json().amountSat]).toEqual([200, 21])
      expect((await payee.incoming(answer.json().paymentHash)).description).toBe(description)
    }
  })

  test('C28: payments are made, and events come by websocket, by path and by host, with either way to authenticate', async () => {
    main.nodes.set('node_payer', { host: '127.0.0.1', port: payer.port })
    const authorization = basic(FULL)
    const open = [
      new WebSocket(`ws://127.0.0.1:${main.port}${at('/websocket')}`, { headers: { authorization } }),
      new WebSocket(`ws://127.0.0.1:${main.port}/websocket`, { headers: { authorization, host: `payee.${DOMAIN}` } }),
    ]
    sockets.push(...open)
    await Promise.all(open.map((socket) => once(socket, 'open')))
    const events = open.map((socket) => once(socket, 'message'))
    const { serialized, paymentHash } = await payee.invoice({ amountSat: 5 })
    const headers = { authorization, 'content-type': 'application/x-www-form-urlencoded' }
    const paid = await send(main.port, 'POST', '/n/node_payer/payinvoice', { headers, body: `invoice=${serialized}` })
    expect(paid.json().paymentHash).toBe(paymentHash)
    for (const [data] of await Promise.all(events)) expect(JSON.parse(String(data)).paymentHash).toBe(paymentHash)
  })

  test('C28: a websocket that the node refuses is refused with the node’s own answer', async () => {
    const socket = new WebSocket(`ws://127.0.0.1:${main.port}${at('/websocket')}`)
    const [, response] = await once(socket, 'unexpected-response')
    expect([response.statusCode, response.headers['content-security-policy']]).toEqual([401, "sandbox; default-src 'none'"])
  })
})

describe('C28: what the node gets', () => {
  test.each([
    ['', '/'],
    ['/', '/'],
    ['?a=b', '/?a=b'],
    ['/x?', '/x?'],
    ['//x//y/', '//x//y/'],
    ['/../v1/thing', '/../v1/thing'],
    ['/%2e%2e/..;/v1', '/%2e%2e/..;/v1'],
    ['/a%2Fb%20c%C3%A9?d=%zz&e=+f', '/a%2Fb%20c%C3%A9?d=%zz&e=+f'],
    ['/n/node_b/x', '/n/node_b/x'],
    ['/http://elsewhere/@x', '/http://elsewhere/@x'],
    ["/x'()*!$,;:@[]{}|^`~", "/x'()*!$,;:@[]{}|^`~"],
  ])('C28: the path after the prefix, byte for byte: %s', async (asked, got) => {
    const bytes = `GET /n/node_a${asked} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`
    expect(statusOf(await raw(main.port, Buffer.from(bytes, 'latin1')))).toBe(200)
    expect(node.seen.map(({ url }) => url)).toEqual([got])
  })

  test('C28: every method, HEAD and OPTIONS included', async () => {
    for (const method of ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'QUERY'])
      expect([method, (await send(main.port, method, '/n/node_a/x')).status]).toEqual([method, 200])
    expect(node.seen.map(({ method }) => method).join()).toBe('GET,HEAD,OPTIONS,POST,PUT,PATCH,DELETE,TRACE,QUERY')
  })

  test('C28: requests without a body are forwarded without one, and without chunks', async () => {
    for (const method of ['GET', 'POST', 'PUT', 'DELETE'])
      await raw(main.port, `${method} /n/node_a/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    const framing = node.seen.map(({ headers }) => headers.filter(([name]) => /^(content-length|transfer-encoding)$/.test(name)))
    expect(framing.filter((one) => one.some(([name, value]) => name !== 'content-length' || value !== '0'))).toEqual([])
    expect(framing).toHaveLength(4)
  })

  test('C28: bodies are unchanged, with any type or none, with a length or chunked, for any method', async () => {
    const body = Buffer.from([...Array(256).keys()])
    const types = ['application/json', 'text/plain; charset=utf-16', 'nonsense', '']
    for (const type of types)
      for (const method of ['POST', 'DELETE', 'GET']) {
        const framing = method === 'DELETE' ? { 'transfer-encoding': 'chunked' } : { 'content-length': '256' }
        await send(main.port, method, '/n/node_a/x', { headers: { ...(type ? { 'content-type': type } : {}), ...framing }, body })
        const seen = node.seen.at(-1)
        expect(seen?.body.equals(body)).toBe(true)
        expect(seen?.headers.find(([name]) => name === 'content-type')?.[1] ?? '').toBe(type)
      }
    expect(node.seen).toHaveLength(12)
  })

  test('C28: no cookies, hop-by-hop or forwarding headers; everything else, repeated or not, is kept', async () => {
    const headers = [
      'Host: evil.example',
      'Cookie: session=1',
      'Connection: X-Hop, close, Content-Length',
      'X-Hop: 1',
      'Keep-Alive: timeout=5',
      'Proxy-Authorization: Basic eDp5',
      'Proxy-Anything: 1',
      'TE: trailers',
      'Trailer: X-T',
      'Upgrade: h2c',
      'Forwarded: for=1.2.3.4',
      'X-Forwarded-For: 1.2.3.4',
      'x-forwarded-proto: https',
      'X-Real-IP: 1.2.3.4',
      'Via: 1.1 x',
      `Authorization: ${basic(FULL)}`,
      'X-Request-Id: theirs',
      'X-Twice: 1',
      'X-Twice: 2',
      'Accept: */*',
      'Content-Length: 2',
    ]
    const answer = await raw(main.port, `POST /n/node_a/x HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\nok`)
    expect(statusOf(answer)).toBe(200)
    expect(node.seen[0]?.body.toString()).toBe('ok')
    expect(node.seen[0]?.headers.filter(([name]) => name !== 'connection')).toEqual([
      ['host', `127.0.0.1:${node.port}`],
      ['authorization', basic(FULL)],
      ['x-request-id', 'theirs'],
      ['x-twice', '1'],
      ['x-twice', '2'],
      ['accept', '*/*'],
      ['content-length', '2'],
    ])
  })

  test.each([
    ['Bearer sk_secret'],
    ['bEaReR sk_secret'],
    ['bearer'],
    ['Basic eDp5, Bearer sk_secret'],
    [basic(FULL), basic(FULL)],
    [basic(FULL), 'Bearer sk_secret'],
  ])('C28: an API key, or more than one authorization, is refused and not forwarded: %s %s', async (...values) => {
    const lines = values.filter(Boolean).map((value) => `Authorization: ${value}\r\n`)
    const before = node.connections()
    for (const upgrade of [
      '',
      'Upgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n',
    ]) {
      const connection = upgrade ? 'Upgrade' : 'close'
      const head = `GET /n/node_a/x HTTP/1.1\r\nHost: x\r\nConnection: ${connection}\r\n${upgrade}${lines.join('')}\r\n`
      const answer = await raw(main.port, head)
      expect(statusOf(answer)).toBe(401)
      expect(JSON.parse(answer.split('\r\n\r\n')[1] ?? '').error.code).toBe('unauthorized')
    }
    expect([node.seen.length, node.connections()]).toEqual([0, before])
    expect(main.log()).not.toContain('sk_secret')
  })
})

describe('security 28: an API key reaches no node, wherever it appears', () => {
  const key = `byk_${'a1B2'.repeat(9)}`
  test.each([
    ['without a scheme', '/x', `Authorization: ${key}`],
    ['in a header of another name', '/x', `X-Api-Key: ${key}`],
    ['within a header', '/x', `X-Anything: a=${key}; b`],
    ['as the password of a node', '/x', `Authorization: Basic ${Buffer.from(`:${key}`).toString('base64')}`],
    ['as the user of a node', '/x', `Authorization: basic ${Buffer.from(`${key}:`).toString('base64')}`],
    ['in the query', `/x?key=${key}`, 'Accept: */*'],
    ['in the query, escaped', `/x?key=%62y%6B_${key.slice(4)}`, 'Accept: */*'],
    ['in the path', `/${key}`, 'Accept: */*'],
  ])('security 28: %s', async (_where, path, line) => {
    const before = node.connections()
    for (const answer of await bothWays(main, `/n/node_a${path}`, `Host: x\r\n${line}\r\n`)) {
      expect(statusOf(answer)).toBe(401)
      expect(JSON.parse(answer.split('\r\n\r\n')[1] ?? '').error.code).toBe('unauthorized')
    }
    expect([node.seen.length, node.connections()]).toEqual([0, before])
  })

  test('security 28: a request with an API key in a cookie is not refused, because cookies are not forwarded', async () => {
    for (const answer of await bothWays(main, '/n/node_a/getinfo', `Host: x\r\nCookie: other=${key}\r\n`))
      expect(statusOf(answer)).toBe(200)
    expect(node.seen).toHaveLength(2)
    expect(JSON.stringify(node.seen.map(({ headers }) => headers))).not.toContain(key)
  })
})

describe('C49: pages of other sites', () => {
  const other = [
    ['127.0.0.1:1', 'Origin: http://evil.example'],
    ['127.0.0.1:1', 'Origin: http://127.0.0.1:2'],
    ['127.0.0.1:1', 'Origin: http://127.0.0.1'],
    ['127.0.0.1:1', 'Origin: null'],
    ['127.0.0.1:1', 'Origin: file://'],
    ['127.0.0.1:1', 'Origin: x://127.0.0.1:1'],
    ['127.0.0.1:1', 'Origin: '],
    ['127.0.0.1:1', 'Origin: http://127.0.0.1:1\r\nOrigin: http://evil.example'],
    ['127.0.0.1:1', 'Sec-Fetch-Site: cross-site'],
    ['127.0.0.1:1', 'Sec-Fetch-Site: same-site'],
    ['127.0.0.1:1', 'Origin: http://127.0.0.1:1\r\nSec-Fetch-Site: cross-site'],
    ['127.0.0.1:1', 'Sec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site'],
    [`a.${DOMAIN}`, `Origin: https://b.${DOMAIN}`],
    [`a.${DOMAIN}`, `Origin: https://${DOMAIN}`],
    [`a.${DOMAIN}`, `Origin: https://a.${DOMAIN}.evil.example`],
  ]
  test.each(other)('C49: on %s, %s is 403, and nothing is forwarded', async (host, lines) => {
    const before = node.connections()
    const target = host === `a.${DOMAIN}` ? '/getinfo' : '/n/node_a/getinfo'
    for (const answer of await bothWays(main, target, `Host: ${host}\r\nAuthorization: ${basic(FULL)}\r\n${lines}\r\n`)) {
      expect(statusOf(answer)).toBe(403)
      expect(JSON.parse(answer.split('\r\n\r\n')[1] ?? '').error.code).toBe('forbidden_origin')
    }
    expect([node.seen.length, node.connections()]).toEqual([0, before])
  })

  test.each([
    ['127.0.0.1:1', 'Origin: http://127.0.0.1:1\r\nSec-Fetch-Site: same-origin'],
    ['yard.example', 'Origin: https://yard.example'],
    ['yard.example:443', 'Origin: https://yard.example'],
    ['YARD.example', 'Origin: http://yard.example'],
    ['127.0.0.1:1', 'Sec-Fetch-Site: none'],
    ['127.0.0.1:1', 'Accept: */*'],
  ])('C49: on %s, %s is forwarded', async (host, lines) => {
    for (const answer of await bothWays(main, '/n/node_a/getinfo', `Host: ${host}\r\n${lines}\r\n`))
      expect(statusOf(answer)).toBe(200)
    expect(node.seen).toHaveLength(2)
  })

  test('security 4: a form that another site’s page submits with the browser’s password pays nothing', async () => {
    const headers = {
      authorization: basic(FULL),
      origin: 'http://evil.example',
      'content-type': 'application/x-www-form-urlencoded',
    }
    const answer = await send(main.port, 'POST', '/n/node_a/payinvoice', { headers, body: 'invoice=lnbcrt1' })
    expect([answer.status, answer.json().error.code, node.seen.length]).toEqual([403, 'forbidden_origin', 0])
  })
})

describe('C49: call limits', () => {
  const times = async (count: number, call: (index: number) => Promise<{ status: number }>): Promise<number[]> => {
    const statuses: number[] = []
    for (let done = 0; done < count; done += 50)
      statuses.push(
        ...(await Promise.all(Array.from({ length: Math.min(50, count - done) }, (_, index) => call(done + index)))).map(
          ({ status }) => status,
        ),
      )
    return statuses
  }
  const all = (count: number, status: number): number[] => Array.from({ length: count }, () => status)

  // The clock stands still, because on a busy machine the calls may take longer than the minute for which they are counted.
  beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }))
  afterEach(() => void vi.useRealTimers())

  test('C49: 600 per minute and node, then 429; calls that the node refuses do not count, and other nodes are unaffected', async () => {
    const one = await withLimits({})
    const busy = await fakeNode(({ headers }, response) => response.writeHead(headers.authorization ? 200 : 401).end())
    one.nodes.set('node_busy', busy)
    one.nodes.set('node_a', node)
    const headers = { authorization: basic(FULL) }
    const call = () => send(one.port, 'GET', '/n/node_busy/getinfo', { headers })
    expect(await times(100, () => send(one.port, 'GET', '/n/node_busy/getinfo'))).toEqual(all(100, 401))
    expect(await times(600, call)).toEqual(all(600, 200))
    const refused = await call()
    expect([refused.status, refused.json()]).toEqual([429, { error: { code: 'rate_limited', message: 'rate limit exceeded' } }])
    expect(refused.headers).toMatchObject({ 'x-ratelimit-limit': '600', 'x-ratelimit-remaining': '0' })
    expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(1)
    const handshake = await raw(one.port, `GET /n/node_busy/websocket HTTP/1.1\r\nHost: x\r\n${HANDSHAKE_LINES}\r\n`)
    expect(statusOf(handshake)).toBe(429)
    expect(busy.seen).toHaveLength(700)
    expect((await send(one.port, 'GET', '/n/node_a/')).status).toBe(200)
  })

  test('C49: 1,200 per minute and address, whatever they request; further calls cause no query to the store', async () => {
    const one = await withLimits({})
    let looks = 0
    one.nodes.set('node_counted', async () => {
      looks++
      return node
    })
    expect(await times(1_199, () => send(one.port, 'GET', '/n/node_none/'))).toEqual(all(1_199, 404))
    expect((await send(one.port, 'GET', '/n/node_counted/')).status).toBe(200)
    const refused = await send(one.port, 'GET', '/n/node_counted/')
    expect([refused.status, refused.headers['x-ratelimit-limit'], looks]).toEqual([429, '1200', 1])
    expect((await send(one.port, 'GET', '/v1/thing')).status).toBe(200)
  })
})
