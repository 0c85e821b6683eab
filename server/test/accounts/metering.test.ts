import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { CRASHING_SERVER } from '../../../testing/bundles.ts'
import { newId } from '../../src/platform/ids.ts'
import { findCredit, insertCredit, missingCredit } from '../../src/store/credit/credit.ts'
import { closeHours, forgetUsage, postUsage } from '../../src/store/credit/usage.ts'
import type { Database, Sql } from '../../src/store/db.ts'
import { migrate } from '../../src/store/migrate.ts'
import {
  type Clock,
  costOf,
  entriesOf,
  forgetNodes,
  freshDatabase,
  intervalsOf,
  minutes,
  NOON,
  newAccount,
  newNode,
  PRICE_MSAT,
  setNode,
  sumOf,
} from '../support/credit.ts'
import { eventually, Server } from '../support/server.ts'

const NOW = Math.floor(NOON / 60)
const HOUR = 3_600
const DAY = 86_400

let sql: Database
let clock: Clock
let account: string

beforeAll(async () => {
  ;({ sql, clock } = await freshDatabase())
})

beforeEach(async () => {
  // Otherwise, intervals that another test left open would be closed and posted together with the intervals of this test.
  await forgetNodes(sql)
  await clock.set(NOON)
  account = await newAccount(sql)
})

const post = (limit = 1_000): Promise<number> => postUsage(sql, PRICE_MSAT, limit)
const used = async (id = account): Promise<number> => 0 - sumOf(await entriesOf(sql, id, 'usage'))
const owes = async (id = account): Promise<{ posted: number; unposted: number }> => {
  const row = await findCredit(sql, id, PRICE_MSAT)
  return { posted: await used(id), unposted: row?.unpostedMsat ?? Number.NaN }
}

describe('C32: the usage that is recorded for a node', () => {
  test.each([
    { status: 'provisioning', costs: true },
    { status: 'ready', costs: true },
    { status: 'stopped', costs: false },
    { status: 'failed', costs: false },
    { status: 'ready', desired: 'stopped', costs: false },
    { status: 'ready', desired: 'deleted', costs: false },
    { status: 'ready', isDeleted: true, costs: false },
  ])('C32: status $status, desired $desired, deleted $isDeleted: charged $costs', async ({ costs, ...state }) => {
    const made = await newNode(sql, account, state)
    expect(await intervalsOf(sql, made)).toEqual(costs ? [{ from: NOW, to: null, isPosted: false }] : [])
    const changed = await newNode(sql, account, { status: 'stopped', desired: 'stopped' })
    await setNode(sql, changed, { desired: 'running', ...state })
    expect(await intervalsOf(sql, changed)).toHaveLength(costs ? 1 : 0)
  })

  test('C32: an interval begins and ends in the transaction that changes the node, and is rolled back with it', async () => {
    const node = await newNode(sql, account)
    await clock.move(10 * 60)
    const undone = sql.begin(async (transaction) => {
      await setNode(transaction, node, { status: 'stopped' })
      expect(await intervalsOf(transaction, node)).toEqual([{ from: NOW, to: NOW + 11, isPosted: false }])
      throw new Error('undone')
    })
    await expect(undone).rejects.toThrow('undone')
    expect(await intervalsOf(sql, node)).toEqual([{ from: NOW, to: null, isPosted: false }])
    await setNode(sql, node, { desired: 'stopped' })
    // Here the process is still stopping, but the interval has ended, because the node should no longer run.
    await setNode(sql, node, { status: 'stopped' })
    const ended = [{ from: NOW, to: NOW + 11, isPosted: false }]
    expect(await intervalsOf(sql, node)).toEqual(ended)
    await clock.move(5 * 60)
    const notBegun = sql.begin(async (transaction) => {
      await setNode(transaction, node, { status: 'ready', desired: 'running' })
      expect(await intervalsOf(transaction, node)).toHaveLength(2)
      throw new Error('undone')
    })
    await expect(notBegun).rejects.toThrow('undone')
    expect(await intervalsOf(sql, node)).toEqual(ended)
  })

  test('C32: a started minute counts once, however often the node is started and stopped in it', async () => {
    const node = await newNode(sql, account)
    for (let time = 0; time < 5; time++) {
      await setNode(sql, node, { status: 'stopped' })
      expect(await intervalsOf(sql, node)).toEqual([{ from: NOW, to: NOW + 1, isPosted: false }])
      await setNode(sql, node, { status: 'ready' })
    }
    // The next interval begins in the next minute, without a gap.
    await clock.move(60)
    await setNode(sql, node, { isDeleted: true })
    expect(await intervalsOf(sql, node)).toEqual([
      { from: NOW, to: NOW + 1, isPosted: false },
      { from: NOW + 1, to: NOW + 2, isPosted: false },
    ])
  })

  test('C32: a node that is stopped before the end of each minute is still charged for every minute', async () => {
    await clock.set(NOW * 60 + 5)
    const node = await newNode(sql, account)
    for (let minute = 0; minute < 60; minute++) {
      await clock.set((NOW + minute) * 60 + 55)
      await setNode(sql, node, { status: 'stopped' })
      await clock.set((NOW + minute + 1) * 60 + 5)
      if (minute < 59) await setNode(sql, node, { status: 'ready' })
    }
    await post()
    expect(await used()).toBe(costOf(PRICE_MSAT, minutes(NOW, NOW + 60)))
  })

  test('C32: a node whose row is gone costs nothing more, but its usage is still owed', async () => {
    const node = await newNode(sql, account)
    await clock.move(HOUR)
    await sql`DELETE FROM nodes WHERE id = ${node}`
    await clock.move(HOUR)
    await post()
    expect(await used()).toBe(costOf(PRICE_MSAT, minutes(NOW, NOW + 61)))
  })

  test('C32: usage continues while the service is down: one long interval, with every minute charged once', async () => {
    const node = await newNode(sql, account)
    await clock.move(9 * DAY + 90)
    expect(await closeHours(sql)).toBe(1)
    expect(await closeHours(sql)).toBe(0)
    expect(await intervalsOf(sql, node)).toEqual([
      { from: NOW, to: NOW + 9 * 1440 + 1, isPosted: false },
      { from: NOW + 9 * 1440 + 1, to: null, isPosted: false },
    ])
    expect(await post()).toBe(1)
    expect(await entriesOf(sql, account, 'usage')).toEqual([
      { amountMsat: -costOf(PRICE_MSAT, minutes(NOW, NOW + 9 * 1440 + 1)), kind: 'usage', reference: `${node} ${NOW}` },
    ])
  })

  test('C32: an interval of less than an hour stays open', async () => {
    const node = await newNode(sql, account)
    await clock.move(HOUR - 60)
    expect(await closeHours(sql)).toBe(0)
    await clock.move(60)
    expect(await closeHours(sql)).toBe(1)
    expect(await intervalsOf(sql, node)).toHaveLength(2)
  })

  test('C32: if the clock is set forward and back, no minute is charged twice, no charge is negative, and hours charged too early are not charged again', async () => {
    const node = await newNode(sql, account)
    await clock.move(5 * HOUR)
    await closeHours(sql)
    await post()
    await clock.move(-5 * HOUR + 600)
    expect((await owes()).unposted).toBe(0)
    await setNode(sql, node, { status: 'stopped' })
    await setNode(sql, node, { status: 'ready' })
    await clock.move(600)
    await setNode(sql, node, { status: 'stopped' })
    expect(await closeHours(sql)).toBe(0)
    expect(await post()).toBe(0)
    await setNode(sql, node, { status: 'ready' })
    await clock.set(NOON + 6 * HOUR)
    await setNode(sql, node, { status: 'stopped' })
    await post()
    expect(await used()).toBe(costOf(PRICE_MSAT, minutes(NOW, NOW + 6 * 60 + 1)))
  })

  test('C32: for nodes that are older than metering, usage begins with the migration', async () => {
    const old = await freshDatabase(4)
    const owner = newId('acct')
    // Plain SQL, because the service's own statement uses columns that later migrations add.
    await old.sql`INSERT INTO accounts (id, name) VALUES (${owner}, 'old')`
    const runs = await newNode(old.sql, owner)
    const others = [
      await newNode(old.sql, owner, { status: 'stopped', desired: 'stopped' }),
      await newNode(old.sql, owner, { status: 'failed' }),
      await newNode(old.sql, owner, { isDeleted: true }),
    ]
    await old.clock.move(DAY)
    await migrate(old.sql)
    expect(await intervalsOf(old.sql, runs)).toEqual([{ from: NOW + 1440, to: null, isPosted: false }])
    for (const other of others) expect(await intervalsOf(old.sql, other)).toEqual([])
  })

  test('C32: an account’s nodes cost nothing while it is the treasury', async () => {
    const node = await newNode(sql, account)
    await clock.move(600)
    await sql`UPDATE accounts SET is_treasury = true WHERE id = ${account}`
    await clock.move(DAY)
    const later = await newNode(sql, account)
    expect(await intervalsOf(sql, later)).toEqual([])
    await sql`UPDATE accounts SET is_treasury = false WHERE id = ${account}`
    expect(await intervalsOf(sql, node)).toEqual([
      { from: NOW, to: NOW + 11, isPosted: false },
      { from: NOW + 1450, to: null, isPosted: false },
    ])
    expect(await intervalsOf(sql, later)).toHaveLength(1)
  })

  test('C32: a node that stops while its hour is being closed has no open interval afterwards, whichever comes first', async () => {
    for (const first of ['stop', 'close'] as const) {
      const node = await newNode(sql, account)
      await clock.move(2 * HOUR)
      let goOn = (): void => undefined
      const held = new Promise<void>((resolve) => {
        goOn = resolve
      })
      let isDone = (): void => undefined
      const done = new Promise<void>((resolve) => {
        isDone = resolve
      })
      const stop = (store: Sql): Promise<unknown> => setNode(store, node, { status: 'stopped' })
      const [holder, other] = first === 'stop' ? [stop, closeHours] : [closeHours, stop]
      const holding = sql.begin(async (transaction) => {
        await holder(transaction)
        isDone()
        await held
      })
      await done
      const waiting = other(sql)
      await new Promise((resolve) => setTimeout(resolve, 100))
      goOn()
      await Promise.all([holding, waiting])
      const kept = await intervalsOf(sql, node)
      expect([first, kept.filter(({ to }) => to === null)]).toEqual([first, []])
      expect(kept.flatMap(({ from, to }) => minutes(from, to ?? Number.NaN)).length).toBe(121)
    }
  })
})

describe('C32: posting', () => {
  test('C32: with eight concurrent postings, every interval is in the ledger once', async () => {
    const nodes = await Promise.all(Array.from({ length: 40 }, () => newNode(sql, account)))
    for (let hour = 0; hour < 5; hour++) {
      await clock.move(HOUR)
      await Promise.all([closeHours(sql), closeHours(sql), closeHours(sql)])
    }
    const posted = await Promise.all(Array.from({ length: 8 }, () => post(60)))
    let rest = 0
    for (let count = await post(60); count > 0; count = await post(60)) rest += count
    expect(posted.reduce((sum, count) => sum + count, rest)).toBe(200)
    const entries = await entriesOf(sql, account, 'usage')
    expect(new Set(entries.map(({ reference }) => reference)).size).toBe(200)
    expect(-sumOf(entries)).toBe(nodes.length * costOf(PRICE_MSAT, minutes(NOW, NOW + 300)))
  })

  test('C32: a posting that was rolled back is repeated, once', async () => {
    await newNode(sql, account)
    await clock.move(HOUR)
    await closeHours(sql)
    const undone = sql.begin(async (transaction) => {
      expect(await postUsage(transaction, PRICE_MSAT, 10)).toBe(1)
      throw new Error('killed')
    })
    await expect(undone).rejects.toThrow('killed')
    expect(await entriesOf(sql, account, 'usage')).toEqual([])
    expect([await post(), await post()]).toEqual([1, 0])
    expect(await entriesOf(sql, account, 'usage')).toHaveLength(1)
  })

  test('C32: an interval that is manually marked as not posted is not charged again: the ledger already contains it', async () => {
    await newNode(sql, account)
    await clock.move(HOUR)
    await closeHours(sql)
    await post()
    await sql`UPDATE usage_intervals SET posted_at = NULL WHERE ended_at IS NOT NULL`
    await post()
    expect(await entriesOf(sql, account, 'usage')).toHaveLength(1)
  })

  test('C32: at price 0, there is no entry and no usage, and a price that is set later does not apply to earlier time', async () => {
    const node = await newNode(sql, account)
    const stopped = await newNode(sql, account)
    await clock.move(3 * HOUR)
    await setNode(sql, stopped, { status: 'stopped' })
    await forgetUsage(sql)
    expect(await owes()).toEqual({ posted: 0, unposted: 0 })
    await clock.move(600)
    await setNode(sql, node, { status: 'stopped' })
    await post()
    expect(await used()).toBe(costOf(PRICE_MSAT, minutes(NOW + 180, NOW + 191)))
  })

  test('C32: deleting usage does not conflict with a node that is being stopped', async () => {
    const node = await newNode(sql, account)
    await clock.move(HOUR)
    let stopping: Promise<void> | undefined
    await sql.begin(async (transaction) => {
      await forgetUsage(transaction)
      stopping = setNode(sql, node, { status: 'stopped' })
      await new Promise((resolve) => setTimeout(resolve, 100))
    })
    await stopping
    const kept = await eventually(async () => {
      const intervals = await intervalsOf(sql, node)
      return intervals.every(({ to }) => to !== null) && intervals
    }, 'the node to be stopped')
    // The usage before the deletion is gone. The last minute is still there, and the next pass deletes it.
    expect(kept).toEqual([{ from: NOW + 60, to: NOW + 61, isPosted: false }])
    await forgetUsage(sql)
    expect(await intervalsOf(sql, node)).toEqual([])
  })

  test('C32: unposted usage counts when a node is created, and posted usage does not count twice', async () => {
    await insertCredit(sql, { accountId: account, amountMsat: 2 * PRICE_MSAT, kind: 'test', reason: 'x', actor: 'x' })
    const missing = async (): Promise<number> => (await missingCredit(sql, account, PRICE_MSAT, 1)).missingMsat
    expect(await missing()).toBe(0)
    await newNode(sql, account)
    expect(await missing()).toBe(0)
    await clock.move(DAY / 2)
    const cost = costOf(PRICE_MSAT, minutes(NOW, NOW + 720))
    expect(await missing()).toBe(cost)
    await closeHours(sql)
    expect(await missing()).toBe(cost)
    await post()
    expect(await missing()).toBe(cost)
  })
})

describe('C32: killed services, and several services on one database', () => {
  let yard: Server
  let store: Database
  let accountId: string

  beforeAll(async () => {
    yard = await new Server({
      command: [process.execPath, CRASHING_SERVER],
      env: { LOG_LEVEL: 'warn', CREDIT_GRACE_HOURS: '0' },
    }).start()
    store = yard.sql()
    accountId = (await yard.newAccount({ creditSat: 10_000 })).id
  })

  /** A node that seems to have run for this long. It belongs to another host, so that only metering touches it. */
  const runFor = async (hours: number): Promise<{ id: string; from: number }> => {
    const id = await newNode(store, accountId)
    await store`UPDATE usage_intervals SET started_at = started_at - ${hours} * interval '1 hour' WHERE node_id = ${id}`
    return { id, from: (await intervalsOf(store, id))[0]?.from ?? Number.NaN }
  }
  const entriesOfNode = async (id: string): Promise<{ amountMsat: number; reference: string | null }[]> =>
    (await entriesOf(store, accountId, 'usage')).filter(({ reference }) => reference?.startsWith(id))
  const inOrder = async (id: string, from: number): Promise<void> => {
    const [interval, ...rest] = await eventually(async () => {
      const kept = await intervalsOf(store, id)
      return kept[0]?.isPosted ? kept : undefined
    }, 'the hours to be posted')
    expect(rest).toEqual([{ from: interval?.to, to: null, isPosted: false }])
    expect(await entriesOfNode(id)).toEqual([
      {
        amountMsat: -costOf(PRICE_MSAT, minutes(from, interval?.to ?? 0)),
        kind: 'usage',
        reference: `${id} ${from}`,
      },
    ])
    await store`DELETE FROM nodes WHERE id = ${id}`
  }

  test.each(['metering: hours closed', 'metering: posted', 'metering: warned'])(
    'killed at "%s": every minute is in the ledger once',
    async (point) => {
      const { id, from } = await runFor(30)
      await yard.kill()
      await yard.launch({ CRASH_AT: point })
      expect((await yard.exited).signal).toBe('SIGKILL')
      await yard.start()
      await inOrder(id, from)
    },
  )

  test('C32: two services that start at once on one database post every minute once', async () => {
    const { id, from } = await runFor(500)
    const other = new Server({ env: { ...yard.sharedStoreEnv, LOG_LEVEL: 'warn' } })
    await yard.kill()
    await Promise.all([yard.start(), other.start()])
    await inOrder(id, from)
    await other.stop()
  })
})
