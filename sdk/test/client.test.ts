import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { credentialOf, invoiceIn, newMerchant, preimageFrom } from '../../server/test/support/gateway.ts'
import { freezeHub } from '../../server/test/support/nodes.ts'
import { NOWHERE } from '../../server/test/support/payments.ts'
import { eventually, PROCESS, type Server, startServer } from '../../server/test/support/server.ts'
import {
  AuthenticationError,
  BadRequestError,
  Boltyard,
  BoltyardError,
  ConflictError,
  ConnectionError,
  type CreatedPayment,
  CredentialError,
  ExpiredError,
  InsufficientCreditError,
  NotFoundError,
  RateLimitError,
  ServiceError,
  TimeoutError,
  UncertainOutcomeError,
} from '../src/index.ts'
import { Wire } from './wire.ts'

/** The client against the real service, over a connection that can lose requests and responses on demand. */
let server: Server
let wire: Wire
let boltyard: Boltyard
let apiKey: string

beforeAll(async () => {
  server = await startServer({ command: PROCESS, env: { RATE_LIMIT_MAX: '100000', CHALLENGE_LIFETIME_SECONDS: '300' } })
  wire = await new Wire(server.url).open()
  apiKey = (await server.newKey(['nodes:write', 'gateway:write'])).key
  boltyard = new Boltyard({ apiKey, baseUrl: wire.baseUrl, timeoutMs: 120_000 })
})

beforeEach(() => {
  wire.faults = []
  wire.seen.length = 0
  wire.holdMs = 0
  wire.ready = Promise.resolve()
})
afterEach(() => {
  vi.unstubAllEnvs()
})

const fails = <T>(call: Promise<unknown>, kind: abstract new (...of: never[]) => T): Promise<T> =>
  call.then(
    () => {
      throw new Error('it did not fail')
    },
    (error) => {
      expect(error).toBeInstanceOf(kind)
      return error
    },
  )

const pay = async ({ challenge }: CreatedPayment): Promise<string> => {
  const answer = await server.operator('POST', '/sandbox/pay', { json: { invoice: invoiceIn(challenge) } })
  return answer.json().preimage
}

describe('the main use cases', () => {
  test('a node is created, becomes ready, and is renamed, stopped, started, restarted and deleted', async () => {
    const { node, credentials } = await boltyard.nodes.create({ name: 'shop' })
    expect(credentials.seed.split(' ')).toHaveLength(12)
    const seen: string[] = []
    const ready = await boltyard.nodes.waitUntilReady(node.id, { onStatus: ({ status }) => seen.push(status) })
    expect(ready).toMatchObject({ id: node.id, name: 'shop', status: 'ready' })
    expect(seen.at(-1)).toBe('ready')
    expect((await boltyard.nodes.list()).map(({ id }) => id)).toContain(node.id)
    expect(await boltyard.nodes.rename(node.id, 'kiosk')).toMatchObject({ name: 'kiosk' })
    expect((await boltyard.nodes.updates(node.id)).updateAvailable).toBe(false)
    expect(await boltyard.nodes.stop(node.id)).toMatchObject({ status: 'stopped' })
    await boltyard.nodes.start(node.id)
    await boltyard.nodes.waitUntilReady(node.id)
    await boltyard.nodes.restart(node.id)
    await boltyard.nodes.waitUntilReady(node.id)
    await boltyard.nodes.delete(node.id)
    await fails(boltyard.nodes.get(node.id), NotFoundError)
  })

  test('a payment of each protocol is created, paid, validated, redeemed, read and listed', async () => {
    const { node } = await boltyard.nodes.create()
    await boltyard.nodes.waitUntilReady(node.id)
    for (const protocol of ['mpp', 'l402'] as const) {
      const payment = await boltyard.payments.create({ nodeId: node.id, amountSat: 21, description: 'a joke', protocol })
      const early = await fails(boltyard.payments.validate(payment.id, credentialOf(payment, '00'.repeat(32))), CredentialError)
      expect(early).toMatchObject({ code: 'invalid_payment_credential', status: 400, notSettled: false })
      const credential = credentialOf(payment, await pay(payment))
      const paid = await boltyard.payments.validate(payment.id, credential)
      expect(paid).toMatchObject({ id: payment.id, protocol, status: 'paid' })
      const redeemed = await boltyard.payments.redeem(payment.id, { credential, singleUse: true })
      expect(redeemed).toMatchObject({ nodeId: node.id, amountSat: 21, description: 'a joke' })
      const again = await fails(boltyard.payments.redeem(payment.id, { credential, singleUse: true }), ConflictError)
      expect(again.code).toBe('already_redeemed')
      expect(await boltyard.payments.get(payment.id)).toMatchObject({ status: 'paid', challenge: payment.challenge })
    }
    const page = await boltyard.payments.list({ limit: 1, nodeId: node.id })
    expect(page.payments).toHaveLength(1)
    const all: string[] = []
    for await (const { protocol } of boltyard.payments.all({ limit: 1, nodeId: node.id })) all.push(protocol)
    expect(all).toEqual(['l402', 'mpp'])
  })

  test('the key’s account and scopes', async () => {
    expect((await boltyard.key()).scopes).toEqual(['nodes:read', 'nodes:write', 'gateway:write'])
  })
})

describe('a lost response', () => {
  test('C41: creates no second node, and the second response has the credentials', async () => {
    const before = (await boltyard.nodes.list()).length
    wire.faults = ['lose answer', 'lose answer']
    const { credentials } = await boltyard.nodes.create()
    expect(credentials.seed.split(' ')).toHaveLength(12)
    expect(await boltyard.nodes.list()).toHaveLength(before + 1)
    const keys = wire.seen.filter(({ method }) => method === 'POST').map(({ idempotencyKey }) => idempotencyKey)
    expect(keys).toHaveLength(3)
    expect(new Set(keys).size).toBe(1)
  })

  test('C41: creates no second payment', async () => {
    const { node } = await boltyard.nodes.create()
    await boltyard.nodes.waitUntilReady(node.id)
    wire.faults = ['lose answer']
    const { id } = await boltyard.payments.create({ nodeId: node.id, amountSat: 1, description: 'once' })
    expect((await boltyard.payments.list({ nodeId: node.id })).payments.map((payment) => payment.id)).toEqual([id])
  })

  test('C45: of a redemption is retried without a second claim', async () => {
    const { node } = await boltyard.nodes.create()
    await boltyard.nodes.waitUntilReady(node.id)
    const payment = await boltyard.payments.create({ nodeId: node.id, amountSat: 1, description: 'once' })
    const credential = credentialOf(payment, await pay(payment))
    wire.faults = ['lose answer']
    expect(await boltyard.payments.redeem(payment.id, { credential })).toMatchObject({ status: 'paid' })
  })

  test('C41, C45: that ends a call: the error has the key or id to repeat it with', async () => {
    // With `fetch`, a request that fails on a reused connection is not sent again immediately.
    const once = new Boltyard({ apiKey, baseUrl: wire.baseUrl, maxRetries: 0, timeoutMs: 120_000, fetch })
    wire.faults = ['lose answer']
    const lost = await fails(once.nodes.create({ name: 'lost' }), ConnectionError)
    const idempotencyKey = String(lost.details.idempotencyKey)
    const { node, credentials } = await once.nodes.create({ name: 'lost' }, { idempotencyKey })
    expect(credentials.seed.split(' ')).toHaveLength(12)
    expect((await once.nodes.list()).filter(({ name }) => name === 'lost').map(({ id }) => id)).toEqual([node.id])

    await once.nodes.waitUntilReady(node.id)
    const payment = await once.payments.create({ nodeId: node.id, amountSat: 1, description: 'once' })
    const credential = credentialOf(payment, await pay(payment))
    await eventually(() => once.payments.validate(payment.id, credential), 'the payment to be settled')
    wire.faults = ['lose answer']
    const unclaimed = await fails(once.payments.redeem(payment.id, { credential }), ConnectionError)
    const requestId = String(unclaimed.details.requestId)
    expect(await once.payments.redeem(payment.id, { credential, requestId })).toMatchObject({ status: 'paid' })
  })

  test('C41: before a refusal: the error has the key too; not if every attempt was refused', async () => {
    // The next request reuses this connection, so it is sent again immediately after the lost response.
    await boltyard.key()
    wire.seen.length = 0
    wire.faults = ['lose answer', tooMany(300)]
    const { details } = await fails(boltyard.nodes.create(), RateLimitError)
    expect(details).toEqual({ idempotencyKey: wire.seen[0]?.idempotencyKey })
    wire.faults = [tooMany(300)]
    expect((await fails(boltyard.nodes.create(), RateLimitError)).details).toEqual({})
  })

  test('of a deletion: 404 on the retry means success; without a lost response it stays 404', async () => {
    const { node } = await boltyard.nodes.create()
    wire.faults = ['lose answer']
    await boltyard.nodes.delete(node.id)
    await fails(boltyard.nodes.delete(node.id), NotFoundError)
  })

  test('of a stop or a start: the node is read, and nothing is done twice', async () => {
    const { node } = await boltyard.nodes.create()
    await boltyard.nodes.waitUntilReady(node.id)
    for (const [step, reached] of [
      ['stop', ['stopped']],
      ['start', ['provisioning', 'ready']],
    ] as const) {
      wire.seen.length = 0
      wire.faults = ['lose answer']
      const { status } = await boltyard.nodes[step](node.id)
      expect(reached).toContain(status)
      expect(wire.seen.map(({ method }) => method)).toEqual(['POST', 'GET'])
      if (step === 'start') await boltyard.nodes.waitUntilReady(node.id)
    }
    wire.seen.length = 0
    wire.faults = ['cut']
    expect(await boltyard.nodes.stop(node.id)).toMatchObject({ status: 'stopped' })
    expect(wire.seen.map(({ method }) => method)).toEqual(['POST', 'GET', 'POST'])
  })

  test.each(['restart', 'update'] as const)('of a %s is reported and never retried', async (step) => {
    const { node } = await boltyard.nodes.create()
    await boltyard.nodes.waitUntilReady(node.id)
    for (const fault of ['lose answer', 'cut', { status: 503 }] as const) {
      wire.seen.length = 0
      wire.faults = [fault]
      const error = await fails(boltyard.nodes[step](node.id), UncertainOutcomeError)
      expect(error.code).toBe('uncertain_outcome')
      expect(wire.seen).toHaveLength(1)
      await boltyard.nodes.waitUntilReady(node.id)
    }
  })

  test('of a restart is not uncertain if nothing was listening: it is retried, then reported as a connection error', async () => {
    const nobody = new Boltyard({ apiKey, baseUrl: `${NOWHERE}/v1`, maxRetries: 1 })
    const error = await fails(nobody.nodes.restart('node_00000000000000000000'), ConnectionError)
    expect(error.code).toBe('connection_failed')
  })
})

describe('waiting', () => {
  test('429: retries slightly after Retry-After, not before', async () => {
    wire.faults = [tooMany(1)]
    await boltyard.nodes.list()
    const [first, second] = wire.seen.map(({ atMs }) => atMs)
    expect((second ?? 0) - (first ?? 0)).toBeGreaterThanOrEqual(1000)
  })

  test('429: also retries a restart, which was certainly not carried out', async () => {
    const { node } = await boltyard.nodes.create()
    await boltyard.nodes.waitUntilReady(node.id)
    wire.faults = [tooMany(1)]
    expect(await boltyard.nodes.restart(node.id)).toMatchObject({ id: node.id })
  })

  test.each([
    ['that exceeds the time limit of the whole call', 300, { totalTimeoutMs: 120_000 }],
    ['of more than 5 s, without a total timeout,', 6, {}],
  ])('D14: a 429 %s is reported at once, with its Retry-After', async (_what, seconds, options) => {
    wire.faults = [tooMany(seconds)]
    const error = await fails(boltyard.key(options), RateLimitError)
    expect(error).toMatchObject({ status: 429, code: 'rate_limited', retryAfterSeconds: seconds })
    expect(wire.seen).toHaveLength(1)
  })

  test('the total timeout bounds an attempt and the wait in the queue', async () => {
    const { attempts, fetch } = countedFetch()
    const one = new Boltyard({ apiKey, baseUrl: wire.baseUrl, maxConcurrency: 1, timeoutMs: 120_000, fetch })
    wire.ready = new Promise(() => undefined)
    const abort = new AbortController()
    const first = fails(one.key({ signal: abort.signal }), Error)
    await eventually(() => wire.seen.length === 1, 'the first to be under way')
    expect(await fails(one.key({ totalTimeoutMs: 50 }), TimeoutError)).toMatchObject({ code: 'timeout' })
    // The restart never left the queue, so it was certainly not carried out.
    await fails(one.nodes.restart('node_00000000000000000000', { totalTimeoutMs: 50 }), TimeoutError)
    expect(attempts).toHaveLength(1)
    abort.abort()
    await first
    await fails(one.key({ totalTimeoutMs: 50 }), TimeoutError)
    expect(attempts).toHaveLength(2)
  })

  test('a call survives a restart of the service', async () => {
    const patient = new Boltyard({ apiKey, baseUrl: wire.baseUrl, maxRetries: 100 })
    wire.holdMs = 200
    const creating = patient.nodes.create({ name: 'survivor' })
    // A request of the previous test may still arrive.
    await eventually(() => wire.seen.some(({ body }) => body.includes('survivor')), 'the call to be under way')
    await server.restart('SIGKILL')
    const { node } = await creating
    expect((await boltyard.nodes.list()).filter(({ name }) => name === 'survivor').map(({ id }) => id)).toEqual([node.id])
  })

  test('at most four concurrent requests by default', async () => {
    let forward = (): void => undefined
    wire.ready = new Promise<void>((resolve) => {
      forward = resolve
    })
    wire.mostAtOnce = 0
    const calls = Array.from({ length: 20 }, () => boltyard.key())
    await eventually(() => wire.underWay === 4, 'four to be under way')
    forward()
    await Promise.all(calls)
    expect(wire.mostAtOnce).toBe(4)
  })

  test('attempts without a response in time end in a timeout error', async () => {
    const { attempts, fetch } = countedFetch()
    const hasty = new Boltyard({ apiKey, baseUrl: wire.baseUrl, timeoutMs: 200, maxRetries: 1, fetch })
    wire.ready = new Promise(() => undefined)
    const error = await fails(hasty.key(), TimeoutError)
    expect(error.code).toBe('timeout')
    expect(attempts).toHaveLength(2)
  })

  test('an abort takes effect at once: during a request, between attempts, and in the queue', async () => {
    const one = new Boltyard({ apiKey, baseUrl: wire.baseUrl, maxConcurrency: 1 })
    const reason = new Error('enough')
    wire.faults = ['swallow']
    const abort = new AbortController()
    const [under, queued] = [one.key({ signal: abort.signal }), one.key({ signal: abort.signal })].map((call) =>
      fails(call, Error),
    )
    await eventually(() => wire.seen.length === 1, 'the first to be under way')
    abort.abort(reason)
    expect(await under).toBe(reason)
    expect(await queued).toBe(reason)
    expect(wire.seen).toHaveLength(1)
    // The slots of aborted calls are free again.
    wire.faults = [tooMany(300)]
    const later = new AbortController()
    const pausing = fails(one.key({ signal: later.signal, totalTimeoutMs: 600_000 }), Error)
    await eventually(() => wire.seen.length === 2, 'the refusal')
    later.abort(reason)
    expect(await pausing).toBe(reason)
    expect(await one.key()).toMatchObject({ scopes: expect.any(Array) })
    expect(await fails(one.key({ signal: AbortSignal.abort(reason) }), Error)).toBe(reason)
  })

  test('for a stopped node fails with its status; for one that takes too long, with a timeout', async () => {
    const hub = freezeHub(server)
    const { node } = await boltyard.nodes.create()
    const error = await fails(boltyard.nodes.waitUntilReady(node.id, { timeoutMs: 1 }), TimeoutError).finally(hub.thaw)
    expect(error.message).toContain('provisioning')
    await boltyard.nodes.waitUntilReady(node.id)
    await boltyard.nodes.stop(node.id)
    expect(await fails(boltyard.nodes.waitUntilReady(node.id), BoltyardError)).toMatchObject({ code: 'node_stopped' })
  })
})

describe('errors have a type, a code and a request id', () => {
  test.each<[string, () => Promise<unknown>, abstract new (...of: never[]) => BoltyardError, string]>([
    ['a wrong field', () => boltyard.nodes.create({ name: 'much too long for a name' }), BadRequestError, 'bad_request'],
    ['a wrong key', () => new Boltyard({ apiKey: 'x', baseUrl: wire.baseUrl }).nodes.list(), AuthenticationError, 'unauthorized'],
    ['no such node', () => boltyard.nodes.get('node_00000000000000000000'), NotFoundError, 'node_not_found'],
    ['an id with special characters', () => boltyard.nodes.get('../operator/v1/nodes?x=#'), NotFoundError, 'node_not_found'],
    ['no such payment', () => boltyard.payments.get('pay_00000000000000000000'), NotFoundError, 'gateway_payment_not_found'],
  ])('%s', async (_what, call, kind, code) => {
    const error = await fails(call(), kind)
    expect(error).toMatchObject({ code, requestId: expect.stringMatching(/^req_/) })
    expect(error.name).toBe((kind as unknown as { name: string }).name)
  })

  test('D5: errors say what to change', async () => {
    const host = new URL(wire.baseUrl).host
    const wrongKey = new Boltyard({ apiKey: 'byk_wrong', baseUrl: wire.baseUrl })
    const elsewhere = new Boltyard({ apiKey, baseUrl: wire.baseUrl.replace('/v1', '/other/v1') })
    const nobody = new Boltyard({ apiKey, baseUrl: `${NOWHERE}/v1`, maxRetries: 0 })
    const messageOf = async (call: Promise<unknown>): Promise<string> => (await fails(call, BoltyardError)).message
    expect(await messageOf(wrongKey.nodes.list())).toContain(`Check the API key: it must belong to the service at ${host}`)
    expect(await messageOf(elsewhere.nodes.list())).toContain(`Check the id and the base URL: http://${host}/other/v1`)
    expect(await messageOf(boltyard.nodes.get('node_typo'))).toContain('Check its id')
    expect(await messageOf(nobody.nodes.list())).toMatch(/ECONNREFUSED.*Is it running, and is the base URL right\?/)
  })

  test('bad input is reported as such, not as an unreachable service', async () => {
    await fails(boltyard.nodes.create({}, { idempotencyKey: 'line\nbreak' }), TypeError)
    expect(wire.seen).toHaveLength(0)
  })

  test('no credit: the error has an invoice for the missing amount', async () => {
    const account = (await server.operator('POST', '/accounts', { json: { name: 'poor', creditSat: 0 } })).json()
    const { key } = await server.newKey(['nodes:write'], account.id)
    const poor = new Boltyard({ apiKey: key, baseUrl: wire.baseUrl })
    // Retried, because the treasury node becomes ready only some time after the service.
    const invoice = await eventually(async () => {
      const error = await fails(poor.nodes.create(), InsufficientCreditError)
      expect(error.code).toBe('insufficient_credit')
      return error.topUp?.invoice
    }, 'a top-up invoice')
    expect(invoice).toMatch(/^ln/)
  })

  test('an expired challenge', async () => {
    const short = await startServer({ env: { CHALLENGE_LIFETIME_SECONDS: '1', NODE_PRICE_SAT_PER_DAY: '0' } })
    const merchant = await newMerchant(short)
    const created = await merchant.createReady()
    const client = new Boltyard({ apiKey: merchant.key.key, baseUrl: `${short.url}/v1` })
    const payment = await client.payments.create({ nodeId: created.node.id, amountSat: 1, description: 'late' })
    // The node knows the preimage before anyone has paid.
    const credential = credentialOf(payment, await preimageFrom(created, payment))
    await eventually(() => fails(client.payments.validate(payment.id, credential), ExpiredError), 'the end of its time')
  })

  test.each([
    ['a proxy’s page', { status: 502, body: '<html>Bad Gateway</html>' }],
    ['a page that is not an API', { status: 200, headers: { 'content-type': 'text/html' }, body: '<html>Welcome</html>' }],
    ['a redirect, which is not followed', { status: 302, headers: { location: 'http://127.0.0.1:1/' } }],
    ['JSON that is not an object', { status: 200, body: 'null' }],
  ])('%s', async (_what, fault) => {
    wire.faults = [fault, fault, fault, fault]
    const error = await fails(boltyard.key(), ServiceError)
    expect(error).toMatchObject({ code: 'unexpected_answer', status: fault.status })
    expect(wire.seen).toHaveLength(fault.status === 502 ? 4 : 1)
  })

  test('no error contains the key', async () => {
    // Two faults for each attempt, because a request that fails on a reused connection is sent again immediately.
    wire.faults = Array(8).fill('cut')
    const error = await fails(boltyard.key(), ConnectionError)
    const { inspect } = await import('node:util')
    expect(inspect(error, { depth: 10, showHidden: true })).not.toContain(apiKey)
    expect(inspect(boltyard, { depth: 10, showHidden: true })).not.toContain(apiKey)
  })
})

describe('the constructor', () => {
  test('says what is missing or invalid without showing the key', () => {
    expect(() => new Boltyard({ apiKey: '' })).toThrow(/SERVICE_API_KEY/)
    expect(() => new Boltyard({ apiKey: 'by_secret\n' })).toThrow(/another invalid character/)
    expect(() => new Boltyard({ apiKey: 'by_secret\n' })).not.toThrow(/by_secret/)
    for (const baseUrl of ['localhost:8402', 'ftp://x/v1', 'http://user:secret@x/v1', 'http://x/v1?y', ''])
      expect(() => new Boltyard({ apiKey, baseUrl })).toThrow(/base URL/)
  })

  test('D15: says that the base URL lacks /v1 and suggests the right one', () => {
    const say = 'The base URL must end in /v1. Did you mean https://shop.example/v1?'
    for (const baseUrl of ['https://shop.example', 'https://shop.example/'])
      expect(() => new Boltyard({ apiKey, baseUrl })).toThrow(new TypeError(say))
    expect(() => new Boltyard({ apiKey, baseUrl: 'https://shop.example/boltyard/v1/' })).not.toThrow()
  })

  test.each(['SERVICE', 'BOLTYARD'])('D15: takes key and address from the environment: %s_…', async (prefix) => {
    vi.stubEnv(`${prefix}_API_KEY`, apiKey)
    vi.stubEnv(`${prefix}_BASE_URL`, `${wire.baseUrl}/`)
    expect(await new Boltyard().key()).toMatchObject({ scopes: expect.any(Array) })
  })
})

/** Attempts are counted where they start: on a busy machine, one may time out before the service sees it. */
function countedFetch(): { attempts: string[]; fetch: typeof fetch } {
  const attempts: string[] = []
  const counted: typeof fetch = (input, init) => {
    attempts.push(String(input))
    return fetch(input, init)
  }
  return { attempts, fetch: counted }
}

function tooMany(seconds: number) {
  const body = JSON.stringify({ error: { code: 'rate_limited', message: 'rate limit exceeded' } })
  return { status: 429, headers: { 'retry-after': String(seconds), 'content-type': 'application/json' }, body }
}
