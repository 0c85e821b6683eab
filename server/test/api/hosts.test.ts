import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { PassThrough } from 'node:stream'
import fastify, { type FastifyBaseLogger, type FastifyInstance } from 'fastify'
import { beforeAll, describe, expect, test } from 'vitest'
import { listenOnBothLoopbacks } from '../../src/http/listener.ts'
import { createLogger } from '../../src/platform/log.ts'
import { openApp } from '../support/app.ts'
import { eventually, sendRaw } from '../support/server.ts'

/** `yard` is behind a proxy, with a host name; `local` is on the developer's own machine. */
let yard: { port: number }
let local: { port: number }
beforeAll(async () => {
  const env = {
    HOST: '0.0.0.0',
    PUBLIC_URL: 'https://yard.example',
    NODE_DOMAIN: 'nodes.example:8443',
    ALLOWED_HOSTS: 'other.example, 192.0.2.1,[2001:db8::1]',
    NODE_CALLBACK_URL: 'http://callback.example:8402',
  }
  ;[yard, local] = await Promise.all([openApp(env), openApp()])
})

async function ask({ port }: { port: number }, path: string, lines: string, version = '1.1'): Promise<[number, string]> {
  const text = await sendRaw(port, `GET ${path} HTTP/${version}\r\n${lines}Connection: close\r\n\r\n`)
  const [head = '', body = ''] = text.split('\r\n\r\n')
  return [Number(head.split(' ')[1]), /"code":"(\w+)"/.exec(body)?.[1] ?? '']
}
const host = (name: string): string => `Host: ${name}\r\n`

const PATHS = [
  '/v1/api-key',
  '/openapi.json',
  '/docs',
  '/dashboard/api/me',
  '/nothing',
  '/',
  '/n/node_a/getinfo',
  '/internal/settled/x',
]
const MISDIRECTED = [421, 'misdirected_request']

describe('C51: requests for other hosts are refused', () => {
  test.each([
    'evil.example',
    '127.0.0.1',
    'localhost:8402',
    '[::1]',
    '169.254.169.254',
    'yard.example.evil.example',
    'evil.yard.example',
    'nodes.example',
    'callback.example:8402',
    '192.0.2.10',
    'yard.example@evil.example',
    'yard.example/',
    'yard.example:80:80',
    '*',
    ' ',
  ])('C51: behind a name, Host %j is 421 on every path', async (name) => {
    const paths = name.startsWith('callback') ? PATHS.filter((path) => !path.startsWith('/internal/')) : PATHS
    for (const path of paths) expect([path, ...(await ask(yard, path, host(name)))]).toEqual([path, ...MISDIRECTED])
  })

  test.each(['yard.example', 'YARD.example:443', 'yard.example.', 'other.example:1', '192.0.2.1', '[2001:db8::1]:8402'])(
    'C51: behind a name, Host %j is served',
    async (name) => {
      expect((await ask(yard, '/openapi.json', host(name)))[0]).toBe(200)
      expect(await ask(yard, '/v1/api-key', host(name))).toEqual([401, 'unauthorized'])
    },
  )

  test('C51: a node’s host name reaches only the node; the callback’s host name is for events only', async () => {
    expect(await ask(yard, '/openapi.json', host('abc.nodes.example'))).toEqual([404, 'node_not_found'])
    const { status } = await fetch(`http://127.0.0.1:${yard.port}/healthz`)
    expect(status).toBe(200)
    const post = (name: string): string =>
      `POST /internal/settled/x HTTP/1.1\r\n${host(name)}Content-Length: 0\r\nConnection: close\r\n\r\n`
    expect(await sendRaw(yard.port, post('callback.example:8402'))).toMatch(/^HTTP\/1\.1 401 /)
    expect(await sendRaw(yard.port, post('evil.example'))).toMatch(/^HTTP\/1\.1 421 /)
  })

  test.each([
    'evil.example',
    '127.evil.example',
    '127.0.0.1.evil.example',
    'localhost.evil.example',
    '0.0.0.0',
    '2130706433',
    '0x7f.1',
  ])('C51: on loopback, Host %j is 421: a name that resolves to this machine does not become our origin', async (name) =>
    expect(await ask(local, '/dashboard/api/me', host(name))).toEqual(MISDIRECTED),
  )

  test.each(['127.0.0.1:8402', '127.0.0.1:1', '127.9.9.9', 'localhost', 'LOCALHOST:8402', '[::1]:8402'])(
    'C51: on loopback, Host %j is served',
    async (name) => expect((await ask(local, '/openapi.json', host(name)))[0]).toBe(200),
  )

  test('C51: two Host lines are 421, even if both are ours', async () => {
    expect(await ask(local, '/openapi.json', host('localhost') + host('evil.example'))).toEqual(MISDIRECTED)
    expect(await ask(local, '/openapi.json', `${host('localhost')}hOST: localhost\r\n`)).toEqual(MISDIRECTED)
  })

  test('C51: a missing Host is 400 in HTTP/1.1, which requires one, and 421 in HTTP/1.0', async () => {
    expect(await ask(local, '/openapi.json', '')).toEqual([400, 'bad_request'])
    expect(await ask(local, '/openapi.json', '', '1.0')).toEqual(MISDIRECTED)
    expect((await ask(local, '/openapi.json', host('localhost'), '1.0'))[0]).toBe(200)
  })

  test('C51: health checks answer under any Host', async () => {
    for (const name of ['evil.example', '10.1.2.3:8402', ' '])
      for (const one of [yard, local]) expect((await ask(one, '/healthz', host(name)))[0]).toBe(200)
    expect((await ask(yard, '/healthz', '', '1.0'))[0]).toBe(200)
  })

  test('C51: with NODE_DOMAIN, /n/ on the service’s own host is 404', async () => {
    expect(await ask(yard, '/n/node_a/getinfo', host('yard.example'))).toEqual([404, 'not_found'])
    expect(await ask(local, '/n/node_a/getinfo', host('localhost'))).toEqual([404, 'node_not_found'])
  })

  test('C51: websocket handshakes cannot bypass it', async () => {
    const lines = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'
    const text = await sendRaw(local.port, `GET /n/node_a/websocket HTTP/1.1\r\n${host('evil.example')}${lines}\r\n`)
    expect(text).toMatch(/^HTTP\/1\.1 421 /)
  })
})

test('HOST=localhost listens on both loopback addresses, for the service and for nodes', async () => {
  const { port } = await openApp({ HOST: 'localhost' })
  for (const address of ['127.0.0.1', '[::1]']) {
    const statuses = ['/healthz', '/n/node_a/getinfo'].map(
      async (path) => (await fetch(`http://${address}:${port}${path}`)).status,
    )
    expect(await Promise.all(statuses)).toEqual([200, 404])
  }
})

test('HOST=localhost: if one loopback address cannot be used, a warning names the only one that can', async () => {
  const [log, taken] = [new PassThrough(), createServer()]
  const logger: FastifyBaseLogger = await createLogger('warn', log)
  const app: FastifyInstance = fastify({ loggerInstance: logger })
  app.addHook('onListen', async () => {
    taken.listen((app.server.address() as AddressInfo).port, '::1')
    // If this fails, another program has the port, or there is no IPv6: the address cannot be used either.
    await once(taken, 'listening').catch(() => undefined)
  })
  listenOnBothLoopbacks(app, () => createServer())
  await app.listen({ host: '127.0.0.1', port: 0 })
  const line = await eventually(() => log.read(), 'the warning')
  expect(JSON.parse(String(line)).msg).toBe('cannot listen on ::1; the service is reachable only at 127.0.0.1')
  await app.close()
  taken.close()
})
