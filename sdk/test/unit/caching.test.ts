import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { keepPrivate } from '../../src/paywall/adapters/node-response.ts'
import { privateResponse } from '../../src/paywall/adapters/request.ts'

/** Headers that have precedence over `Cache-Control` in shared caches. */
const OWN = [
  ...['CDN-Cache-Control', 'Cloudflare-CDN-Cache-Control', 'Surrogate-Control', 'X-Accel-Expires', 'Edge-Control'],
  'X-LiteSpeed-Cache-Control',
]
const HEADERS = Object.fromEntries([...OWN, 'X-Other'].map((name) => [name, 'max-age=3600']))

const left = (headers: Headers): string[] => [...OWN, 'X-Other'].filter((name) => headers.has(name))

const WAYS: [string, (response: ServerResponse) => unknown][] = [
  ['setHeader', (response) => response.setHeaders(new Headers(HEADERS)).end()],
  ['an object for writeHead', (response) => response.writeHead(200, HEADERS).end()],
  ['a list for writeHead', (response) => response.writeHead(200, Object.entries(HEADERS).flat()).end()],
]

test.each(WAYS)('C75: on Node, no header of a paid response allows a shared cache to keep it: %s', async (_name, respond) => {
  const server = createServer((_request, response) => {
    keepPrivate(response)
    respond(response)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { headers } = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  expect([headers.get('cache-control'), left(headers)]).toEqual(['private', ['X-Other']])
  server.close()
  server.closeAllConnections()
})

test('C75: nor does any header of a paid `Response`', () => {
  const { headers } = privateResponse(new Response('paid', { headers: HEADERS }))
  expect([headers.get('cache-control'), left(headers)]).toEqual(['private', ['X-Other']])
})
