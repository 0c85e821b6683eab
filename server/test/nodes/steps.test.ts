import { beforeAll, beforeEach, expect, test } from 'vitest'
import type { Database } from '../../src/store/db.ts'
import type { NodeRow } from '../../src/store/nodes/nodes.ts'
import {
  checkAllWithin,
  claimDueNodes,
  finishStep,
  type Outcome,
  postponeStep,
  takeOverHost,
  wakeNode,
} from '../../src/store/nodes/steps.ts'
import { Owner } from '../support/nodes.ts'
import { startServer } from '../support/server.ts'

let sql: Database
let host: string

beforeAll(async () => {
  const server = await startServer({ env: { NODE_PRICE_SAT_PER_DAY: '0' } })
  await new Owner(server, await server.newKey(['nodes:write'])).createReady()
  // From here on, only the tests take leases.
  await server.stop()
  sql = server.sql()
  const [row] = await sql<{ host: string }[]>`SELECT host FROM nodes LIMIT 1`
  host = row?.host ?? ''
})
beforeEach(() => takeOverHost(sql, host))

const claim = async (owner: string): Promise<NodeRow> => {
  const [node] = await claimDueNodes(sql, host, { owner, busyWith: [] }, 1)
  if (!node) throw new Error('no node is due')
  return node
}
const outcomeOf = (node: NodeRow): Outcome => ({
  phase: 'written by the test',
  version: node.version,
  desiredVersion: node.desiredVersion,
  history: node.history,
  recheckMs: 3_600_000,
  hasFunds: undefined,
  balanceSat: undefined,
  shows: undefined,
  ends: undefined,
  updateEnds: undefined,
})
const stateOf = async (id: string) => {
  const [row] = await sql<{ phase: string; leaseOwner: string | null; isDue: boolean }[]>`
    SELECT phase, lease_owner AS "leaseOwner", next_at <= now() AS "isDue" FROM nodes WHERE id = ${id}`
  return row
}

test('a step that still has its lease is recorded', async () => {
  const node = await claim('one')
  expect(await finishStep(sql, node, outcomeOf(node))).toBe('recorded')
  expect(await stateOf(node.id)).toEqual({ phase: 'written by the test', leaseOwner: null, isDue: false })
  await sql`UPDATE nodes SET phase = 'running' WHERE id = ${node.id}`
})

test('Reliability 13: a process that was paused beyond its lease writes nothing, and does not end the lease of the next one', async () => {
  const paused = await claim('one')
  await sql`UPDATE nodes SET lease_until = now() - interval '1 second' WHERE id = ${paused.id}`
  const next = await claimDueNodes(sql, host, { owner: 'other', busyWith: [] }, 10)
  expect(next.map(({ id }) => id)).toContain(paused.id)
  expect(await finishStep(sql, paused, outcomeOf(paused))).toBe('lease_lost')
  expect(await stateOf(paused.id)).toMatchObject({ leaseOwner: 'other' })
  expect((await stateOf(paused.id))?.phase).not.toBe('written by the test')
})

test('a step during which something else was requested writes nothing, and the node is due again at once', async () => {
  const node = await claim('one')
  await sql`UPDATE nodes SET operation_id = 'op_requested_meanwhile' WHERE id = ${node.id}`
  expect(await finishStep(sql, node, outcomeOf(node))).toBe('superseded')
  expect(await stateOf(node.id)).toMatchObject({ leaseOwner: null, isDue: true })
  expect((await stateOf(node.id))?.phase).not.toBe('written by the test')
})

test('a change that was reported during a step is not forgotten: the node is due again at once', async () => {
  const node = await claim('one')
  await wakeNode(sql, node.id)
  expect(await finishStep(sql, node, { ...outcomeOf(node), phase: 'running' })).toBe('recorded')
  expect(await stateOf(node.id)).toEqual({ phase: 'running', leaseOwner: null, isDue: true })
})

const later = (id: string) => sql`UPDATE nodes SET next_at = now() + interval '1 hour', lease_owner = NULL WHERE id = ${id}`

test('a new replica has every node checked within the given time, and leaves what is due sooner as it is', async () => {
  const { id } = await claim('other')
  const dueInMs = async (): Promise<number> => {
    const [row] = await sql<
      { ms: number }[]
    >`SELECT extract(epoch FROM next_at - now())::float8 * 1000 AS ms FROM nodes WHERE id = ${id}`
    return row?.ms ?? Number.NaN
  }
  const before = await dueInMs()
  await checkAllWithin(sql, host, 30_000)
  expect(await dueInMs()).toBeLessThanOrEqual(before)
  expect(await stateOf(id), 'another replica keeps its lease').toMatchObject({ leaseOwner: 'other' })
  await later(id)
  await checkAllWithin(sql, host, 30_000)
  expect(await dueInMs()).toBeLessThanOrEqual(30_000)
})

test('a step that failed is tried again a second later, unless a change was reported meanwhile', async () => {
  const node = await claim('one')
  await postponeStep(sql, node)
  expect(await stateOf(node.id)).toMatchObject({ leaseOwner: null, isDue: false })
  await sql`UPDATE nodes SET next_at = now() WHERE id = ${node.id}`
  const again = await claim('one')
  await wakeNode(sql, again.id)
  await postponeStep(sql, again)
  expect((await stateOf(again.id))?.isDue).toBe(true)
  await postponeStep(sql, node)
  expect(await stateOf(node.id), 'an old step changes nothing').toMatchObject({ leaseOwner: 'one' })
})
