import { randomBytes } from 'node:crypto'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { ok, openReceiver, type Receiver, verified } from '../../../testing/receiver.ts'
import { AddressGuard } from '../../src/events/webhooks/address-guard.ts'
import { Dispatcher } from '../../src/events/webhooks/dispatcher.ts'
import { openSecret, resealWebhooks, sealSecret } from '../../src/events/webhooks/signing.ts'
import { Webhooks } from '../../src/events/webhooks/webhooks.ts'
import { createLogger } from '../../src/platform/log.ts'
import { type MasterKey, masterKeyOf } from '../../src/platform/secrets.ts'
import { type Database, openStore } from '../../src/store/db.ts'
import { claimDeliveries, recordFailure, recordSuccess, replay } from '../../src/store/events/deliveries.ts'
import { removeOldEvents } from '../../src/store/events/feed.ts'
import { sequenceEvents } from '../../src/store/events/outbox.ts'
import { removeDeletedWebhooks, replaceSealed, webhooksUnder } from '../../src/store/events/webhooks.ts'
import { newDatabase } from '../support/database.ts'
import { eventually, type Store, track } from '../support/server.ts'

const ACCOUNT = 'acct_00000000000000000000'
const CALL = { accountId: ACCOUNT, actor: 'test' }

let sql: Database
let store: Store
let receiver: Receiver
const master = masterKeyOf(randomBytes(32))
const open: Dispatcher[] = []

beforeAll(async () => {
  const database = await newDatabase()
  sql = database.sql
  store = database.store
  receiver = await openReceiver()
  await sql`INSERT INTO accounts (id, name) VALUES (${ACCOUNT}, 'test')`
})
afterEach(async () => {
  await Promise.all(open.splice(0).map((dispatcher) => dispatcher.close()))
  for (const { id } of await webhooksWith(master).list(CALL)) await webhooksWith(master).delete(CALL, id)
})

/** Private addresses are allowed, and every name resolves to this machine. */
function guardOf(onAttempt: () => void = () => undefined): AddressGuard {
  const resolve = async (): Promise<string[]> => {
    onAttempt()
    return ['127.0.0.1']
  }
  return new AddressGuard({ allowPrivate: true, allowHttp: true, isOwnPort: () => false, resolve })
}

const webhooksWith = (...masterKeys: [MasterKey, ...MasterKey[]]): Webhooks => new Webhooks({ sql, masterKeys, guard: guardOf() })
const newWebhook = () => webhooksWith(master).create(CALL, { url: receiver.url.replace('127.0.0.1', 'shop.example') })

async function happen(count: number): Promise<void> {
  await sql`INSERT INTO activity (account_id, actor, action, target) SELECT ${ACCOUNT}, 'test', 'key.created', 'key_' || n FROM generate_series(1, ${count}) n`
  await eventually(async () => (await sequenceEvents(sql, 1000)).count > 0, 'numbers')
}

const statusesOf = (id: string) =>
  sql<{ status: string; count: number }[]>`
    SELECT status, count(*)::int AS count FROM webhook_deliveries WHERE webhook_id = ${id} GROUP BY 1`

describe('several processes', () => {
  test('C56, C57: two processes deliver each event once, both take part, and at most four requests are open', async () => {
    receiver.respond = (response) => setTimeout(() => response.end(), 5)
    const webhook = await newWebhook()
    await happen(200)
    const attempts = [0, 0]
    const log = await createLogger('warn')
    for (const process of [0, 1]) {
      const guard = guardOf(() => attempts.splice(process, 1, (attempts[process] ?? 0) + 1))
      open.push(new Dispatcher({ sql: track(openStore(store, 4)), masterKeys: [master], guard, log }))
    }
    let events = 200
    await eventually(async () => {
      // Wakes both dispatchers, so that they compete for the slots that have become free.
      await happen(10)
      events += 10
      return attempts.every((count) => count > 0)
    }, 'both to take part')
    await eventually(async () => (await statusesOf(webhook.id)).every(({ status }) => status === 'delivered'), 'all deliveries')
    expect(await statusesOf(webhook.id)).toEqual([{ status: 'delivered', count: events }])
    expect(receiver.received).toHaveLength(events)
    expect(new Set(receiver.ids()).size).toBe(events)
    expect(receiver.mostOpen).toBeLessThanOrEqual(4)
    for (const request of receiver.received) verified(webhook.secret, request)
  })

  test('C57: a process that lost its lease records nothing', async () => {
    const webhook = await newWebhook()
    await happen(1)
    const [lost] = await claimDeliveries(sql, 10, 30)
    expect(await claimDeliveries(sql, 10, 30), 'leased').toEqual([])
    await sql`UPDATE webhook_deliveries SET lease_until = now() WHERE webhook_id = ${webhook.id}`
    const [held] = await claimDeliveries(sql, 10, 30)
    if (!lost || !held) throw new Error('nothing was claimed')
    expect([held.seq, held.event]).toEqual([lost.seq, lost.event])
    const attempt = { at: 0, status: 200, durationMs: 1, response: '', error: null }
    await recordSuccess(sql, lost, attempt)
    await recordFailure(sql, lost, attempt, { retryInSeconds: null, isGone: true, disableAfterSeconds: 0 })
    expect(await statusesOf(webhook.id)).toEqual([{ status: 'pending', count: 1 }])
    expect((await webhooksWith(master).get(CALL, webhook.id)).enabled).toBe(true)
    await recordSuccess(sql, held, attempt)
    expect(await statusesOf(webhook.id)).toEqual([{ status: 'delivered', count: 1 }])
  })

  test('C57: a webhook that fails gets one request at a time, until one succeeds', async () => {
    const webhook = await newWebhook()
    await happen(6)
    await sql`UPDATE webhooks SET failing_since = now() WHERE id = ${webhook.id}`
    const [only, ...others] = await claimDeliveries(sql, 10, 30)
    expect(others).toEqual([])
    if (only) await recordSuccess(sql, only, { at: 0, status: 200, durationMs: 1, response: '', error: null })
    expect(await claimDeliveries(sql, 10, 30)).toHaveLength(4)
  })
})

describe('what is kept', () => {
  test('C59: after a change of the master key, secrets are resealed and sign as before', async () => {
    receiver.respond = ok
    const next = masterKeyOf(randomBytes(32))
    const created = await newWebhook()
    const both = webhooksWith(next, master)
    const { secret } = await both.rotateSecret(CALL, created.id, 60)
    const untouched = await newWebhook()
    expect(await resealWebhooks(sql, next, master)).toBe(1)
    expect(await resealWebhooks(sql, next, master)).toBe(0)
    const signed = async (id: string, ...secrets: string[]): Promise<void> => {
      receiver.received.length = 0
      expect(await webhooksWith(next).test(CALL, id)).toMatchObject({ status: 200, error: null })
      for (const one of secrets) if (receiver.received[0]) verified(one, receiver.received[0])
    }
    await signed(created.id, secret, created.secret)
    await signed(untouched.id, untouched.secret)
  })

  test('C59: resealing never brings back a secret that was rotated meanwhile', async () => {
    const next = masterKeyOf(randomBytes(32))
    const created = await newWebhook()
    const [read] = await webhooksUnder(sql, master.id, 100)
    if (!read) throw new Error('the webhook was not read')
    const { secret } = await webhooksWith(master).rotateSecret(CALL, created.id, 0)
    const ids = { accountId: ACCOUNT, webhookId: created.id }
    const resealed = sealSecret(next, ids, openSecret([master], ids, { keyId: master.id, secret: read.secret }))
    await replaceSealed(sql, { keyId: master.id, secret: read.secret }, { ...read, ...resealed })
    receiver.received.length = 0
    expect(await webhooksWith(next, master).test(CALL, created.id)).toMatchObject({ status: 200, error: null })
    expect(receiver.received).toHaveLength(1)
    for (const request of receiver.received) verified(secret, request)
  })

  test('C55: a secret copied onto another webhook does not open', async () => {
    const [one, other] = [await newWebhook(), await newWebhook()]
    await sql`UPDATE webhooks SET secret = (SELECT secret FROM webhooks WHERE id = ${one.id}) WHERE id = ${other.id}`
    await expect(webhooksWith(master).test(CALL, other.id)).rejects.toThrow()
  })

  test('C60: a replay of too many events adds none of them; one of as many as are allowed adds all', async () => {
    const webhook = await newWebhook()
    await happen(5)
    await sql`DELETE FROM webhook_deliveries`
    const [range] = await sql<[{ from: number; to: number }]>`
      SELECT extract(epoch FROM min(at))::float8 AS from, extract(epoch FROM max(at))::float8 + 1 AS to
      FROM (SELECT at FROM events ORDER BY seq DESC LIMIT 5) latest`
    const ids = { accountId: ACCOUNT, webhookId: webhook.id }
    const replayed = (limit: number) => replay(sql, ids, { ...range, types: null }, limit)
    expect(await replayed(4)).toBe('too many')
    expect(await statusesOf(webhook.id)).toEqual([])
    expect(await replayed(5)).toBe(5)
    expect(await statusesOf(webhook.id)).toEqual([{ status: 'pending', count: 5 }])
    expect(await replayed(5), 'again').toBe(5)
    expect(await statusesOf(webhook.id)).toEqual([{ status: 'pending', count: 5 }])
  })

  test('C60: a delivery is removed with its event, and what is left of a deleted webhook an hour later', async () => {
    const webhook = await newWebhook()
    await happen(5)
    await sql`UPDATE event_log SET at = now() - interval '31 days' WHERE account_id = ${ACCOUNT} AND seq = (SELECT max(seq) FROM events)`
    await removeOldEvents(sql, 30, 1000)
    expect(await statusesOf(webhook.id)).toEqual([{ status: 'pending', count: 4 }])
    await webhooksWith(master).delete(CALL, webhook.id)
    await eventually(async () => (await removeDeletedWebhooks(sql, 100)) === 0, 'the deliveries to be removed')
    expect(await statusesOf(webhook.id)).toEqual([])
    const isLeft = async () => (await sql`SELECT FROM webhooks WHERE id = ${webhook.id}`).length
    expect(await isLeft()).toBe(1)
    await sql`UPDATE webhooks SET deleted_at = now() - interval '61 minutes' WHERE id = ${webhook.id}`
    await removeDeletedWebhooks(sql, 100)
    expect(await isLeft()).toBe(0)
  })
})
