import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { serve } from '@hono/node-server'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { attenuate, l402Credential, macaroonIn } from '../../server/test/support/gateway.ts'
import { fault } from '../../server/test/support/nodes.ts'
import { eventually } from '../../server/test/support/server.ts'
import { paywall as expressPaywall } from '../src/paywall/adapters/express.ts'
import { paywall as fastifyPaywall } from '../src/paywall/adapters/fastify.ts'
import { paywall as honoPaywall } from '../src/paywall/adapters/hono.ts'
import { Gate } from '../src/paywall/index.ts'
import type { PaywallOptions } from '../src/paywall/options.ts'
import { paymentOf } from '../src/paywall/paid.ts'
import { challengesIn, invoiceIn, Market, present } from './paywall-harness.ts'
import { type Opening, SHOPS, type Shop } from './paywall-shops.ts'

/** A paywall's promises: one payment buys one delivery, and a payment for one resource buys no other. */

const open = SHOPS[0]?.[1] as Opening
let market: Market
let shop: Shop
let url: string
beforeAll(async () => {
  market = await Market.open()
})
beforeEach(async () => {
  await market.renew()
  shop = await open(market.terms)
  url = shop.url('/jokes/1')
})

const served = (answers: Response[]): number => answers.filter(({ status }) => status === 200).length

describe('one payment, one delivery', () => {
  test('C45: of twenty concurrent requests with one MPP credential, one is served', async () => {
    const credential = await market.buy(url)
    const answers = await Promise.all(Array.from({ length: 20 }, () => present(url, credential)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    // The others arrived during or after that response.
    expect(answers.filter(({ status }) => status === 409 || status === 402)).toHaveLength(19)
    for (const answer of answers) if (answer.status === 409) expect(challengesIn(answer)).toEqual([])
    expect(shop.delivered).toBe(1)
    expect(answers.filter(({ headers }) => headers.has('payment-receipt'))).toHaveLength(1)
  })

  describe('in two processes', () => {
    const children: ChildProcess[] = []
    afterAll(() => {
      for (const child of children) child.kill()
    })

    test('C45: without shared state, an MPP credential is served once', async () => {
      const env = {
        ...process.env,
        SERVICE_API_KEY: market.owner.key.key,
        SERVICE_BASE_URL: `${market.server.url}/v1`,
        NODE_ID: market.node.node.id,
      }
      const shops = await Promise.all(
        [1, 2].map(async () => {
          const file = fileURLToPath(new URL('paywall-shop-process.ts', import.meta.url))
          const child = fork(file, { execArgv: ['--import', 'tsx'], env })
          children.push(child)
          const [port] = await once(child, 'message')
          return `http://127.0.0.1:${port}/jokes/1`
        }),
      )
      const [here = '', there = ''] = shops
      const credential = await market.buy(here)
      // The process that did not issue the challenge accepts its credential, too.
      expect((await present(there, credential)).status).toBe(200)
      // Until it is confirmed, the delivery is in progress.
      await eventually(async () => (await present(here, credential)).status === 402, 'the confirmation')
      const other = await market.buy(there)
      const answers = await Promise.all([...shops, ...shops, ...shops].map((each) => present(each, other)))
      expect(served(answers)).toBe(1)
    })
  })

  test('L402 61: an L402 credential is served until it expires', async () => {
    const l402 = await open({ ...market.terms, protocol: 'l402' })
    const [challenge = ''] = challengesIn(await fetch(l402.url('/jokes/1')))
    const credential = await market.credentialFor(challenge)
    for (const id of [1, 2, 3]) expect((await present(l402.url(`/jokes/${id}`), credential)).status).toBe(200)
    const lapsed = attenuate(macaroonIn(challenge), `boltyard_valid_until=${Math.floor(Date.now() / 1000)}`)
    const answer = await present(l402.url('/jokes/1'), l402Credential(lapsed, credential.split(':')[1] ?? ''))
    expect([answer.status, challengesIn(answer).length]).toEqual([402, 1])
    expect(await answer.json()).toMatchObject({ type: 'https://paymentauth.org/problems/payment-expired' })
    expect((await present(l402.url('/jokes/1'), credential)).status).toBe(200)
  })

  test('L402 61: with singleUse it is served once, even with concurrent requests', async () => {
    const once = await open({ ...market.terms, protocol: 'l402', singleUse: true })
    const credential = await market.buy(once.url('/jokes/1'))
    const answers = await Promise.all(Array.from({ length: 10 }, () => present(once.url('/jokes/1'), credential)))
    expect(served(answers)).toBe(1)
    expect(once.delivered).toBe(1)
  })
})

describe('a payment for something else', () => {
  const others: [name: string, options: () => Partial<PaywallOptions<any>>, path?: string][] = [
    ['another route', () => ({}), '/public'],
    ['another resource on the same route', () => ({ resource: 'A better joke' })],
    ['another, more expensive resource', () => ({ resource: 'A better joke', amountSat: 1000 })],
    ['another node', () => ({ nodeId: market.otherNode.node.id })],
    ['a protocol that is not offered here', () => ({ protocol: 'l402' })],
  ]
  test.each(others)('%s: is refused with a new challenge and not used up', async (_name, options, path = '/jokes/1') => {
    const elsewhere = await open({ ...market.terms, ...options() })
    const credential = await market.buy(url)
    const answer = await present(elsewhere.url(path), credential)
    expect([answer.status, challengesIn(answer).length, elsewhere.delivered]).toEqual([402, 1, 0])
    expect(market.events.at(-1)).toMatchObject({
      type: 'refused',
      code: 'other_terms',
      presented: expect.stringMatching(/^pay_/),
    })
    // The credential still works for its own resource.
    expect((await present(url, credential)).status).toBe(200)
  })

  test('if the price depends on the request, a payment for the short one does not buy the long one', async () => {
    const app = await open({
      ...market.terms,
      amountSat: async (request: express.Request) => Number(request.query.words ?? 1),
    })
    const short = await market.buy(app.url('/jokes/1?words=5'))
    expect((await present(app.url('/jokes/1?words=500'), short)).status).toBe(402)
    expect((await present(app.url('/jokes/1?words=5'), short)).status).toBe(200)
  })

  test('of another account is refused without revealing anything about it', async () => {
    const stranger = await Market.on(market.server)
    const theirs = await open(stranger.terms)
    const answer = await present(url, await stranger.buy(theirs.url('/jokes/1')))
    expect([answer.status, challengesIn(answer).length]).toEqual([402, 1])
    expect(market.events.at(-1)).toMatchObject({ type: 'refused', code: 'gateway_payment_not_found' })
  })
})

describe('the Authorization header', () => {
  test.each([
    ['a bearer token', 'Bearer eyJhbGciOi.J9.x', 'challenged'],
    ['a password', 'Basic dXNlcjpwYXNz', 'challenged'],
    ['a scheme with quotes in it', 'Digest username="a, Payment abc", nc=00000001', 'challenged'],
    ['a scheme without a token', 'Payment', 'challenged'],
    ['invalid base64', 'Payment !!!', 'refused'],
    ['JSON that is not a credential', 'Payment eyJub3QiOiJvdXJzIn0', 'refused'],
    ['half a macaroon', 'L402 AgEIYm9sdHlhcmQ=:00', 'refused'],
    ['12 KB of letters', `Payment ${'A'.repeat(12_000)}`, 'refused'],
  ])('%s: is answered 402 without asking the gateway about it', async (_name, authorization, type) => {
    const answer = await present(url, authorization)
    expect([answer.status, market.events.map((event) => event.type)]).toEqual([402, [type]])
    expect([...new Set(market.wire.seen.map(({ method, path }) => `${method} ${path}`))]).toEqual(['POST /v1/gateway/payments'])
  })

  test('a payment is accepted before or after a credential of another scheme', async () => {
    for (const around of [(it: string) => `Bearer abc.def, ${it}`, (it: string) => `${it}, Digest username="a, b"`]) {
      expect((await present(url, around(await market.buy(url)))).status).toBe(200)
    }
  })

  test('an invented preimage is refused with a new challenge', async () => {
    const credential = await market.buy(url)
    const [, token = ''] = credential.split(' ')
    const decoded = JSON.parse(Buffer.from(token, 'base64url').toString())
    decoded.payload.preimage = '00'.repeat(32)
    const forged = `Payment ${Buffer.from(JSON.stringify(decoded)).toString('base64url')}`
    const answer = await present(url, forged)
    expect([answer.status, (await answer.json()) as unknown]).toEqual([
      402,
      expect.objectContaining({ type: 'https://paymentauth.org/problems/lightning/invalid-preimage' }),
    ])
    expect((await present(url, credential)).status).toBe(200)
  })
})

describe('calls to the gateway', () => {
  test('selling 3: one call per paid request, and one to confirm many', async () => {
    const slow = shop.url('/slow')
    const credentials = await Promise.all(Array.from({ length: 8 }, () => market.buy(slow)))
    market.wire.seen.length = 0
    // All responses finish at the same time, so that one call confirms them.
    let finish = (): void => undefined
    const work = new Promise<void>((resolve) => {
      finish = resolve
    })
    shop.work = () => work
    const answers = credentials.map((credential) => present(slow, credential))
    await eventually(() => shop.started === 8, 'all to be in progress')
    finish()
    for (const answer of await Promise.all(answers)) expect(answer.status).toBe(200)
    await eventually(async () => {
      const { payments } = await market.client.payments.list({ delivery: 'held' })
      return payments.length === 0
    }, 'the confirmation')
    const posted = market.wire.seen.filter(({ method }) => method === 'POST')
    const calls = [...new Set(posted.map(({ path, body }) => `${path.split('/').at(-1)} ${body}`))]
    expect(calls.filter((call) => call.startsWith('redeem '))).toHaveLength(8)
    const others = calls.filter((call) => !call.startsWith('redeem '))
    expect(others.filter((call) => !call.startsWith('delivered '))).toEqual([])
    expect(others.length).toBeLessThan(8)
  })

  test('events contain no secrets, and a hook that throws or rejects has no effect', async () => {
    const events: unknown[] = []
    const loud = await open({
      ...market.terms,
      onEvent: (event) => {
        events.push(event)
        if (events.length % 2) throw new Error('disk full')
        return Promise.reject(new Error('disk full, later'))
      },
    })
    const at = loud.url('/jokes/1')
    const challenge = challengesIn(await fetch(at))[0] ?? ''
    const credential = await market.credentialFor(challenge)
    expect((await present(at, credential)).status).toBe(200)
    expect((await present(at, credential)).status).toBe(402)
    expect(events.map((event) => (event as { type: string }).type)).toEqual(['challenged', 'delivered', 'refused'])
    const told = JSON.stringify(events)
    const secrets = [credential.split(' ')[1] ?? '', invoiceIn(challenge), challenge, market.owner.key.key]
    expect(secrets.filter((secret) => told.includes(secret))).toEqual([])
  })

  test('an invalid price fails at startup or fails the request; nothing is served for free', async () => {
    for (const amountSat of [0, -1, 1.5, Number.NaN, '10' as never])
      expect(() => new Gate({ ...market.terms, amountSat })).toThrow(/amountSat/)
    expect(() => new Gate({ ...market.terms, nodeId: '' })).toThrow(/nodeId/)
    expect(() => new Gate({ ...market.terms, protocol: 'lsat' as never })).toThrow(/protocol/)
    const careless = await open({ ...market.terms, amountSat: () => Number.NaN })
    expect([(await fetch(careless.url('/jokes/1'))).status, careless.delivered]).toEqual([500, 0])
  })
})

/** Before routing, the pattern is unknown or matches everything, so the payment must be bound to the path. */
describe('in front of a whole site', () => {
  const close: (() => void)[] = []
  afterAll(() => {
    for (const one of close) one()
  })
  const listening = async (server: Server): Promise<string> => {
    close.push(() => server.close().closeAllConnections())
    if (!server.listening) await once(server, 'listening')
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  const sites: [name: string, open: () => Promise<string>, description: string][] = [
    [
      'Express',
      async () => {
        const app = express()
        app.use('/paid', expressPaywall(market.terms))
        app.get('/paid/:thing', (request, response) => void response.json(paymentOf(request)?.description))
        return listening(app.listen(0, '127.0.0.1'))
      },
      'GET /paid/one',
    ],
    [
      'Hono',
      async () => {
        const app = new Hono()
        app.use('/paid/*', honoPaywall(market.terms))
        app.get('*', (c) => c.json(paymentOf(c)?.description))
        return listening(serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }) as Server)
      },
      'GET /paid/one',
    ],
  ]
  test.each(sites)('%s: a payment for one page opens only that page', async (_name, openSite, description) => {
    const site = await openSite()
    const credential = await market.buy(`${site}/paid/one?x=1`)
    expect((await present(`${site}/paid/two`, credential)).status).toBe(402)
    const answer = await present(`${site}/paid/one`, credential)
    expect([answer.status, await answer.json()]).toEqual([200, description])

    // These paths are longer than a description may be, and differ only in the last letter.
    const long = `${site}/paid/${'x'.repeat(2_000)}`
    const paid = await market.buy(`${long}a`)
    expect((await present(`${long}b`, paid)).status).toBe(402)
    const opened = await present(`${long}a`, paid)
    expect([opened.status, await opened.json()]).toEqual([200, expect.stringMatching(/^GET \/paid\/x{489}…$/)])
    const { payments } = await market.client.payments.list({ limit: 1 })
    expect(payments[0]?.resource).toMatch(/^GET sha256:[0-9a-f]{64}$/)
  })

  test('Fastify: the route pattern is known, and a 404 is not sold', async () => {
    const app = fastify()
    app.addHook('onRequest', fastifyPaywall(market.terms))
    app.get('/paid/:thing', async (request) => paymentOf(request))
    await app.listen({ port: 0, host: '127.0.0.1' })
    const site = await listening(app.server)
    const answer = await present(`${site}/paid/two`, await market.buy(`${site}/paid/one`))
    expect([answer.status, await answer.json()]).toEqual([200, expect.objectContaining({ description: 'GET /paid/:thing' })])
    expect((await fetch(`${site}/nothing`)).status).toBe(404)
  })
})

test('if the node is down: 503, without a challenge and without the reason', async () => {
  await fault(market.server, market.otherNode, 'hang')
  const down = await open({ ...market.terms, nodeId: market.otherNode.node.id, patienceMs: 500 })
  const answer = await fetch(down.url('/jokes/1'))
  expect([answer.status, challengesIn(answer), answer.headers.get('retry-after')]).toEqual([503, [], '5'])
  expect(((await answer.json()) as { detail: string }).detail).toBe('Payments cannot be accepted right now. Try again in 5 s.')
  await fault(market.server, market.otherNode, 'none')
})
