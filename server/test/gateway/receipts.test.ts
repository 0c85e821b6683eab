import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createLogger } from '../../src/platform/log.ts'
import { Receipts } from '../../src/settlements/receipts.ts'
import type { Database } from '../../src/store/db.ts'
import { finishList, takeDueLists, unlistedNodes } from '../../src/store/nodes/receipts.ts'
import { freshDatabase, NOON, newAccount, newNode } from '../support/credit.ts'
import { eventually } from '../support/server.ts'

/** One turn reads at most two of the four pages. A list that began again in each turn would never end. */
const PAGE_MS = 100
const TURN_MS = 150
const PAYMENTS = 1_500

type Payment = { paymentHash: string; isPaid: true; receivedSat: number; completedAt: number }
const payment = (place: number): Payment => ({
  paymentHash: createHash('sha256').update(String(place)).digest('hex'),
  isPaid: true,
  receivedSat: 1,
  // One per minute. Otherwise, each list would overlap the one before by many pages.
  completedAt: NOON * 1000 - 200_000_000 + place * 60_000,
})

/** What the node lists, newest first. */
let listed: Payment[] = Array.from({ length: PAYMENTS }, (_, place) => payment(PAYMENTS - place))
let pages = 0

const node = createServer(async (request, response) => {
  const { searchParams } = new URL(request.url ?? '', 'http://node')
  const number = (name: string, otherwise: number): number => Number(searchParams.get(name) ?? otherwise)
  const [from, to, offset] = [number('from', 0), number('to', Number.POSITIVE_INFINITY), number('offset', 0)]
  await pause(PAGE_MS)
  const wanted = listed.filter(({ completedAt }) => completedAt >= from && completedAt <= to)
  response.end(JSON.stringify(wanted.slice(offset, offset + number('limit', 20))))
  // Positions change: a newer payment arrives, and the node has lost some, as after a restore of its data.
  if (++pages === 1) listed = [payment(PAYMENTS + 1), ...listed.slice(300)]
})

let sql: Database
beforeAll(async () => {
  ;({ sql } = await freshDatabase())
  node.listen(0, '127.0.0.1')
  await once(node, 'listening')
})
afterAll(() => {
  node.close()
  node.closeAllConnections()
})

test('dashboard: a list of receipts that takes too long continues where it stopped, in any process, and is complete only when nothing is missing', async () => {
  const nodeId = await newNode(sql, await newAccount(sql))
  const address = { host: '127.0.0.1', port: (node.address() as AddressInfo).port }
  const accessTo = async () => ({ address, password: () => 'x' })
  const deps = { sql, accessTo, noteChange: () => undefined, log: await createLogger('warn') }
  const processes: Receipts[] = []
  const recorded = async (): Promise<number> => (await sql`SELECT 1 FROM node_receipts WHERE node_id = ${nodeId}`).length
  const isComplete = async (): Promise<boolean> =>
    (await sql`SELECT 1 FROM node_receipt_lists WHERE node_id = ${nodeId} AND listed_at IS NOT NULL`).length > 0

  await eventually(async () => {
    // A new process for each turn, as after a restart, and as on Kubernetes, where any of several takes the next one.
    const receipts = new Receipts(deps, TURN_MS)
    processes.push(receipts)
    await receipts.sweep('nowhere')
    await pause(TURN_MS + 2 * PAGE_MS)
    await sql`UPDATE node_receipt_lists SET next_at = now()`
    return isComplete()
  }, 'the whole list')
  expect(await recorded()).toBe(PAYMENTS + 1)
  for (const receipts of processes) await receipts.close()
})

test('dashboard: a node lists what it received when its balance has changed, at most every five minutes, and otherwise once an hour', async () => {
  const accountId = await newAccount(sql)
  const nodeId = await newNode(sql, accountId)
  await sql`INSERT INTO node_receipt_lists (node_id, next_at) SELECT id, now() + interval '1 day' FROM nodes WHERE id <> ${nodeId}
            ON CONFLICT (node_id) DO UPDATE SET next_at = excluded.next_at, begun_at = now()`
  const taken = async (): Promise<number> => (await takeDueLists(sql, 'nowhere', 10)).length
  const finish = (): Promise<void> => finishList(sql, nodeId, NOON * 1000, true)
  const setBalance = (sat: number) => sql`UPDATE nodes SET balance_sat = ${sat} WHERE id = ${nodeId}`
  const pass = (minutes: number) => sql`
    UPDATE node_receipt_lists SET begun_at = begun_at - ${minutes} * interval '1 minute', next_at = next_at - ${minutes} * interval '1 minute',
      listed_at = listed_at - ${minutes} * interval '1 minute' WHERE node_id = ${nodeId}`
  const unlisted = async (): Promise<number> =>
    (await sql<{ nodes: number }[]>`SELECT ${unlistedNodes(sql, accountId, undefined)} AS nodes`)[0]?.nodes ?? -1

  // The first list, by one of two processes: the second one has found it, too, when the first one takes it.
  let other: Promise<number> | undefined
  await sql.begin(async (transaction) => {
    expect(await takeDueLists(transaction, 'nowhere', 10)).toHaveLength(1)
    other = taken()
    await eventually(
      async () =>
        (await sql`SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).length === 1,
      'the second process to wait for the first',
    )
  })
  expect(await other).toBe(0)
  expect(await unlisted()).toBe(1)
  await finish()
  await pass(10)
  expect([await taken(), await unlisted()]).toEqual([0, 0])

  await setBalance(21)
  expect(await taken()).toBe(1)
  // Received after the node was asked: too late for this list.
  await setBalance(42)
  await finish()
  expect(await taken()).toBe(0)
  await pass(5)
  expect(await taken()).toBe(1)
  await finish()

  await pass(59)
  expect(await taken()).toBe(0)
  await pass(1)
  expect(await taken()).toBe(1)
  // The node does not answer.
  expect(await unlisted()).toBe(1)
  await pass(5)
  expect(await taken()).toBe(1)
  await finish()
  expect(await unlisted()).toBe(0)
  await pass(76)
  expect(await unlisted()).toBe(1)
})
