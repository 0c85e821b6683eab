import { setTimeout as pause } from 'node:timers/promises'
import { beforeAll, expect, test } from 'vitest'
import { newId } from '../../src/platform/ids.ts'
import type { Database, Sql } from '../../src/store/db.ts'
import { searchPayments } from '../../src/store/payments/search.ts'
import { SLOW_READ_NAME, SlowReads } from '../../src/store/slow-reads.ts'
import { signUp, type Visitor } from '../support/dashboard.ts'
import { storeOf } from '../support/gateway.ts'
import { eventually, type Server, startServer } from '../support/server.ts'

/** C83: searches cannot use up the database connections that other requests need. */

let server: Server
let sql: Database
let ann: Visitor
let visitors: Visitor[]

beforeAll(async () => {
  server = await startServer({ env: { TRUST_PROXY: '1' } })
  sql = storeOf(server)
  ann = await signUp(server)
  visitors = await Promise.all([signUp(server), signUp(server), signUp(server)])
})

test('C83: however many searches an account sends at once, they use one connection, and a search that takes too long is ended', async () => {
  const searches = await sql.begin(async (other) => {
    await other`SET LOCAL idle_in_transaction_session_timeout = 0`
    await other`LOCK TABLE gateway_payments IN ACCESS EXCLUSIVE MODE`
    const sent = ['/payment-totals', '/payments', '/payments.csv'].flatMap((path) =>
      Array.from({ length: 3 }, () => ann.send('GET', `${path}?search=tea`)),
    )
    expect(await mostReadsUntil(Promise.race(sent))).toBe(1)
    const first = await Promise.race(sent)
    expect([first.status, first.json().error.message]).toEqual([503, expect.stringMatching(/took too long. Narrow it down/)])
    return sent
  })
  // A search that waited behind the first one succeeds, because the table is no longer locked.
  expect((await Promise.all(searches)).map(({ status }) => status)).toContain(200)
})

test.each([
  ['gateway_payments', ['/received?days=30', '/received/nodes', '/received?days=7']],
  ['credit_entries', ['/credit', '/credit?kind=usage', `/credit/usage?from=${Math.floor(Date.now() / 1000) - 86_400}`]],
])('C83: pages that add up %s share one connection of the account, whatever it asks for at once', async (table, paths) => {
  const answers = await sql.begin(async (other) => {
    await other`SET LOCAL idle_in_transaction_session_timeout = 0`
    await other.unsafe(`LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`)
    const others = paths.map((path, n) => visitors[n]?.send('GET', path))
    await eventually(async () => (await readsThatWait()) === others.length, 'one request of each other account to wait')
    const sent = paths.flatMap((path) => [path, path, path]).map((path) => ann.send('GET', path))
    for (const other of await Promise.all(others)) expect([other?.status, other?.headers['retry-after']]).toEqual([503, '5'])
    expect(await mostReadsUntil(Promise.race(sent))).toBe(1)
    const first = await Promise.race(sent)
    expect([first.status, first.headers['retry-after']]).toEqual([503, '5'])
    return sent
  })
  expect((await Promise.all(answers)).map(({ status }) => status)).toContain(200)
})

test('slow reads: one at a time for each account, a few in all, in turns; further ones of the account are refused', async () => {
  const reads = new SlowReads(sql, { maxRunning: 2, maxWaitingOfAccount: 2 })
  const order: string[] = []
  const ends: Record<string, () => void> = {}
  const read = (accountId: string, name: string): Promise<void> =>
    reads.run(accountId, async () => {
      order.push(name)
      await new Promise<void>((resolve) => {
        ends[name] = resolve
      })
    })
  const started = (name: string): Promise<unknown> => eventually(() => order.includes(name), `${name} to start`)
  const all = [read('a', 'a1'), read('a', 'a2'), read('a', 'a3'), read('b', 'b1'), read('c', 'c1')]
  await expect(read('a', 'a4')).rejects.toMatchObject({ code: 'service_unavailable' })
  await Promise.all([started('a1'), started('b1')])
  expect(order).not.toContain('a2')
  for (const [ending, next] of [
    ['b1', 'c1'],
    ['a1', 'a2'],
    ['c1', undefined],
    ['a2', 'a3'],
  ] as const) {
    ends[ending]?.()
    if (next) await started(next)
  }
  ends.a3?.()
  await Promise.all(all)
  expect(order.slice(2)).toEqual(['c1', 'a2', 'a3'])
})

test('C83: each page of a list by delivery reads only what lies beyond the page before it', async () => {
  const [accountId, nodeId] = [newId('acct'), newId('node')]
  const ids = Array.from({ length: 2_000 }, (_, n) => newId('pay', Date.now() - 1_000_000 + n)).sort()
  await sql`
    INSERT INTO gateway_payments (id, account_id, node_id, protocol, amount_sat, description, challenge, payment_hash, protocol_key_id,
                                  created_at, expires_at, settled_at, receipt)
    SELECT id, ${accountId}, ${nodeId}, 'mpp', 1, 'Tea', '', sha256(id::bytea), '', now(), now(), now(), 'r' FROM unnest(${ids}::text[]) new (id)`
  await sql`
    INSERT INTO paid_payments (account_id, id, actor, redeemed_at, redeem_request_id)
    SELECT ${accountId}, id, 'test', now(), 'one' FROM unnest(${ids}::text[]) new (id)`
  await sql`ANALYZE gateway_payments, paid_payments`
  const readBy = async (place: { before?: string; after?: string }): Promise<number> =>
    sql.begin(async (store) => {
      await store`SET LOCAL enable_seqscan = off`
      const before = await rowsRead(store)
      expect(await searchPayments(store, accountId, { state: 'delivered' }, { ...place, limit: 10 })).toHaveLength(10)
      return (await rowsRead(store)) - before
    })
  expect(await readBy({ after: ids[1_980] as string })).toBeLessThan(200)
  expect(await readBy({ before: ids[20] as string })).toBeLessThan(200)
})

/** The service's own statements, such as those that look for due invoices, wait for the table too. They are not counted. */
async function readsThatWait(): Promise<number> {
  const reads = await sql`SELECT 1 FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock' AND application_name = ${SLOW_READ_NAME}`
  return reads.length
}

async function mostReadsUntil(answer: Promise<unknown>): Promise<number> {
  let [isOver, most] = [false, 0]
  void answer.then(() => {
    isOver = true
  })
  for (; !isOver; await pause(20)) most = Math.max(most, await readsThatWait())
  return most
}

async function rowsRead(store: Sql): Promise<number> {
  const [row] = await store<{ read: number }[]>`
    SELECT sum(seq_tup_read + idx_tup_fetch)::int AS read FROM pg_stat_xact_user_tables
    WHERE relname IN ('gateway_payments', 'paid_payments')`
  return row?.read ?? Number.NaN
}
