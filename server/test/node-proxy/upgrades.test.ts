import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect, type Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { basic, eventually, LIMITED, send } from '../../../sandboxd/test/harness.ts'
import type { NodeAddress } from '../../src/platform/node-agent.ts'
import { listenOn, MIB, main, node, pairsOf, raw, rawNode, sockets, statusOf, withLimits } from '../support/proxy.ts'

describe('C28: websockets and other upgrades', () => {
  const KEY = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n'
  const HANDSHAKE = `Host: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${KEY}`

  /** Sends a second request after the first response. After requesting an upgrade, a client must not send anything before that response. */
  async function inTurn(port: number, first: string, second: string): Promise<string> {
    const socket = connect(port, '127.0.0.1')
    sockets.push(socket)
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk
    })
    socket.write(first)
    await once(socket, 'data')
    socket.write(second)
    await once(socket, 'close')
    return text
  }

  /** A node whose websockets echo what they receive. */
  async function echoing(): Promise<NodeAddress & { handshakes: [string, string][][]; server: WebSocketServer }> {
    const http = createServer((_request, response) => response.writeHead(404).end('no'))
    const server = new WebSocketServer({ server: http, path: '/echo' })
    const handshakes: [string, string][][] = []
    server.on('headers', (headers) => headers.push('Set-Cookie: a=b', 'X-Request-Id: theirs'))
    server.on('connection', (socket, request) => {
      handshakes.push(pairsOf(request.rawHeaders))
      socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }))
    })
    return { ...(await listenOn(http)), handshakes, server }
  }

  test('C28: bytes pass both ways, and the handshake’s headers are filtered too', async () => {
    const echo = await echoing()
    main.nodes.set('node_echo', echo)
    const headers = { cookie: 'a=b', 'x-forwarded-for': '1.2.3.4', authorization: basic(LIMITED), 'x-kept': '1' }
    const socket = new WebSocket(`ws://127.0.0.1:${main.port}/n/node_echo/echo?a=b`, { headers })
    sockets.push(socket)
    const [[response]] = await Promise.all([once(socket, 'upgrade'), once(socket, 'open')])
    expect(response.headers['set-cookie']).toBeUndefined()
    expect(response.headers['x-request-id']).toMatch(/^ours-/)
    expect(response.headers['x-content-type-options']).toBe('nosniff')
    const data = Buffer.alloc(4 * MIB, 'x')
    socket.send(data)
    expect(((await once(socket, 'message'))[0] as Buffer).equals(data)).toBe(true)
    const got = new Map(echo.handshakes[0])
    expect([got.get('cookie'), got.get('x-forwarded-for')]).toEqual([undefined, undefined])
    expect([got.get('authorization'), got.get('x-kept'), got.get('host')]).toEqual([
      basic(LIMITED),
      '1',
      `127.0.0.1:${echo.port}`,
    ])
    socket.close(4001, 'bye')
    const [code] = await once([...echo.server.clients][0] as WebSocket, 'close')
    expect(code).toBe(4001)
  })

  test('C28: when one side ends, so does the other', async () => {
    const echo = await echoing()
    main.nodes.set('node_echo', echo)
    const open = async (): Promise<WebSocket> => {
      const socket = new WebSocket(`ws://127.0.0.1:${main.port}/n/node_echo/echo`)
      await once(socket, 'open')
      return socket
    }
    const first = await open()
    const [atNode] = [...echo.server.clients]
    first.terminate()
    await once(atNode as WebSocket, 'close')
    const second = await open()
    for (const client of echo.server.clients) client.terminate()
    await once(second, 'close')
    // The other side also ends if a connection is reset instead of closed.
    const reset = (socket: any): void => socket._socket.resetAndDestroy()
    const third = await open()
    const ended = once([...echo.server.clients][0] as WebSocket, 'close')
    reset(third.on('error', () => undefined))
    await ended
    const fourth = await open()
    for (const client of echo.server.clients) reset(client.on('error', () => undefined))
    await once(fourth, 'close')
  })

  test('C28: bytes that came together with either side of the handshake are not lost', async () => {
    const got: Promise<unknown[]>[] = []
    const hasty = await rawNode((socket) => {
      got.push(once(socket, 'data'))
      socket.write('HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: WebSocket\r\n\r\nfrom the node')
    })
    main.nodes.set('node_hasty', hasty)
    const socket = connect(main.port, '127.0.0.1')
    sockets.push(socket)
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk
    })
    socket.write(`GET /n/node_hasty/x HTTP/1.1\r\n${HANDSHAKE}\r\nfrom the client`)
    await eventually(() => text.endsWith('\r\n\r\nfrom the node'), 'the first bytes of the node')
    expect(String((await got[0])?.[0])).toBe('from the client')
  })

  test('C28: an idle websocket is closed, a busy one is not', async () => {
    // The client sends one message per second, so on a busy machine each may be four seconds late.
    const [idleMs, rounds] = [5_000, 6]
    const one = await withLimits({ websocketIdleMs: idleMs })
    one.nodes.set('node_echo', await echoing())
    const socket = new WebSocket(`ws://127.0.0.1:${one.port}/n/node_echo/echo`)
    await once(socket, 'open')
    const closed = once(socket, 'close').then(() => 'closed')
    const start = performance.now()
    for (let round = 0; round < rounds; round++) {
      const echoed = once(socket, 'message').then(() => 'echoed')
      socket.send('x')
      expect(await Promise.race([echoed, closed])).toBe('echoed')
      await new Promise((resolve) => setTimeout(resolve, idleMs / 5))
    }
    await closed
    expect(performance.now() - start).toBeGreaterThan((rounds * idleMs) / 5 + idleMs * 0.7)
  })

  test('C28: what follows a refused handshake never becomes a request', async () => {
    const answer = await raw(
      main.port,
      `GET /n/node_a/missing HTTP/1.1\r\n${HANDSHAKE}\r\nGET /n/node_a/smuggled HTTP/1.1\r\nHost: x\r\n\r\n`,
    )
    expect([statusOf(answer), answer.match(/HTTP\/1\.1 /g)?.length]).toEqual([404, 1])
    expect(node.seen.map(({ url }) => url)).toEqual(['/missing'])
  })

  test('C28: websockets of a node are limited, separately from its requests', async () => {
    const one = await withLimits({ concurrent: 1 })
    one.nodes.set('node_echo', await echoing())
    const url = `ws://127.0.0.1:${one.port}/n/node_echo/echo`
    const first = new WebSocket(url)
    await once(first, 'open')
    const [, refused] = await once(new WebSocket(url), 'unexpected-response')
    expect([refused.statusCode, refused.headers['retry-after']]).toEqual([503, '1'])
    expect((await send(one.port, 'GET', '/n/node_echo/')).status).toBe(404)
    first.terminate()
    await eventually(async () => {
      const next = new WebSocket(url)
      next.on('error', () => undefined)
      const isOpen = await Promise.race([once(next, 'open').then(() => true), once(next, 'close').then(() => false)])
      next.terminate()
      return isOpen
    }, 'the place to be free again')
  })

  test('C28: a request to upgrade to HTTP/2 is ignored, for nodes and the service, also with a body and for the next request', async () => {
    const wish = 'Host: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n'
    const post = (path: string): string =>
      `POST ${path} HTTP/1.1\r\n${wish}Content-Type: application/json\r\nContent-Length: 7\r\n\r\n{"a":1}`
    const next = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`
    const proxied = await inTurn(main.port, post('/n/node_a/first'), next('/n/node_a/last'))
    expect(proxied.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(2)
    expect(node.seen.map(({ url, body }) => [url, body.toString()])).toEqual([
      ['/first', '{"a":1}'],
      ['/last', ''],
    ])
    expect(node.seen[0]?.headers.map(([name]) => name)).not.toContain('http2-settings')
    const own = await inTurn(main.port, post('/v1/echo'), next('/v1/thing'))
    expect(own).toContain('{"a":1}')
    expect(own).toContain('OF THE SERVICE')
  })

  test('C28: a handshake with the service, which has no websockets, is answered like any other request, and the connection closed', async () => {
    const answer = await raw(main.port, `GET /v1/thing HTTP/1.1\r\n${HANDSHAKE}\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n`)
    expect([statusOf(answer), answer.match(/OF THE SERVICE/g)?.length]).toEqual([200, 1])
  })

  test.each([
    ['with a body', `GET /n/node_a/missing HTTP/1.1\r\n${HANDSHAKE}Content-Length: 5\r\n\r\nhello`],
    ['with chunks', `GET /n/node_a/missing HTTP/1.1\r\n${HANDSHAKE}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`],
    ['by POST', `POST /n/node_a/missing HTTP/1.1\r\n${HANDSHAKE}Content-Length: 5\r\n\r\nhello`],
  ])('C28: a handshake %s is an ordinary request', async (_name, bytes) => {
    const socket = connect(main.port, '127.0.0.1')
    sockets.push(socket)
    socket.write(bytes)
    expect(statusOf(String((await once(socket, 'data'))[0]))).toBe(404)
    expect(node.seen.map(({ body, headers }) => [body.toString(), new Map(headers).has('upgrade')])).toEqual([['hello', false]])
  })

  test('C28: a handshake behind an unanswered request ends the connection and nothing else', async () => {
    main.nodes.set('node_silent', await rawNode(() => undefined))
    const waiting = 'GET /n/node_silent/ HTTP/1.1\r\nHost: x\r\n\r\n'
    expect(await raw(main.port, `${waiting}GET /n/node_a/x HTTP/1.1\r\n${HANDSHAKE}\r\n`)).toBe('')
    expect((await send(main.port, 'GET', '/n/node_a/')).status).toBe(200)
  })

  test('C28: a client that resets during the handshake affects no one else', async () => {
    const held: Socket[] = []
    main.nodes.set('node_silent', await rawNode((socket) => void held.push(socket)))
    const socket = connect(main.port, '127.0.0.1')
    socket.write(`GET /n/node_silent/x HTTP/1.1\r\n${HANDSHAKE}\r\n`)
    await eventually(() => held.length === 1, 'the handshake')
    const closed = once(held[0] as Socket, 'close')
    socket.resetAndDestroy()
    await closed
    expect((await send(main.port, 'GET', '/n/node_a/')).status).toBe(200)
  })

  test('C28: closing ends the websockets, so the app does not wait for them', async () => {
    for (const how of ['close', 'app'] as const) {
      const one = await withLimits({})
      one.nodes.set('node_echo', await echoing())
      const socket = new WebSocket(`ws://127.0.0.1:${one.port}/n/node_echo/echo`)
      await once(socket, 'open')
      const closed = once(socket, 'close')
      if (how === 'close') one.close()
      else await one.app.close()
      await closed
    }
  })
})
