import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Backend, type OpenProxy, openProxy, Raw, rawAnswer } from './harness.ts'

/** Clients and upstreams that do what no well-meaning program does. No payment is involved. */

let backend: Backend
let open: OpenProxy
const ROUTES = [{ match: '/free/**', free: true as const }]

beforeAll(async () => {
  backend = await Backend.open()
  open = await openProxy({ upstream: backend.url, routes: ROUTES })
})
beforeEach(() => {
  backend.handler = undefined
  backend.seen.length = 0
})

async function namesThatArrive(names: string[]): Promise<string[]> {
  const lines = names.map((name) => `${name}: 6.6.6.6`)
  await rawAnswer(open.port, 'GET /free/a HTTP/1.1', 'Host: shop', 'Connection: close', ...lines, 'X-Other: kept', '', '')
  const arrived = new Set(backend.last.names.map((name) => name.toLowerCase()))
  expect([...arrived]).toContain('x-other')
  return names.filter((name) => arrived.has(name.toLowerCase()))
}

test('C75: a header with an underscore does not arrive: gunicorn would take the path from SCRIPT_NAME', async () => {
  expect(await namesThatArrive(['SCRIPT_NAME', 'Path_Info', 'REMOTE_USER', 'x_other', 'Content_Length'])).toEqual([])
})

test('C75: headers from which frameworks take the path do not arrive', async () => {
  expect(await namesThatArrive(['X-Script-Name', 'X-Original-URI', 'X-Rewrite-Uri', 'X.Script.Name'])).toEqual([])
})

test('C75: if a client leaves, requests that wait behind another one on its connection are aborted too', async () => {
  let running = 0
  backend.handler = (_request, response) => {
    running++
    response.once('close', () => running--)
  }
  const request = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: shop\r\n\r\n`
  const raw = new Raw(open.port).write(request('/free/1') + request('/free/2') + request('/free/3'))
  await expect.poll(() => running).toBe(3)
  raw.socket.destroy()
  await expect.poll(() => running).toBe(0)
})

test('C75: a long response to a client that offers another protocol arrives completely', async () => {
  backend.handler = (_request, response) => void response.end('a'.repeat(5_000_000))
  const offer = ['Connection: Upgrade', 'Upgrade: h2c']
  const answer = await rawAnswer(open.port, 'GET /free/a HTTP/1.1', 'Host: shop', ...offer, '', '')
  // Not with a regular expression: one that repeats a letter can run out of stack on megabytes of it.
  expect(answer.split('a').length - 1).toBeGreaterThanOrEqual(5_000_000)
})

test('C75: a client that offers another protocol and leaves is noticed, whatever it has sent', async () => {
  const closed = new Promise((resolve) => {
    backend.handler = (_request, response) => void response.once('close', resolve)
  })
  const arrived = once(backend.server, 'request')
  const raw = new Raw(open.port).write('GET /free/a HTTP/1.1', 'Host: shop', 'Connection: Upgrade', 'Upgrade: h2c', '', 'more')
  await arrived
  raw.socket.end('and more')
  await closed
})

describe('an upstream that sends a body where there is none', () => {
  const LATE = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL'

  test.each([
    ['HEAD', '200 OK'],
    ['GET', '204 No Content'],
    ['GET', '304 Not Modified'],
  ])('C75: %s with %s: the next response is not that body', async (method, status) => {
    const sockets: Socket[] = []
    const odd = createServer((socket) => {
      const isFirst = sockets.push(socket) === 1
      let isLate = isFirst
      socket.on('error', () => undefined)
      socket.on('data', () => {
        // On the first connection, the body comes when the next request is waiting for its response.
        if (!isFirst) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nGOOD')
        else socket.write(isLate ? `HTTP/1.1 ${status}\r\nContent-Length: ${LATE.length}\r\n\r\n` : LATE)
        isLate = false
      })
    }).listen(0, '127.0.0.1')
    await once(odd, 'listening')
    const proxy = await openProxy({ upstream: `http://127.0.0.1:${(odd.address() as AddressInfo).port}`, routes: ROUTES })
    const first = await fetch(proxy.url('/free/a'), { method })
    expect(first.status).toBe(Number(status.split(' ')[0]))
    expect(await (await fetch(proxy.url('/free/b'))).text()).toBe('GOOD')
    for (const socket of sockets) socket.destroy()
    odd.close()
  })
})

test('C75: headers from which programs take the client’s address or its certificate do not arrive', async () => {
  const names = [
    ...['X-Client-IP', 'Client-IP', 'True-Client-IP', 'CF-Connecting-IP', 'Fastly-Client-IP', 'X-Cluster-Client-IP'],
    ...['X-Azure-ClientIP', 'X-Appengine-User-Ip', 'X-Original-Forwarded-For', 'X-Forwarded'],
    ...['X-SSL-Client-Cert', 'X-SSL-Client-Verify'],
  ]
  expect(await namesThatArrive(names)).toEqual([])
})

test('C75: 204 has no length, whatever the upstream says', async () => {
  const odd = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => socket.end('HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n'))
  }).listen(0, '127.0.0.1')
  await once(odd, 'listening')
  const proxy = await openProxy({ upstream: `http://127.0.0.1:${(odd.address() as AddressInfo).port}`, routes: ROUTES })
  const answer = await rawAnswer(proxy.port, 'GET /free/a HTTP/1.1', 'Host: shop', 'Connection: close', '', '')
  expect(answer).toMatch(/^HTTP\/1\.1 204 /)
  expect(answer).not.toMatch(/content-length/i)
  odd.close()
})

test('C75: the head of a request arrives before the first byte of its body', async () => {
  backend.handler = (_request, response) => void response.writeHead(401).end('no')
  const raw = new Raw(open.port).write('POST /free/a HTTP/1.1', 'Host: shop', 'Content-Length: 5', '', '')
  await raw.shows(/401 Unauthorized/)
})
