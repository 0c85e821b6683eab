import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { silent } from '../../../testing/kubernetes/silent.ts'
import { EventFeed } from '../../src/events/feed.ts'
import { Sequencer } from '../../src/events/sequencer.ts'
import { newId } from '../../src/platform/ids.ts'
import { type Database, openStore, type Sql } from '../../src/store/db.ts'
import { readFeed, removeOldEvents } from '../../src/store/events/feed.ts'
import { adoptMovedEvents, sequenceEvents } from '../../src/store/events/outbox.ts'
import { newAccount } from '../support/credit.ts'
import { lockingTransaction, newDatabase } from '../support/database.ts'
import { eventually, type Store, track } from '../support/server.ts'

/** The store without a running service, which would number events at any moment. */

let sql: Database
let store: Store
let accountId: string

beforeAll(async () => {
  ;({ sql, store } = await newDatabase())
})
beforeEach(async () => {
  accountId = await newAccount(sql)
  await sequenceAll()
})

/** Transactions of other tests, in other databases of this PostgreSQL, can hold events back too. */
const sequenceAll = (): Promise<unknown> =>
  eventually(async () => !(await sequenceEvents(sql, 1_000)).hasMore, 'the outbox to be empty')

const keyCreated = (on: Sql, name: string, account = accountId) => on`
  INSERT INTO activity (account_id, actor, action, target, detail) VALUES (${account}, 'test', 'key.created', ${name}, ${on.json({ name })})`

async function feed(account = accountId): Promise<{ seq: number; type: string; subject: unknown }[]> {
  const { events } = await readFeed(sql, account, { limit: 1_000 })
  return events.map(({ seq, type, data }) => ({ seq, type, subject: data.name ?? data.paymentId ?? data.nodeId }))
}
const names = async (account = accountId): Promise<unknown[]> => (await feed(account)).map(({ subject }) => subject)

describe('C53: the feed', () => {
  test('C53: an event is written with its change, or not at all', async () => {
    await expect(
      sql.begin(async (transaction) => {
        await keyCreated(transaction, 'undone')
        throw new Error('changed my mind')
      }),
    ).rejects.toThrow('changed my mind')
    await keyCreated(sql, 'done')
    await sequenceAll()
    expect(await names()).toEqual(['done'])
  })

  test('C53: a transaction that stays open delays later events, and loses none', async () => {
    const other = track(openStore(store, 1))
    let commit: () => void = () => undefined
    const mayCommit = new Promise<void>((resolve) => {
      commit = resolve
    })
    let hasWritten: () => void = () => undefined
    const written = new Promise<void>((resolve) => {
      hasWritten = resolve
    })
    const slow = lockingTransaction(other, async (transaction) => {
      await keyCreated(transaction, 'slow')
      hasWritten()
      await mayCommit
    })
    await written
    await keyCreated(sql, 'quick')
    expect(await sequenceEvents(sql, 1_000)).toEqual({ count: 0, hasMore: true })
    expect(await names()).toEqual([])
    commit()
    await slow
    await sequenceAll()
    expect(await names()).toEqual(['slow', 'quick'])
  })

  test('C53: numbers have no gaps, in each account, whatever commits in between', async () => {
    const accounts = [accountId, await newAccount(sql)]
    await Promise.all(
      Array.from({ length: 60 }, async (_, index) => {
        await keyCreated(sql, `${index}`, accounts[index % 2])
        if (index % 7 === 0) await sequenceEvents(sql, 5)
      }),
    )
    await sequenceAll()
    for (const account of accounts)
      expect((await feed(account)).map(({ seq }) => seq)).toEqual(Array.from({ length: 30 }, (_, i) => i + 1))
  })

  test('C53: if several processes number events at once, each event gets one number and a unique id', async () => {
    const other = await newAccount(sql)
    for (let index = 0; index < 200; index++) {
      await keyCreated(sql, `${index}`)
      await keyCreated(sql, `${index}`, other)
    }
    const processes = Array.from({ length: 4 }, () => track(openStore(store, 1)))
    await Promise.all(
      processes.map((one) => eventually(async () => !(await sequenceEvents(one, 10)).hasMore, 'the outbox to be empty')),
    )
    expect(await names()).toEqual(Array.from({ length: 200 }, (_, index) => `${index}`))
    const [ids] = await sql`SELECT count(DISTINCT id)::int AS count FROM events WHERE account_id IN (${accountId}, ${other})`
    expect(ids).toEqual({ count: 400 })
  })

  test('C53: notifications that never stop do not keep events from being numbered', async () => {
    const listen: Database['listen'] = (_channel, { onNotify }) => {
      const timer = setInterval(() => onNotify(`${accountId} activity`), 1)
      return () => clearInterval(timer)
    }
    const noisy = new Proxy(sql, { get: (target, key) => (key === 'listen' ? listen : Reflect.get(target, key)) })
    const sequencer = new Sequencer({ sql: noisy, log: silent })
    try {
      // The first pass, before any notification, may number the first event.
      for (const name of ['first', 'second']) {
        await keyCreated(sql, name)
        await eventually(async () => (await names()).includes(name), `the ${name} event to be numbered`)
      }
    } finally {
      await sequencer.close()
    }
  })

  test('events from a dump of another server keep their place before new ones', async () => {
    await keyCreated(sql, 'moved')
    await sql`UPDATE event_outbox SET xid = '9000000000000'`
    expect(await sequenceEvents(sql, 10)).toEqual({ count: 0, hasMore: true })
    await keyCreated(sql, 'new')
    await adoptMovedEvents(sql)
    await sequenceAll()
    expect(await names()).toEqual(['moved', 'new'])
  })
})

describe('C53: cursors', () => {
  const pageAfter = async (cursor: string | undefined, account = accountId, more = {}) => {
    const events = new EventFeed(sql)
    try {
      return await events.list(account, { ...(cursor === undefined ? {} : { cursor }), ...more })
    } finally {
      events.close()
    }
  }

  test('C53: nextCursor is never null, and stays the same while nothing happens', async () => {
    const empty = await pageAfter(undefined)
    expect(empty).toEqual({ events: [], nextCursor: expect.any(String) })
    expect(await pageAfter(empty.nextCursor)).toEqual(empty)
    await keyCreated(sql, 'one')
    await sequenceAll()
    const page = await pageAfter(empty.nextCursor)
    expect(page.events.map(({ data }) => data.name)).toEqual(['one'])
    expect(page.nextCursor).not.toBe(empty.nextCursor)
    expect(await pageAfter(page.nextCursor)).toEqual({ events: [], nextCursor: page.nextCursor })
  })

  test('C53: pages of any size give every event once, with and without a filter', async () => {
    for (let index = 0; index < 25; index++)
      await sql`
        INSERT INTO activity (account_id, actor, action, target) VALUES (${accountId}, 'test', ${index % 5 === 0 ? 'key.revoked' : 'key.disabled'}, ${`${index}`})`
    await sequenceAll()
    for (const [types, count] of [
      ['key.*', 25],
      ['key.revoked', 5],
      ['payment.*,key.disabled', 20],
    ] as const) {
      const seen: unknown[] = []
      let cursor: string | undefined
      for (;;) {
        const page = await pageAfter(cursor, accountId, { limit: 3, types })
        seen.push(...page.events.map(({ data }) => data.keyId))
        if (page.nextCursor === cursor) break
        cursor = page.nextCursor
      }
      expect(seen).toHaveLength(count)
      expect(new Set(seen).size).toBe(count)
    }
  })

  test('C53: forged, changed and other accounts’ cursors are refused', async () => {
    const other = await newAccount(sql)
    await keyCreated(sql, 'one')
    for (const name of ['one', 'two']) await keyCreated(sql, name, other)
    await sequenceAll()
    const { nextCursor } = await pageAfter(undefined)
    const bytes = Buffer.from(nextCursor, 'base64url')
    const ahead = Buffer.from(bytes)
    ahead[7] = 200
    const huge = Buffer.from(bytes)
    huge.fill(255, 0, 8)
    const bad = [
      '',
      'x',
      'null',
      `${nextCursor}A`,
      nextCursor.slice(1),
      ahead.toString('base64url'),
      huge.toString('base64url'),
      '\0'.repeat(22),
    ]
    for (const cursor of bad)
      await expect(pageAfter(cursor), JSON.stringify(cursor)).rejects.toMatchObject({ code: 'bad_request' })
    await expect(pageAfter(nextCursor, other)).rejects.toMatchObject({ code: 'bad_request' })
  })

  test('C53: events past their retention are removed, and a cursor before them is 410 with the oldest one that works', async () => {
    const start = (await pageAfter(undefined)).nextCursor
    for (const name of ['old', 'older', 'kept']) await keyCreated(sql, name)
    await sequenceAll()
    await sql`UPDATE event_log SET at = now() - interval '31 days' WHERE account_id = ${accountId} AND data ->> 'name' LIKE 'old%'`
    expect(await eventually(() => removeOldEvents(sql, 30, 10), 'the old ones to be removed')).toBe(2)
    expect(await names()).toEqual(['kept'])
    const expired = await pageAfter(start).catch((error: unknown) => error)
    expect(expired).toMatchObject({ code: 'cursor_expired', status: 410, details: { oldestCursor: expect.any(String) } })
    const { oldestCursor } = (expired as { details: { oldestCursor: string } }).details
    expect((await pageAfter(oldestCursor)).events.map(({ data }) => data.name)).toEqual(['kept'])
    expect((await pageAfter(undefined)).events.map(({ data }) => data.name)).toEqual(['kept'])
  })
})

describe('C53: what is an event', () => {
  /** A payment that was created and settled at node_1. */
  async function settledPayment(): Promise<string> {
    const id = newId('pay')
    await sql`
      INSERT INTO gateway_payments (id, account_id, node_id, protocol, amount_sat, description, resource, challenge, payment_hash, protocol_key_id,
                                    created_at, expires_at)
      VALUES (${id}, ${accountId}, 'node_1', 'mpp', 21, 'One joke', 'GET /joke', 'the challenge', sha256(${id}::bytea), 'test', now(), now())`
    await sql`INSERT INTO activity (account_id, actor, action, target) VALUES (${accountId}, 'node_1', 'payment.settled', ${id})`
    return id
  }

  test('C53, C56: a filter for one node selects the events of its payments, and of no other payments', async () => {
    for (const nodeId of ['node_1', 'node_2'])
      await sql`
        INSERT INTO webhooks (id, account_id, url, node_ids, key_id, secret)
        VALUES (${accountId + nodeId}, ${accountId}, 'https://example.com', ${[nodeId]}, 'test', '')`
    await settledPayment()
    await sequenceAll()
    const typesAt = async (nodeId: string): Promise<string[]> =>
      (await readFeed(sql, accountId, { limit: 10, nodeId })).events.map(({ type }) => type)
    expect(await typesAt('node_1')).toEqual(['payment.settled'])
    expect(await typesAt('node_2')).toEqual([])
    const deliveries = await sql`
      SELECT w.node_ids FROM webhook_deliveries d JOIN webhooks w ON w.id = d.webhook_id WHERE w.account_id = ${accountId}`
    expect(deliveries).toEqual([{ node_ids: ['node_1'] }])
  })

  test('C53: each step of a payment is an event that says what was sold, and never contains the invoice or credential', async () => {
    const id = await settledPayment()
    await sql`
      INSERT INTO paid_payments (account_id, id, actor, redeemed_at, redeem_request_id, held_until)
      VALUES (${accountId}, ${id}, 'test', now(), 'r1', now() + interval '1 minute')`
    await sequenceAll()
    expect((await feed()).map(({ type }) => type)).toEqual(['payment.settled', 'payment.paid'])
    await sql`UPDATE paid_payments SET held_until = NULL WHERE id = ${id}`
    // Repeating a confirmation changes nothing.
    await sql`UPDATE paid_payments SET held_until = NULL WHERE id = ${id}`
    await sequenceAll()
    const { events } = await readFeed(sql, accountId, { limit: 10 })
    expect(events.map(({ type }) => type)).toEqual(['payment.settled', 'payment.paid', 'payment.redeemed'])
    const facts = {
      paymentId: id,
      nodeId: 'node_1',
      protocol: 'mpp',
      amountSat: 21,
      description: 'One joke',
      resource: 'GET /joke',
    }
    expect(events.map(({ data }) => data)).toEqual([facts, facts, { ...facts, requestId: 'r1' }])
  })

  test('C53: a warning about credit is credit.low, and credit.grace once it is used up', async () => {
    for (const level of ['week', 'day', 'empty'])
      await sql`
        INSERT INTO activity (account_id, actor, action, detail)
        VALUES (${accountId}, 'credit', 'credit.warning', ${sql.json({ level, runwaySeconds: 5 })})`
    await sequenceAll()
    expect((await feed()).map(({ type }) => type)).toEqual(['credit.low', 'credit.low', 'credit.grace'])
  })
})
