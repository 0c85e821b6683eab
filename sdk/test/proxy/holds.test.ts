import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { connect, createServer as createHttp2Server } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { paymentIdOf } from '../../../protocol/src/payment-id.ts'
import { eventually } from '../../../server/test/support/server.ts'
import { paywall } from '../../src/paywall/adapters/express.ts'
import { paywall as honoPaywall } from '../../src/paywall/adapters/hono.ts'
import { paywall as requestPaywall } from '../../src/paywall/adapters/request.ts'
import type { ProxyRouteConfig } from '../../src/proxy/index.ts'
import { gate, Market, present } from '../paywall-harness.ts'
import { Backend, openProxy, Raw } from './harness.ts'

/**
 * Customers who keep a delivery waiting until its hold is over. If the claim then lapsed, they could claim the payment again and
 * again, and every delivery that waits would arrive in the end.
 */

/** A delivery is confirmed after three quarters of its hold, which leaves a busy machine ten seconds. */
const HOLD_SECONDS = 40

let market: Market
let backend: Backend
const ended: (() => unknown)[] = []
/** What the upstream waits for before it responds, by path. */
const works = new Map<string, Promise<void>>()
beforeAll(async () => {
  market = await Market.open()
  backend = await Backend.open()
  backend.handler = (request, response) => {
    if (request.url !== '/free')
      request
        .on('error', () => undefined)
        .resume()
        .once('end', () => void (works.get(request.url ?? '') ?? Promise.resolve()).then(() => response.end('goods')))
  }
})
afterAll(async () => {
  for (const end of ended) await end()
})

async function origin(route: Partial<ProxyRouteConfig> = {}): Promise<string> {
  const { client, nodeId, patienceMs, onEvent } = market.terms
  const routes = [
    { match: '/things/:id', amountSat: 10, holdSeconds: HOLD_SECONDS, ...route },
    { match: '/free', free: true as const },
  ]
  const limits = { openChallengesPerAddress: 0 }
  const { url } = await openProxy({ upstream: backend.url, node: nodeId, limits, routes }, { client, patienceMs, onEvent })
  return url('')
}

async function shop(handle: Parameters<typeof createServer>[1], more: object = {}): Promise<string> {
  const charge = paywall({ ...market.terms, holdSeconds: HOLD_SECONDS, ...more })
  const server = createServer((request, response) => {
    if (request.url === '/free') return
    void charge(request, response, () => void handle?.(request, response))
  }).listen(0, '127.0.0.1')
  ended.push(
    () => server.close(),
    () => server.closeAllConnections(),
  )
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function honoShop(work: Promise<void>): Promise<string> {
  const app = new Hono()
  app.post('/things/:id', honoPaywall({ ...market.terms, holdSeconds: HOLD_SECONDS }), async (context) => {
    await context.req.text()
    await work
    return context.text('goods')
  })
  const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }) as Server
  ended.push(
    () => server.close(),
    () => server.closeAllConnections(),
  )
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function buy(url: string, method: string): Promise<string> {
  const unpaid = await fetch(url, { method })
  return market.credentialFor(unpaid.headers.get('www-authenticate') ?? '')
}

const isIn = async (delivery: 'held' | 'done', credential: string): Promise<boolean> =>
  (await market.client.payments.list({ delivery, limit: 100 })).payments.some(({ id }) => id === paymentIdOf(credential))

/** Waits until the payment is no longer held, and returns whether it is used up. */
async function isUsedUp(credential: string): Promise<boolean> {
  await eventually(() => isIn('held', credential), 'the claim')
  await eventually(async () => !(await isIn('held', credential)), 'the end of the hold')
  return isIn('done', credential)
}

const connectionTo = (url: string): Raw => new Raw(Number(new URL(url).port))
const requestWith = (credential: string, method: string): string[] => [
  `${method} /things/1 HTTP/1.1`,
  'Host: shop',
  `Authorization: ${credential}`,
]

describe('C45: a customer who keeps their delivery waiting uses their payment up', () => {
  const KINDS: [string, () => Promise<string>][] = [
    ['proxy', () => origin()],
    ['node:http', () => shop((_request, response) => void response.end('goods'))],
  ]

  test.concurrent.each(KINDS)('behind a response that does not end, %s', async (_name, open) => {
    const url = await open()
    const credential = await buy(`${url}/things/1`, 'GET')
    connectionTo(url).write('GET /free HTTP/1.1', 'Host: shop', '', ...requestWith(credential, 'GET'), '', '')
    expect(await isUsedUp(credential)).toBe(true)
    expect((await present(`${url}/things/1`, credential)).status).toBe(402)
  })

  const UPLOADS: [string, () => Promise<string>][] = [
    ['proxy', () => origin()],
    ['node:http', () => shop((request, response) => void request.resume().once('end', () => response.end('goods')))],
  ]

  test.concurrent.each(UPLOADS)('by a body that does not end, %s', async (_name, open) => {
    const url = await open()
    const credential = await buy(`${url}/things/2`, 'POST')
    const raw = connectionTo(url)
    raw.write('POST /things/2 HTTP/1.1', 'Host: shop', `Authorization: ${credential}`, 'Content-Length: 2', '', 'a')
    expect(await isUsedUp(credential)).toBe(true)
    raw.write('b')
    await raw.shows(/goods/)
    raw.socket.destroy()
  })

  /** Each starts to work when the body has arrived, and responds when the work is done. */
  const WORKERS: [string, (work: Promise<void>) => Promise<string>][] = [
    [
      'proxy',
      (work) => {
        works.set('/things/4', work)
        return origin()
      },
    ],
    [
      'node:http',
      (work) => shop((request, response) => void request.resume().once('end', () => void work.then(() => response.end('goods')))),
    ],
    ['Hono', honoShop],
  ]

  test.concurrent.each(WORKERS)('by a body that ends after the claim, before long work, %s', async (_name, open) => {
    const work = gate()
    const url = await open(work.wait)
    const credential = await buy(`${url}/things/4`, 'POST')
    const raw = connectionTo(url)
    raw.write('POST /things/4 HTTP/1.1', 'Host: shop', `Authorization: ${credential}`, 'Content-Length: 2', '', 'a')
    await eventually(() => isIn('held', credential), 'the claim')
    raw.write('b')
    expect(await isUsedUp(credential)).toBe(true)
    work.open()
    await raw.shows(/goods/)
    raw.socket.destroy()
  })

  test.concurrent('by a body that ends after the claim, before long work, HTTP/2', async () => {
    const work = gate()
    const charge = paywall({ ...market.terms, holdSeconds: HOLD_SECONDS })
    const server = createHttp2Server((request, response) => {
      const respond = (): void => void request.resume().once('end', () => void work.wait.then(() => response.end('goods')))
      void charge(request as never, response as never, respond)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    ended.push(
      () => session.destroy(),
      () => server.close(),
    )
    const post = { ':method': 'POST', ':path': '/things/5' }
    const unpaid = session.request(post).end()
    const [{ 'www-authenticate': challenge }] = await once(unpaid, 'response')
    const credential = await market.credentialFor(challenge)
    const paid = session.request({ ...post, authorization: credential, 'content-length': '2' })
    paid.write('a')
    await eventually(() => isIn('held', credential), 'the claim')
    paid.end('b')
    expect(await isUsedUp(credential)).toBe(true)
    work.open()
    expect(await text(paid)).toBe('goods')
  })

  test.concurrent('but not if they leave before the end of their request, even if the handler never ends', async () => {
    const url = await shop((request) => void request.resume())
    const credential = await buy(`${url}/things/3`, 'POST')
    const raw = connectionTo(url)
    raw.write('POST /things/3 HTTP/1.1', 'Host: shop', `Authorization: ${credential}`, 'Content-Length: 2', '', 'a')
    expect(await isUsedUp(credential)).toBe(true)
    raw.socket.destroy()
    await eventually(async () => !(await isIn('done', credential)), 'the release')
  })

  test.concurrent('but not if they leave Hono before the end of their request, even if the handler never ends', async () => {
    const url = await honoShop(new Promise(() => undefined))
    const credential = await buy(`${url}/things/6`, 'POST')
    const raw = connectionTo(url)
    raw.write('POST /things/6 HTTP/1.1', 'Host: shop', `Authorization: ${credential}`, 'Content-Length: 1', '', 'a')
    expect(await isUsedUp(credential)).toBe(true)
    raw.socket.destroy()
    await eventually(async () => !(await isIn('done', credential)), 'the release')
  })

  test.concurrent('by not reading the response of a function from Request to Response', async () => {
    const paid = requestPaywall({ ...market.terms, holdSeconds: HOLD_SECONDS }, () => new Response('goods'))
    const unpaid = await paid(new Request('http://shop/things/1'))
    const credential = await market.credentialFor(unpaid.headers.get('www-authenticate') ?? '')
    const response = await paid(new Request('http://shop/things/1', { headers: { authorization: credential } }))
    expect(await isUsedUp(credential)).toBe(true)
    expect(await response.text()).toBe('goods')
  })

  test.concurrent('with releaseOnDisconnect: false, by leaving a handler that takes longer', async () => {
    let finish = (): void => undefined
    const work: Parameters<typeof shop>[0] = (_request, response) => {
      finish = () => void response.end('sent')
    }
    const url = await shop(work, { releaseOnDisconnect: false })
    const credential = await buy(`${url}/things/1`, 'GET')
    const raw = connectionTo(url).write(...requestWith(credential, 'GET'), '', '')
    await eventually(() => isIn('held', credential), 'the claim')
    raw.socket.destroy()
    expect(await isUsedUp(credential)).toBe(true)
    finish()
  })
})
