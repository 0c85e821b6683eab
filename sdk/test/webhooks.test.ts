import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { eventually, type Key, type Server, startServer } from '../../server/test/support/server.ts'
import { answers, inTurn, ok, openReceiver } from '../../testing/receiver.ts'
import { Boltyard, type Delivery, NotFoundError, UncertainOutcomeError } from '../src/index.ts'
import { verifyWebhook } from '../src/webhooks/index.ts'
import { Wire } from './wire.ts'

/** `client.webhooks` against the real service, with a receiver on this machine. */

const URL = 'https://shop.example/hook'
const KEYS = { types: ['key.created' as const] }

let server: Server
let wire: Wire
let key: Key
let boltyard: Boltyard

beforeAll(async () => {
  server = await startServer({ env: { RATE_LIMIT_MAX: '100000' } })
  wire = await new Wire(server.url).open()
})
beforeEach(async () => {
  wire.faults = []
  key = await server.newKey(['webhooks:write', 'events:read'])
  boltyard = new Boltyard({ apiKey: key.key, baseUrl: wire.baseUrl, timeoutMs: 120_000 })
  // Otherwise a webhook that is created now may also get the event of the new key.
  await eventually(async () => (await boltyard.events.list()).events.length > 0, 'the first event')
  wire.seen.length = 0
})

/** An event of the account: another key is created. */
const happen = async (): Promise<string> => (await server.newKey([], key.accountId)).id

const delivered = (id: string, attempts: number): Promise<Delivery> =>
  eventually(async () => {
    const [delivery] = (await boltyard.webhooks.deliveries(id, { status: 'delivered' })).deliveries
    return delivery?.attempts.length === attempts ? delivery : undefined
  }, `a success at attempt ${attempts}`)

test('C55: a webhook is created with its secret, listed and read without it, changed and deleted', async () => {
  const { secret, ...created } = await boltyard.webhooks.create({ url: URL, types: ['payment.*'], description: 'Shop' })
  expect(secret).toMatch(/^whsec_/)
  expect(created).toMatchObject({ url: URL, types: ['payment.*'], nodeIds: null, description: 'Shop', enabled: true })
  expect(await boltyard.webhooks.list()).toEqual([created])
  expect(await boltyard.webhooks.get(created.id)).toEqual(created)
  const changed = await boltyard.webhooks.update(created.id, { types: null, enabled: false })
  expect(changed).toEqual({ ...created, types: null, enabled: false })
  await boltyard.webhooks.delete(created.id)
  expect(await boltyard.webhooks.list()).toEqual([])
})

test('C56, C60: an event arrives signed, and its delivery can be listed and sent again', async () => {
  const receiver = await openReceiver()
  const { id, secret } = await boltyard.webhooks.create({ url: receiver.url, ...KEYS })
  const keyId = await happen()
  const delivery = await delivered(id, 1)
  const [first] = receiver.received
  const event = await verifyWebhook(first?.body ?? '', first?.headers ?? {}, secret)
  expect(event).toMatchObject({ id: delivery.eventId, type: 'key.created', data: { keyId } })
  expect(delivery.attempts[0]).toMatchObject({ status: 200, response: 'thank you', error: null })

  expect(await boltyard.webhooks.redeliver(id, delivery.id)).toMatchObject({ id: delivery.id, status: 'pending' })
  await delivered(id, 2)
  expect(receiver.ids()).toEqual([event.id, event.id])
  expect(await boltyard.webhooks.deliveries(id, { status: 'failed' })).toEqual({ deliveries: [], nextCursor: null })
})

test('C60: deliveries are listed in pages', async () => {
  const receiver = await openReceiver()
  const { id } = await boltyard.webhooks.create({ url: receiver.url, ...KEYS })
  for (let count = 0; count < 2; count++) await happen()
  await receiver.until(2)
  const newest = await boltyard.webhooks.deliveries(id, { limit: 1 })
  const oldest = await boltyard.webhooks.deliveries(id, { limit: 1, cursor: newest.nextCursor ?? '' })
  expect(oldest.nextCursor).toBeNull()
  expect([...oldest.deliveries, ...newest.deliveries].map(({ eventId }) => eventId).sort()).toEqual(receiver.ids().sort())
})

test('C60: a replay sends the events of a period', async () => {
  const receiver = await openReceiver()
  const { id } = await boltyard.webhooks.create({ url: receiver.url })
  const { events } = await boltyard.events.list()
  const at = events[0]?.createdAt ?? 0
  expect(await boltyard.webhooks.replay(id, { from: 0, to: at })).toEqual({ count: 0 })
  expect(await boltyard.webhooks.replay(id, { from: at, to: at + 1, types: ['node.*'] })).toEqual({ count: 0 })
  expect(await boltyard.webhooks.replay(id, { from: at, to: at + 1 })).toEqual({ count: 1 })
  await receiver.until(1)
  expect(receiver.ids()).toEqual([events[0]?.id])
})

test('C59: after a rotation both secrets sign during the grace period, then only the new one', async () => {
  const receiver = await openReceiver()
  const { id, secret: old } = await boltyard.webhooks.create({ url: receiver.url })
  const { secret: second } = await boltyard.webhooks.rotateSecret(id, { graceSeconds: 86_400 })
  await boltyard.webhooks.test(id)
  const { secret: third } = await boltyard.webhooks.rotateSecret(id)
  await boltyard.webhooks.test(id)
  const [both, single] = receiver.received
  const isSignedBy = (request: typeof both, secret: string): Promise<boolean> =>
    verifyWebhook(request?.body ?? '', request?.headers ?? {}, secret).then(
      () => true,
      () => false,
    )
  expect(await Promise.all([old, second, third].map((secret) => isSignedBy(both, secret)))).toEqual([true, true, false])
  expect(await Promise.all([old, second, third].map((secret) => isSignedBy(single, secret)))).toEqual([false, false, true])
})

test('C60: a test returns what the receiver responded', async () => {
  const receiver = await openReceiver(inTurn(ok, answers(418)))
  const { id } = await boltyard.webhooks.create({ url: receiver.url })
  expect(await boltyard.webhooks.test(id)).toMatchObject({ status: 200, response: 'thank you', error: null })
  const refused = await boltyard.webhooks.test(id, { type: 'node.failed' })
  expect(refused).toEqual({
    status: 418,
    response: 'status 418',
    durationMs: expect.any(Number),
    error: expect.stringContaining('418'),
  })
  const samples = receiver.received.map(({ body }) => JSON.parse(body))
  expect(samples).toMatchObject([
    { type: 'payment.settled', test: true },
    { type: 'node.failed', test: true },
  ])
})

test('an unknown webhook is not found, and the message says what to check', async () => {
  const error = await boltyard.webhooks.get('hook_00000000000000000000').catch((caught) => caught)
  expect(error).toBeInstanceOf(NotFoundError)
  expect(error.message).toBe(`There is no such webhook. Check the id and the base URL: ${wire.baseUrl}`)
})

describe('a lost response', () => {
  const uncertain = async (call: Promise<unknown>): Promise<string> => {
    const error = await call.catch((caught) => caught)
    expect(error).toBeInstanceOf(UncertainOutcomeError)
    return (error as Error).message
  }

  test('of a creation, a rotation, a test or a replay is reported, and the call is not repeated', async () => {
    wire.faults = ['lose answer']
    const { host } = new globalThis.URL(wire.baseUrl)
    const lost = `is unknown: The connection to the service at ${host} was lost (`
    const end = ' The operation may or may not have been carried out. Check the current state before you retry.'
    const created = await uncertain(boltyard.webhooks.create({ url: URL }))
    expect(created).toContain(`The outcome of POST /webhooks ${lost}`)
    expect(created).toContain(end)
    expect(wire.seen).toHaveLength(1)
    const [{ id } = { id: '' }, ...others] = await boltyard.webhooks.list()
    expect(others).toEqual([])

    for (const [name, call] of [
      ['rotate-secret', () => boltyard.webhooks.rotateSecret(id)],
      ['test', () => boltyard.webhooks.test(id)],
      ['replay', () => boltyard.webhooks.replay(id, { from: 0, to: 1 })],
    ] as const) {
      wire.seen.length = 0
      wire.faults = ['lose answer']
      expect(await uncertain(call())).toContain(`The outcome of POST /webhooks/${id}/${name} ${lost}`)
      expect(wire.seen).toHaveLength(1)
    }
  })

  test('a 5xx that arrived is not called lost: its message is the reason', async () => {
    wire.faults = [{ status: 503, body: '{"error":{"code":"service_unavailable","message":"The service is stopping"}}' }]
    expect(await uncertain(boltyard.webhooks.create({ url: URL }))).toBe(
      'The outcome of POST /webhooks is unknown: The service is stopping. The operation may or may not have been carried out. Check the current state before you retry.',
    )
  })

  test('of an update or a deletion is repeated', async () => {
    const { id } = await boltyard.webhooks.create({ url: URL })
    wire.faults = ['lose answer']
    expect(await boltyard.webhooks.update(id, { description: 'Shop' })).toMatchObject({ description: 'Shop' })
    wire.faults = ['lose answer']
    await boltyard.webhooks.delete(id)
    expect(wire.seen.map(({ method }) => method)).toEqual(['POST', 'PATCH', 'PATCH', 'DELETE', 'DELETE'])
    await expect(boltyard.webhooks.delete(id)).rejects.toBeInstanceOf(NotFoundError)
  })
})
