import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { AccountChanges, type AccountChangesOptions, type Changed } from '../../src/events/account-changes.ts'
import { ChangeNotifier } from '../../src/events/change-notifier.ts'
import { EventStreams, STREAM_TIMES } from '../../src/http/dashboard/events.ts'
import { newId } from '../../src/platform/ids.ts'
import { createLogger } from '../../src/platform/log.ts'
import { notifyChanges } from '../../src/store/changes.ts'
import { type Database, openStore } from '../../src/store/db.ts'
import { sequenceEvents } from '../../src/store/events/outbox.ts'
import { newAccount, newNode } from '../support/credit.ts'
import { newDatabase } from '../support/database.ts'
import { eventually, type Store, track } from '../support/server.ts'

/** Runs the code in this process, to use intervals of milliseconds. */

let store: Store
let sql: Database
let log: Awaited<ReturnType<typeof createLogger>>
const closing: (() => unknown)[] = []

beforeAll(async () => {
  ;({ sql, store } = await newDatabase())
  log = await createLogger('silent')
})
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

const NEVER_MS = 1_000_000
/** Long enough for every notification to be reported. */
const MOMENT_MS = 500
const ALL: Changed = { nodes: true, payments: true, activity: true }
const ONLY = (...names: (keyof Changed)[]): Changed => ({
  nodes: names.includes('nodes'),
  payments: names.includes('payments'),
  activity: names.includes('activity'),
})

/** Watches an account, and collects what is reported once the watch has begun. */
async function watch(
  accountId: string,
  options: Partial<AccountChangesOptions> = {},
): Promise<{ told: Changed[]; leave: () => void; changes: AccountChanges }> {
  // Its own connection, so that the start of listening is reported before any notification arrives.
  const own = track(openStore(store, 1))
  const changes = new AccountChanges({ sql: own, pauseMs: 10, ...options })
  closing.push(() => changes.close())
  const told: Changed[] = []
  const leave = changes.watch(accountId, (changed) => told.push(changed))
  await eventually(async () => {
    await tell(accountId)
    return told.length > 0
  }, 'the listening to begin')
  // Notifications arrive in commit order, so when the one sent here has arrived, all earlier ones have too.
  told.length = 0
  await notifyChanges(sql, [{ accountId, changes: ['nodes'] }])
  await eventually(() => told.some(({ nodes }) => nodes), 'the last one')
  told.length = 0
  return { told, leave, changes }
}
const tell = (accountId: string): Promise<void> => notifyChanges(sql, [{ accountId, changes: ['payments'] }])

async function insertPayment(accountId: string): Promise<string> {
  const id = newId('pay')
  await sql`
    INSERT INTO gateway_payments (id, account_id, node_id, protocol, amount_sat, description, challenge, payment_hash, protocol_key_id,
                                  created_at, expires_at)
    VALUES (${id}, ${accountId}, 'node', 'mpp', 1, 'test', 'test', sha256(${id}::bytea), 'test', now(), now() + interval '5 minutes')`
  return id
}

describe('a watched account', () => {
  test('reports changes within the pause together', async () => {
    const accountId = await newAccount(sql)
    const { told } = await watch(accountId, { pauseMs: 3_000 })
    await tell(accountId)
    await eventually(() => told.length === 1, 'the first')
    await Promise.all([tell(accountId), notifyChanges(sql, [{ accountId, changes: ['activity'] }])])
    await eventually(() => told.length === 2, 'the others')
    expect(told).toEqual([ONLY('payments'), ONLY('payments', 'activity')])
  })

  test('does not report changes of other accounts, or after the watch has ended', async () => {
    const [mine, others] = [await newAccount(sql), await newAccount(sql)]
    const { told, leave } = await watch(mine)
    await tell(others)
    await tell(mine)
    await eventually(() => told.length > 0, 'mine')
    leave()
    await tell(mine)
    await pause(MOMENT_MS)
    expect(told).toEqual([ONLY('payments')])
  })

  test('reports visible changes of a node, and not every observation', async () => {
    const accountId = await newAccount(sql)
    const nodeId = await newNode(sql, accountId)
    const { told } = await watch(accountId)
    const next = async (wanted: Changed): Promise<void> => {
      await eventually(() => told.length > 0, 'a change')
      expect(told.splice(0)).toEqual([wanted])
    }
    /** Everything reported up to now. Notifications arrive in commit order, so when the one sent here arrives, all earlier ones have. */
    const reported = async (): Promise<Changed[]> => {
      await tell(accountId)
      await eventually(() => told.some(({ payments }) => payments), 'the last one')
      return told.splice(0)
    }
    await sql`UPDATE nodes SET phase = 'starting' WHERE id = ${nodeId}`
    await sql`UPDATE nodes SET next_at = now(), lease_epoch = lease_epoch + 1, history = history || '{"run": 7}' WHERE id = ${nodeId}`
    await reported()
    await sql`UPDATE nodes SET phase = 'absent', next_at = now(), status = status WHERE id = ${nodeId}`
    expect(await reported()).toEqual([ONLY('payments')])
    await sql`UPDATE nodes SET phase = 'running' WHERE id = ${nodeId}`
    await next(ONLY('nodes'))
    await sql`UPDATE nodes SET name = 'other' WHERE id = ${nodeId}`
    await next(ONLY('nodes'))
    await newNode(sql, accountId)
    await next(ONLY('nodes'))
  })

  test('reports activity entries; those of payments are reported by the process that wrote them', async () => {
    const accountId = await newAccount(sql)
    const { told } = await watch(accountId)
    await sql`INSERT INTO activity (account_id, actor, action) VALUES (${accountId}, 'test', 'payment.settled')`
    await pause(MOMENT_MS)
    expect(told).toEqual([])
    await sql`INSERT INTO activity (account_id, actor, action) VALUES (${accountId}, 'test', 'key.created')`
    await eventually(() => told.length > 0, 'the line')
    expect(told).toEqual([ONLY('activity')])
  })

  test.each([
    [
      'settled',
      async (accountId: string, id: string) =>
        sql`INSERT INTO activity (account_id, actor, action, target) VALUES (${accountId}, 'test', 'payment.settled', ${id})`,
    ],
    [
      'paid',
      async (accountId: string, id: string) =>
        sql`INSERT INTO paid_payments (account_id, id, actor) VALUES (${accountId}, ${id}, 'test')`,
    ],
  ])('reports a payment that was %s by a process that died before it could notify', async (_title, act) => {
    const accountId = await newAccount(sql)
    const id = await insertPayment(accountId)
    const { told } = await watch(accountId)
    await act(accountId, id)
    await pause(MOMENT_MS)
    expect(told).toEqual([])
    // Transactions of other tests may hold the event back.
    await eventually(async () => (await sequenceEvents(sql, 1_000)).count > 0, 'the event')
    await eventually(() => told.length > 0, 'the change')
    expect(told).toEqual([ONLY('payments', 'activity')])
  })

  test('reports a payment and its event together', async () => {
    const accountId = await newAccount(sql)
    const { told } = await watch(accountId)
    await sql`
      SELECT pg_notify('boltyard_changed', ${`${accountId} payments`}), pg_notify('boltyard_changed', ${`${accountId} activity`}),
             pg_notify('boltyard_events_added', ${accountId})`
    await eventually(() => told.length > 0, 'the change')
    await pause(MOMENT_MS)
    expect(told).toEqual([ONLY('payments', 'activity')])
  })

  test('reports that everything may have changed after the listening connection was lost', async () => {
    const accountId = await newAccount(sql)
    const { told } = await watch(accountId)
    const [ended] = await sql`
      SELECT count(pg_terminate_backend(pid))::int AS count FROM pg_stat_activity
      WHERE datname = current_database() AND query LIKE 'LISTEN %'`
    expect(ended?.count).toBeGreaterThan(0)
    await eventually(() => told.length > 0, 'the listening to begin again')
    expect(told).toEqual([ALL])
  })
})

describe('notifications of a process’s own changes', () => {
  test('are one per account and interval, however many changes there were', async () => {
    const [one, two] = [newId('acct'), newId('acct')]
    const heard: string[] = []
    await new Promise<void>((resolve) => {
      closing.push(sql.listen('boltyard_changed', { onNotify: (payload) => heard.push(payload), onStart: resolve }))
    })
    const notifier = new ChangeNotifier({ sql, log, delayMs: 100 })
    for (let time = 0; time < 1_000; time++) notifier.note(one, 'payments')
    notifier.note(two, 'payments', 'activity')
    await eventually(() => heard.length > 0, 'the notifications')
    await pause(MOMENT_MS)
    expect(heard.sort()).toEqual([`${one} payments`, `${two} activity`, `${two} payments`].sort())
  })

  test('are sent before it closes', async () => {
    const accountId = await newAccount(sql)
    const { told } = await watch(accountId)
    const notifier = new ChangeNotifier({ sql, log, delayMs: NEVER_MS })
    notifier.note(accountId, 'payments')
    await notifier.close()
    await eventually(() => told.length > 0, 'the change')
    expect(told).toEqual([ONLY('payments')])
  })
})

describe('a stream', () => {
  const open = async (times: { heartbeatMs: number; sessionCheckMs: number }, isSignedIn: () => Promise<boolean>) => {
    const { changes } = await watch(await newAccount(sql))
    const streams = new EventStreams(changes, times)
    closing.push(() => streams.close())
    return streams.open(newId('acct'), isSignedIn)
  }

  test('sends a comment at least every 15 s, and checks the session at least every 30 s', () => {
    expect(STREAM_TIMES.heartbeatMs).toBeLessThanOrEqual(15_000)
    expect(STREAM_TIMES.sessionCheckMs).toBeLessThanOrEqual(30_000)
  })

  test('is kept alive by repeated comments', async () => {
    const stream = await open({ heartbeatMs: 20, sessionCheckMs: NEVER_MS }, async () => true)
    let text = ''
    stream.on('data', (chunk) => {
      text += chunk
    })
    await eventually(() => text.split(': still here\n\n').length > 3, 'comments')
  })

  test('ends with its session, and stays open while that is unknown', async () => {
    let answer: () => Promise<boolean> = async () => true
    const stream = (await open({ heartbeatMs: NEVER_MS, sessionCheckMs: 20 }, () => answer())).resume()
    answer = () => Promise.reject(new Error('the store is down'))
    await pause(MOMENT_MS)
    expect(stream.writableEnded).toBe(false)
    answer = async () => false
    await once(stream, 'close')
  })
})
