import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import {
  type ClientHttp2Session,
  connect as connectHttp2,
  constants,
  createServer as createHttp2Server,
  type Http2ServerResponse,
} from 'node:http2'
import { type AddressInfo, connect, type Server, type Socket } from 'node:net'
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { paymentIdOf } from '../../protocol/src/payment-id.ts'
import { eventually } from '../../server/test/support/server.ts'
import { ConnectionError } from '../src/errors.ts'
import { paymentOf, paywall } from '../src/paywall/adapters/express.ts'
import { paywall as honoPaywall } from '../src/paywall/adapters/hono.ts'
import { patiently } from '../src/paywall/gate/patience.ts'
import { challengesIn, gate, Market, present } from './paywall-harness.ts'
import { type Opening, SHOPS } from './paywall-shops.ts'

/** Customers who try to get more than they paid for, and customers who disconnect at bad moments and must not lose their payment. */

let market: Market
const servers: Server[] = []
beforeAll(async () => {
  market = await Market.open()
})
beforeEach(() => market.renew())
afterAll(() => {
  for (const server of servers) server.close()
})

const types = (): string[] => market.events.map(({ type }) => type)
const ending = (): string | undefined => types().find((type) => type === 'delivered' || type === 'undelivered')

async function listening(server: Server): Promise<string> {
  servers.push(server.listen(0, '127.0.0.1'))
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const sourceOf = (file: string): string => new URL(`../src/${file}`, import.meta.url).href

const opened = (listener: RequestListener): Promise<string> => listening(createServer({ keepAliveTimeout: 0 }, listener))

describe('selling 3: a request behind another one on the same connection', () => {
  async function pipelined(): Promise<{ origin: string; free: ReturnType<typeof gate>; begun: ReturnType<typeof gate> }> {
    const [free, begun] = [gate(), gate()]
    const charge = paywall(market.terms)
    const origin = await opened(async (request, response) => {
      if (request.url === '/free') return void free.wait.then(() => response.end('free'))
      await charge(request, response, () => {
        response.write('almost all')
        begun.open()
      })
    })
    return { origin, free, begun }
  }
  const both = (credential: string): string =>
    `GET /free HTTP/1.1\r\nHost: shop\r\n\r\nGET /film HTTP/1.1\r\nHost: shop\r\nAuthorization: ${credential}\r\n\r\n`

  test('a customer who disconnects after its first bytes has used up the payment', async () => {
    const { origin, free, begun } = await pipelined()
    const credential = await market.buy(`${origin}/film`)
    const socket = connect(Number(new URL(origin).port), '127.0.0.1')
    let text = ''
    socket.setEncoding('latin1').on('data', (chunk) => {
      text += chunk
    })
    socket.write(both(credential))
    await begun.wait
    free.open()
    await eventually(() => text.includes('almost all'), 'the bytes')
    socket.destroy()
    await eventually(() => ending() !== undefined, 'the end of the delivery')
    expect(ending()).toBe('delivered')
    expect((await present(`${origin}/film`, credential)).status).toBe(402)
  })

  test.each([
    [true, 'undelivered'],
    [false, 'delivered'],
  ])(
    'a customer who disconnects while the request waits, with releaseOnDisconnect: %s: %s, once the handler has finished',
    async (releaseOnDisconnect, outcome) => {
      const [begun, left, done] = [gate(), gate(), gate()]
      const charge = paywall({ ...market.terms, releaseOnDisconnect })
      const origin = await opened(async (request, response) => {
        if (request.url === '/free') return
        if (request.headers.authorization) response.once('close', left.open)
        await charge(request, response, async () => {
          begun.open()
          await done.wait
          response.end('film')
        })
      })
      const credential = await market.buy(`${origin}/film`)
      const socket = connect(Number(new URL(origin).port), '127.0.0.1')
      socket.write(both(credential))
      await begun.wait
      socket.destroy()
      await left.wait
      expect(ending()).toBeUndefined()
      done.open()
      await eventually(() => ending() !== undefined, 'the end of the delivery')
      expect(ending()).toBe(outcome)
    },
  )

  test('D3: a customer who disconnects before its first bytes is served on return, whatever was sent before it', async () => {
    const [begun, left, done] = [gate(), gate(), gate()]
    const charge = paywall(market.terms)
    const origin = await opened(async (request, response) => {
      if (request.url === '/free') return void response.end('free')
      if (request.headers.authorization) response.once('close', left.open)
      await charge(request, response, async () => {
        begun.open()
        await done.wait
        response.end('film')
      })
    })
    const credential = await market.buy(`${origin}/film`)
    const socket = connect(Number(new URL(origin).port), '127.0.0.1')
    socket.write('GET /free HTTP/1.1\r\nHost: shop\r\n\r\n')
    await once(socket, 'data')
    socket.write(`GET /film HTTP/1.1\r\nHost: shop\r\nAuthorization: ${credential}\r\n\r\n`)
    await begun.wait
    socket.destroy()
    await left.wait
    done.open()
    await eventually(() => ending() !== undefined, 'the end of the delivery')
    expect(ending()).toBe('undelivered')
    expect((await present(`${origin}/film`, credential)).status).toBe(200)
  })
})

describe('selling 3: HTTP/2', () => {
  async function film(work: (response: Http2ServerResponse) => unknown): Promise<string> {
    const charge = paywall(market.terms)
    const server = createHttp2Server(
      // The responses of HTTP/1 and HTTP/2 have different types for `end`.
      (request, response) => void charge(request, response as unknown as ServerResponse, () => work(response)),
    )
    return listening(server)
  }
  async function bought(origin: string): Promise<{ credential: string; session: ReturnType<typeof connectHttp2> }> {
    const session = connectHttp2(origin)
    const unpaid = session.request({ ':path': '/film' }).resume()
    const [headers] = await once(unpaid, 'response')
    return { credential: await market.credentialFor(String(headers['www-authenticate'])), session }
  }

  test.each(['NGHTTP2_INTERNAL_ERROR', 'NGHTTP2_CANCEL', 'NGHTTP2_NO_ERROR'] as const)(
    'a customer who resets the stream with %s after the first bytes has used up the payment',
    async (code) => {
      const origin = await film((response) => response.write('almost all'))
      const { credential, session } = await bought(origin)
      const stream = session.request({ ':path': '/film', authorization: credential }).on('error', () => undefined)
      await once(stream, 'data')
      stream.close(constants[code])
      await eventually(() => ending() !== undefined, 'the end of the delivery')
      session.destroy()
      expect(ending()).toBe('delivered')
    },
  )

  const BREAKING: [string, (session: ClientHttp2Session, socket: Socket) => unknown][] = [
    ['sends GOAWAY with an error', (session) => session.goaway(constants.NGHTTP2_INTERNAL_ERROR)],
    // A PUSH_PROMISE frame, which a client may not send.
    ['sends a malformed frame', (_session, socket) => socket.write(Buffer.from([0, 0, 4, 5, 4, 0, 0, 0, 1, 0, 0, 0, 2]))],
    ['resets the connection', (_session, socket) => socket.resetAndDestroy()],
  ]

  test.each(BREAKING)('a customer who %s after the first bytes has used up the payment', async (_name, breakOff) => {
    const origin = await film((response) => response.write('almost all'))
    const { credential } = await bought(origin)
    const socket = connect(Number(new URL(origin).port), '127.0.0.1').on('error', () => undefined)
    const session = connectHttp2(origin, { createConnection: () => socket }).on('error', () => undefined)
    const stream = session.request({ ':path': '/film', authorization: credential }).on('error', () => undefined)
    await once(stream, 'data')
    breakOff(session, socket)
    await eventually(() => ending() !== undefined, 'the end of the delivery')
    session.destroy()
    expect(ending()).toBe('delivered')
  })

  test('D3: a response that the shop aborts is not delivered', async () => {
    const customer = gate()
    const origin = await film(async (response) => {
      response.write('almost all')
      await customer.wait
      response.stream.destroy(new Error('broken off'))
    })
    const { credential, session } = await bought(origin)
    const stream = session.request({ ':path': '/film', authorization: credential }).on('error', () => undefined)
    await once(stream, 'data')
    customer.open()
    await eventually(() => ending() !== undefined, 'the end of the delivery')
    session.destroy()
    expect(ending()).toBe('undelivered')
  })

  test('D3: a customer who disconnects before the first bytes is served on return', async () => {
    const [begun, shop] = [gate(), gate()]
    const origin = await film(async (response) => {
      begun.open()
      await shop.wait
      response.end('film')
    })
    const { credential, session } = await bought(origin)
    const stream = session.request({ ':path': '/film', authorization: credential }).on('error', () => undefined)
    await begun.wait
    stream.close(constants.NGHTTP2_CANCEL)
    await once(stream, 'close')
    // This response comes on the same connection, so the shop has seen the reset by then.
    await once(session.request({ ':path': '/film' }).resume(), 'end')
    shop.open()
    await eventually(() => ending() !== undefined, 'the end of the delivery')
    expect(ending()).toBe('undelivered')
    const again = session.request({ ':path': '/film', authorization: credential }).resume()
    expect((await once(again, 'response'))[0][':status']).toBe(200)
    session.destroy()
  })

  test.each([200, 204])('a complete response with status %i is delivered', async (status) => {
    const origin = await film((response) => response.writeHead(status).end(status === 200 ? 'film' : ''))
    const { credential, session } = await bought(origin)
    await once(session.request({ ':path': '/film', authorization: credential }).resume(), 'end')
    await eventually(() => ending() !== undefined, 'the end of the delivery')
    session.destroy()
    expect(ending()).toBe('delivered')
  })
})

test('D3: a customer who disconnected before the paywall ran claims nothing and is served on return', async () => {
  const charge = paywall(market.terms)
  const [arrived, left] = [gate(), gate()]
  const origin = await opened(async (request, response) => {
    if (request.headers['x-impatient']) {
      arrived.open()
      await once(response, 'close')
    }
    await charge(request, response, () => response.end('film'))
    if (request.headers['x-impatient']) left.open()
  })
  const credential = await market.buy(`${origin}/film`)
  const controller = new AbortController()
  const headers = { authorization: credential, 'x-impatient': '1' }
  const lost = fetch(`${origin}/film`, { headers, signal: controller.signal }).catch(() => 'lost')
  await arrived.wait
  controller.abort()
  expect(await lost).toBe('lost')
  await left.wait
  expect((await present(`${origin}/film`, credential)).status).toBe(200)
})

test('D3: a Hono handler that throws something other than an Error has not delivered', async () => {
  const app = new Hono()
  let isRepaired = false
  app.get('/film', honoPaywall(market.terms), (c) => {
    if (!isRepaired) throw 'out of film'
    return c.text('film')
  })
  const origin = await listening(serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }) as Server)
  const credential = await market.buy(`${origin}/film`)
  await present(`${origin}/film`, credential)
  isRepaired = true
  expect((await present(`${origin}/film`, credential)).status).toBe(200)
})

test('C48: whatever the release reason, the customer is served on return', async () => {
  const charge = paywall(market.terms)
  const reasons = ['sold\u202eout', 'zero\u200bwidth', 'two\u2028lines\u2029', '\ufeff', '\u0000', '\ud800', '⚡'.repeat(500), '']
  const origin = await opened(async (request, response) => {
    await charge(request, response, () => {
      const reason = reasons.shift()
      if (reason !== undefined) paymentOf(request)?.release(reason)
      response.end('film')
    })
  })
  const credential = await market.buy(`${origin}/film`)
  const tries = reasons.length + 1
  for (let time = 0; time < tries; time++) expect((await present(`${origin}/film`, credential)).status).toBe(200)
  expect((await present(`${origin}/film`, credential)).status).toBe(402)
})

describe.each(SHOPS as [string, Opening][])('C45: a response that takes longer than its hold, in %s', (_name, open) => {
  test('is sold once: the payment is used up from the first bytes on, unless the shop aborts the response', async () => {
    const shop = await open({ ...market.terms, holdSeconds: 4 })
    const work = gate()
    shop.work = () => work.wait
    const url = shop.url('/broken-off')
    const credential = await market.buy(url)
    const slow = await present(url, credential)
    const reader = slow.body?.getReader()
    expect(new TextDecoder().decode((await reader?.read())?.value)).toBe('half')
    await eventually(async () => {
      const { payments } = await market.client.payments.list({ delivery: 'done' })
      return payments.some(({ id }) => id === paymentIdOf(credential))
    }, 'the confirmation')
    const second = await present(url, credential)
    expect([second.status, challengesIn(second).length]).toEqual([402, 1])
    work.open()
    await expect(reader?.read()).rejects.toThrow()
    await eventually(() => ending() !== undefined, 'the end of the delivery')
    expect(ending()).toBe('undelivered')
    shop.isRepaired = true
    expect((await present(url, credential)).status).toBe(200)
  })
})

test('C45: a disconnect between two redemption attempts does not hide that the first may have claimed it', async () => {
  const controller = new AbortController()
  const lost = new ConnectionError('lost', { code: 'connection_failed' })
  const attempt = async (): Promise<never> => {
    setImmediate(() => controller.abort())
    throw lost
  }
  await expect(patiently(10_000, controller.signal, attempt)).rejects.toBe(lost)
})

test('C48: an unreachable gateway does not keep a program with unreleased claims from exiting', async () => {
  const program = `
    const { Boltyard } = await import(${JSON.stringify(sourceOf('boltyard.ts'))})
    const { Claims } = await import(${JSON.stringify(sourceOf('paywall/gate/claims.ts'))})
    const client = new Boltyard({ apiKey: 'sk_x', baseUrl: 'http://127.0.0.1:1/v1', maxRetries: 0 })
    new Claims(client, 600).release({ id: 'pay_x', requestId: 'x' }, 'the handler failed')`
  const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', program], { stdio: 'ignore' })
  onTestFinished(() => void child.kill('SIGKILL'))
  expect(await once(child, 'exit')).toEqual([0, null])
})
