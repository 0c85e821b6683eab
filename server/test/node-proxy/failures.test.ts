import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { connect, createServer as createTcpServer, type Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { basic, eventually, send } from '../../../sandboxd/test/harness.ts'
import type { NodeAddress } from '../../src/platform/node-agent.ts'
import {
  DOWN,
  eagerNode,
  fakeNode,
  listenOn,
  main,
  node,
  opened,
  rawNode,
  servers,
  sockets,
  textOf,
  UNKNOWN,
  withLimits,
} from '../support/proxy.ts'

describe('C28: nodes that are missing or failing', () => {
  test('C28: a path without the id of an existing node is 404', async () => {
    for (const path of ['/n/node_b', '/n/node_b/getinfo', '/n/%6eode_a/', '/n/node_a%2f/', '/n/node_a;x/', '/n/../x', '/n//x']) {
      const answer = await send(main.port, 'GET', path)
      expect([path, answer.status, answer.json()]).toEqual([
        path,
        404,
        { error: { code: 'node_not_found', message: 'There is no such node.' } },
      ])
    }
    // An escaped prefix does not reach the proxy at all.
    expect((await send(main.port, 'GET', '/%6e/node_a/')).status).toBe(404)
    expect(node.seen).toEqual([])
  })

  const GARBAGE: [string, (socket: Socket) => void][] = [
    ['resets', (socket) => socket.resetAndDestroy()],
    ['closes', (socket) => socket.end()],
    ['does not send HTTP', (socket) => socket.end('SSH-2.0-OpenSSH_9.6 SECRETBYTES\r\n')],
    ['closes the connection within its headers', (socket) => socket.end('HTTP/1.1 200 OK\r\nX: ')],
    ['sends too long headers', (socket) => socket.write(`HTTP/1.1 200 OK\r\nX: ${'a'.repeat(40_000)}\r\n\r\n`)],
    ['sends two content lengths', (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab')],
    [
      'sends a content length and chunks',
      (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'),
    ],
    ['sends a control character in a header', (socket) => socket.end('HTTP/1.1 200 OK\r\nX: a\x01b\r\n\r\n')],
    ['sends status 000', (socket) => socket.end('HTTP/1.1 000 Zero\r\nContent-Length: 0\r\n\r\n')],
    ['sends status 999', (socket) => socket.end('HTTP/1.1 999 Many\r\nContent-Length: 0\r\n\r\n')],
    ['sends status 99999', (socket) => socket.end('HTTP/1.1 99999 Many\r\nContent-Length: 0\r\n\r\n')],
    ['switches protocols', (socket) => socket.end('HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n')],
    ['sends nothing but 100 Continue', (socket) => socket.end('HTTP/1.1 100 Continue\r\n\r\n'.repeat(1000))],
  ]
  test.each(GARBAGE)(
    'C28: a node that %s: 502 that says that the outcome is unknown, for requests and websockets',
    async (_name, reply) => {
      main.silences.clear()
      main.nodes.set('node_bad', await rawNode(reply))
      const answer = await send(main.port, 'POST', '/n/node_bad/x?q=1', { body: 'body' })
      expect([answer.status, answer.json()]).toEqual([502, UNKNOWN])
      expect(main.silences, 'the node is checked now').toContain('node_bad')
      if (_name === 'switches protocols') return
      const socket = new WebSocket(`ws://127.0.0.1:${main.port}/n/node_bad/x`)
      const [, response] = await once(socket, 'unexpected-response')
      expect([response.statusCode, JSON.parse(await textOf(response))]).toEqual([502, UNKNOWN])
      expect(main.log()).not.toContain('SECRETBYTES')
    },
  )

  test('C28: a node that is down or refuses connections is 502', async () => {
    const gone = await listenOn(createTcpServer())
    servers.at(-1)?.close()
    main.nodes.set('node_gone', gone)
    for (const id of ['node_down', 'node_gone']) {
      const answer = await send(main.port, 'GET', `/n/${id}/getinfo`)
      expect([answer.status, answer.json(), answer.headers['content-type']]).toEqual([
        502,
        DOWN,
        'application/json; charset=utf-8',
      ])
      expect(answer.headers['x-request-id']).toMatch(/^ours-/)
    }
    // The owner may have stopped it, or it may be on another host.
    expect(main.log()).toContain('no address: stopped, or on another host')
  })

  test('C28: after a failure in the middle of a body the connection serves its next request', async () => {
    main.nodes.set('node_bad', await rawNode((socket) => socket.resetAndDestroy()))
    const socket = connect(main.port, '127.0.0.1')
    sockets.push(socket)
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk
    })
    socket.write(`POST /n/node_bad/ HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n${'a'.repeat(20_000)}`)
    await eventually(() => text.includes('502 Bad Gateway'), 'the 502')
    socket.write(`${'a'.repeat(40_000)}GET /n/node_a/next HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    await once(socket, 'close')
    expect(node.seen.map(({ url }) => url)).toEqual(['/next'])
  })

  test('C28: a node that dies during its response: the client’s connection is aborted, never ended as if complete', async () => {
    for (const head of ['Content-Length: 100', 'Transfer-Encoding: chunked']) {
      main.nodes.set('node_dying', await rawNode((socket) => socket.end(`HTTP/1.1 200 OK\r\n${head}\r\n\r\n4\r\nhalf\r\n`)))
      await expect(send(main.port, 'GET', '/n/node_dying/')).rejects.toThrow('aborted')
    }
  })

  test('C28: a client that disconnects ends its request: while sending, waiting or reading', async () => {
    const gone: Promise<unknown>[] = []
    const arrived: IncomingMessage[] = []
    const patient = await eagerNode((request, response) => {
      arrived.push(request)
      gone.push(new Promise((resolve) => request.socket.once('close', resolve)))
      request.on('error', () => undefined).resume()
      if (request.url === '/reading') response.write('some')
    })
    main.nodes.set('node_patient', patient)
    for (const [path, body] of [
      ['sending', 'Content-Length: 9\r\n\r\nhalf'],
      ['waiting', '\r\n'],
      ['reading', '\r\n'],
    ] as const) {
      const socket = connect(main.port, '127.0.0.1')
      socket.write(`POST /n/node_patient/${path} HTTP/1.1\r\nHost: x\r\n${body}`)
      if (path === 'reading') await once(socket, 'data')
      await eventually(() => arrived.at(-1)?.url === `/${path}`, 'the request to arrive')
      socket.destroy()
    }
    await Promise.all(gone)
    expect(gone).toHaveLength(3)
  })
})

test('C28: if the client disconnects during the look-up, the node is not called', async () => {
  let find: (address: NodeAddress) => void = () => undefined
  const found = new Promise<NodeAddress>((resolve) => {
    find = resolve
  })
  const asked = new Promise<void>((resolve) => {
    main.nodes.set('node_later', () => {
      resolve()
      return found
    })
  })
  const accepted = once(main.app.server, 'connection')
  const socket = connect(main.port, '127.0.0.1')
  socket.write('GET /n/node_later/left HTTP/1.1\r\nHost: x\r\n\r\n')
  const [[atServer]] = await Promise.all([accepted, asked])
  socket.destroy()
  await once(atServer, 'close')
  const late = await fakeNode()
  find(late)
  expect((await send(main.port, 'GET', '/n/node_later/stayed')).status).toBe(200)
  expect([late.seen.map(({ url }) => url), late.connections()]).toEqual([['/stayed'], 1])
})

test('C28: requests queued behind another on their connection end with it, and free their places', async () => {
  const one = await withLimits({ concurrent: 4 })
  const urls: (string | undefined)[] = []
  const closed: Promise<unknown>[] = []
  const slow = await eagerNode((request, response) => {
    urls.push(request.url)
    closed.push(once(request.socket, 'close'))
    if (request.url !== '/1') response.write('x'.repeat(1000))
  })
  one.nodes.set('node_slow', slow)
  const socket = connect(one.port, '127.0.0.1')
  socket.write([1, 2, 3, 4].map((path) => `GET /n/node_slow/${path} HTTP/1.1\r\nHost: x\r\n\r\n`).join(''))
  await eventually(() => urls.length === 4, 'all four')
  expect((await send(one.port, 'GET', '/n/node_slow/')).status).toBe(503)
  socket.destroy()
  await Promise.all(closed)
  const outgoing = await opened(one.port, '/n/node_slow/')
  outgoing.end()
  expect((await once(outgoing, 'response'))[0].statusCode).toBe(200)
})

test('C28: Expect: 100-continue is answered by the proxy and not forwarded', async () => {
  const outgoing = await opened(main.port, '/n/node_a/x', {
    method: 'POST',
    headers: { expect: '100-continue', 'content-length': '2' },
  })
  outgoing.flushHeaders()
  await once(outgoing, 'continue')
  outgoing.end('ok')
  expect((await once(outgoing, 'response'))[0].statusCode).toBe(200)
  expect(node.seen.map(({ body, headers }) => [body.toString(), new Map(headers).has('expect')])).toEqual([['ok', false]])
})

test('C28: the log contains no passwords, queries or bodies', async () => {
  const headers = { authorization: basic('PASSWORDCANARY'), 'content-type': 'text/plain', cookie: 'COOKIECANARY=1' }
  for (const id of ['node_a', 'node_down', 'node_none', 'node_bad'])
    await send(main.port, 'POST', `/n/${id}/x?q=QUERYCANARY`, { headers, body: 'BODYCANARY' })
  await eventually(() => main.log().includes('/n/node_bad/x'), 'the log')
  for (const secret of ['PASSWORDCANARY', basic('PASSWORDCANARY').slice(6), 'COOKIECANARY', 'QUERYCANARY', 'BODYCANARY'])
    expect(main.log()).not.toContain(secret)
})
