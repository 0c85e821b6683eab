import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { expect, test } from 'vitest'
import { closeWithConnection, follow } from '../../src/paywall/adapters/node-response.ts'
import { Delivery } from '../../src/paywall/gate/delivery.ts'
import { forward } from '../../src/proxy/http/forward.ts'
import { Upstream } from '../../src/proxy/http/upstream.ts'
import { Backend, openProxy, Raw } from './harness.ts'

/** Nothing remains of a connection or a response that has ended. */

/** Sends this text on a new connection, and returns its first `count` requests and responses as the server sees them. */
async function serverSide(text: string, count = 1): Promise<[IncomingMessage, ServerResponse][]> {
  const got: [IncomingMessage, ServerResponse][] = []
  const all = new Promise<void>((resolve) => {
    const server = createServer((request, response) => {
      if (got.push([request, response]) === count) resolve()
    }).listen(0, '127.0.0.1', () => new Raw((server.address() as AddressInfo).port).write(text))
  })
  await all
  return got
}

const GET = 'GET / HTTP/1.1\r\nHost: shop\r\n\r\n'

test('C75: each connection has one listener for the responses that wait on it, however many there are', async () => {
  const responses = await serverSide(GET.repeat(20), 20)
  const socket = responses[0]?.[0].socket
  const before = socket?.listenerCount('close') ?? 0
  for (const [, response] of responses) {
    closeWithConnection(response)
    // Node emits this event when it is this response's turn on the connection.
    response.emit('socket', socket)
  }
  expect((socket?.listenerCount('close') ?? 0) - before).toBe(1)
  socket?.destroy()
})

test('selling 3: after a second head, which is an error, the response still counts as begun', async () => {
  const [[, response] = []] = await serverSide(GET)
  if (!response) throw new Error('nothing arrived')
  const delivery = new Delivery({} as Delivery['payment'], { receipt: undefined, releaseOnDisconnect: true }, () => undefined)
  follow(response, delivery)
  response.write('half')
  expect(delivery.hasBegun()).toBe(true)
  expect(() => response.writeHead(200)).toThrow()
  expect(delivery.hasBegun()).toBe(true)
  response.destroy()
})

test('C76: a request whose customer leaves before it is forwarded does not reach the upstream, and its payment is released', async () => {
  const backend = await Backend.open()
  const [[request, response] = []] = await serverSide(GET)
  if (!request || !response) throw new Error('nothing arrived')
  response.destroy()
  await once(response, 'close')
  const outcomes: boolean[] = []
  const terms = { receipt: undefined, releaseOnDisconnect: true }
  const delivery = new Delivery({} as Delivery['payment'], terms, ({ delivered }) => outcomes.push(delivered))
  follow(response, delivery)
  const passage = { request, response, url: '/', headers: ['host', 'shop'], delivery, firstByteMs: 60_000, maxBodyBytes: 1 }
  const forwarding = forward(new Upstream(new URL(backend.url)), passage).then(() => 'over')
  expect(await Promise.race([forwarding, once(backend.server, 'request').then(() => 'forwarded')])).toBe('over')
  expect(outcomes).toEqual([false])
})

test('C75: the connection of a client that offers another protocol is closed, even if the client does not close its side', async () => {
  const backend = await Backend.open()
  const { port } = await openProxy({ upstream: backend.url, routes: [{ match: '/free', free: true }] })
  const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  client.on('error', () => undefined).resume()
  client.write('GET /free HTTP/1.1\r\nHost: shop\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n')
  await once(client, 'end')
  // Data that is sent on a closed connection is answered with a reset.
  for (let time = 0; time < 500 && !client.destroyed; time++) {
    client.write('more')
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  expect(client.destroyed).toBe(true)
})
