import { randomBytes } from 'node:crypto'
import { afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { answers, inTurn, openReceiver, type Receiver } from '../../../testing/receiver.ts'
import { AddressGuard } from '../../src/events/webhooks/address-guard.ts'
import { Dispatcher } from '../../src/events/webhooks/dispatcher.ts'
import { Webhooks } from '../../src/events/webhooks/webhooks.ts'
import { createLogger } from '../../src/platform/log.ts'
import { masterKeyOf } from '../../src/platform/secrets.ts'
import type { Database } from '../../src/store/db.ts'
import { claimDeliveries, nextAttemptInMs, recordFailure, recordSuccess } from '../../src/store/events/deliveries.ts'
import { sequenceEvents } from '../../src/store/events/outbox.ts'
import { DELIVERIES_DUE } from '../../src/store/events/webhooks.ts'
import { type Clock, freshDatabase, NOON, newAccount } from '../support/credit.ts'
import { eventually } from '../support/server.ts'

/** Webhook deliveries while the clock of the database is set forward or back, or the clock of the process is wrong. */

const HOUR = 3_600
const LEASE_SECONDS = 30
const master = masterKeyOf(randomBytes(32))
const guard = new AddressGuard({
  allowPrivate: true,
  allowHttp: true,
  isOwnPort: () => false,
  resolve: async () => ['127.0.0.1'],
})

let sql: Database
let clock: Clock
let receiver: Receiver

beforeAll(async () => {
  ;({ sql, clock } = await freshDatabase())
})
beforeEach(async () => {
  await clock.set(NOON)
  receiver = await openReceiver()
  const accountId = await newAccount(sql)
  await new Webhooks({ sql, masterKeys: [master], guard }).create({ accountId, actor: 'test' }, { url: receiver.url })
  await sql`INSERT INTO activity (account_id, actor, action, target) VALUES (${accountId}, 'test', 'key.created', 'key_1')`
  await eventually(async () => (await sequenceEvents(sql, 1_000)).count > 0, 'the event to be numbered')
})
afterEach(async () => {
  vi.useRealTimers()
  await sql`DELETE FROM webhook_deliveries`
})

const claim = async () => {
  const [delivery] = await claimDeliveries(sql, 1, LEASE_SECONDS)
  if (!delivery) throw new Error('nothing is due')
  return delivery
}
const attempt = { at: NOON, status: 500, durationMs: 1, response: '', error: '' }
const statuses = async () => (await sql`SELECT status FROM webhook_deliveries`).map(({ status }) => status)

test('C57: if the database’s clock is set forward, a lease ends early, and the result of its attempt no longer counts', async () => {
  const lost = await claim()
  await clock.move(HOUR)
  const held = await claim()
  expect(held).toMatchObject({ seq: lost.seq, event: lost.event })
  await recordFailure(sql, lost, attempt, { retryInSeconds: null, isGone: true, disableAfterSeconds: 0 })
  expect(await statuses()).toEqual(['pending'])
  await recordSuccess(sql, held, attempt)
  expect(await statuses()).toEqual(['delivered'])
})

test('C57: if the database’s clock is set back, an attempt waits until it has caught up, and is not lost', async () => {
  await recordFailure(sql, await claim(), attempt, { retryInSeconds: 5, isGone: false, disableAfterSeconds: HOUR })
  await clock.move(-HOUR)
  expect(await claimDeliveries(sql, 1, LEASE_SECONDS)).toEqual([])
  expect(await nextAttemptInMs(sql)).toBe((HOUR + 5) * 1000)
  await clock.move(HOUR + 5)
  expect(await nextAttemptInMs(sql)).toBe(0)
  await recordSuccess(sql, await claim(), attempt)
  expect(await statuses()).toEqual(['delivered'])
})

test('C57: while every delivery is being made or has ended, there is no next attempt to wait for', async () => {
  const delivery = await claim()
  expect(await nextAttemptInMs(sql)).toBeNull()
  await recordSuccess(sql, delivery, attempt)
  expect(await nextAttemptInMs(sql)).toBeNull()
})

test.each([
  ['ahead of', 24 * HOUR],
  ['behind', -24 * HOUR],
])(
  'C57: a process whose clock is a day %s the database’s delivers on time, and signs with the database’s time',
  async (_where, seconds) => {
    receiver.respond = inTurn(answers(500))
    vi.useFakeTimers({ toFake: ['Date'], now: (NOON + seconds) * 1000 })
    const dispatcher = new Dispatcher({ sql, masterKeys: [master], guard, log: await createLogger('warn') })
    try {
      // There is no next attempt while this one is being made.
      const pauseMs = await eventually(() => nextAttemptInMs(sql), 'the first attempt to be recorded')
      expect(pauseMs).toBeGreaterThanOrEqual(5_000)
      expect(receiver.received).toHaveLength(1)
      await clock.move(6)
      await sql`SELECT pg_notify(${DELIVERIES_DUE}, '')`
      await eventually(async () => (await statuses())[0] === 'delivered', 'the second attempt')
    } finally {
      await dispatcher.close()
    }
    const timestamps = receiver.received.map(({ headers }) => headers['webhook-timestamp'])
    expect(timestamps).toEqual([String(NOON), String(NOON + 6)])
  },
)
