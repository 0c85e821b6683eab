import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { CRASHING_SERVER } from '../../../testing/bundles.ts'
import type { Database } from '../../src/store/db.ts'
import { undeleteNode } from '../../src/store/nodes/operations.ts'
import { beginPurges } from '../../src/store/nodes/purges.ts'
import { type Created, Yard } from '../support/crash.ts'
import { eventually } from '../support/server.ts'

/** C50 and C26: the data of a deleted node is removed after the retention period, and no other data is. */

const RETENTION_DAYS = 30
let yard: Yard
let sql: Database

beforeAll(async () => {
  const env = { RETENTION_DAYS: String(RETENTION_DAYS), MAX_NODES_PER_ACCOUNT: '200' }
  yard = await new Yard({ command: [process.execPath, CRASHING_SERVER], env }).start()
  sql = yard.sql()
  // `rowElsewhere` copies this node's row, so at least one node must exist.
  await yard.createReady()
})

async function deleted(): Promise<Created> {
  const created = await yard.createReady()
  const { id } = created.node
  await yard.expectOk(yard.v1('DELETE', `/${id}?force=true`))
  await eventually(async () => (await sql`SELECT 1 FROM nodes WHERE id = ${id} AND operation IS NULL`).length === 1, 'its end')
  // The copies that updates leave behind.
  for (const copy of ['before-update-from-0.7.0', 'failed-update', 'before-update-from-0.7.1.unfinished']) {
    mkdirSync(join(`${yard.directory(id)}.${copy}`, 'below'), { recursive: true })
    writeFileSync(join(`${yard.directory(id)}.${copy}`, 'below', 'seed.dat'), created.credentials.seed)
  }
  return created
}

/** Call only while the service is down, because a running service looks for nodes to purge every minute. */
async function age({ node: { id } }: Created, days: number): Promise<void> {
  await sql`UPDATE nodes SET deleted_at = now() - ${days} * interval '1 day' WHERE id = ${id}`
}

const leftOf = (id: string): string[] => [
  ...readdirSync(join(yard.dataDir, 'nodes')).filter((name) => name.startsWith(id)),
  ...(existsSync(yard.state(id)) ? [yard.state(id)] : []),
]
const hasSecrets = async (id: string): Promise<boolean> =>
  (await sql`SELECT 1 FROM node_secrets WHERE node_id = ${id}`).length === 1
const purged = (id: string): Promise<boolean> =>
  eventually(
    async () => (await sql`SELECT 1 FROM nodes WHERE id = ${id} AND purged_at IS NOT NULL`).length === 1,
    `${id} to be purged`,
  )

async function expectNothingLeft({ node: { id } }: Created): Promise<void> {
  expect([leftOf(id), await hasSecrets(id)]).toEqual([[], false])
  const [row] = await sql`SELECT uid, port FROM nodes WHERE id = ${id}`
  expect(row).toEqual({ uid: null, port: null })
  expect((await yard.operator('POST', `/nodes/${id}/undelete`)).status).toBe(404)
}

test('C50: after its retention period, a deleted node’s directory, copies, records and sealed material are removed; others are untouched', async () => {
  const [old, recent, living] = [await deleted(), await deleted(), await yard.createReady()]
  const daemon = yard.daemon(living.node.id)
  await yard.stop()
  await age(old, RETENTION_DAYS + 1)
  await age(recent, RETENTION_DAYS - 1)
  expect([leftOf(old.node.id).length, await hasSecrets(old.node.id)]).toEqual([5, true])
  await yard.start()
  await purged(old.node.id)
  await expectNothingLeft(old)
  expect([leftOf(recent.node.id).length, await hasSecrets(recent.node.id)]).toEqual([5, true])
  expect(yard.daemon(living.node.id)).toEqual(daemon)

  await yard.expectOk(yard.operator('POST', `/nodes/${recent.node.id}/undelete`))
  await eventually(
    async () => (await yard.v1('POST', `/${recent.node.id}/start`)).status === 200,
    'the one that was brought back',
  )
  expect((await yard.node(recent.node.id, recent.credentials.password, 'GET', '/getinfo')).version).toContain('sandbox')
})

test.each(['purge: the copies are gone', 'purge: the data is gone', 'purge: nothing is left here'])(
  'C50: if the service is killed at "%s", the next one finishes the purge',
  async (point) => {
    const old = await deleted()
    await yard.kill()
    await age(old, RETENTION_DAYS + 1)
    await yard.launch({ CRASH_AT: point })
    expect((await yard.exited).signal).toBe('SIGKILL')
    // The sealed material is deleted last, because until then the purge may have to be repeated.
    await yard.start()
    await purged(old.node.id)
    await expectNothingLeft(old)
  },
)

/** A node on another host, which the service of this test does not reconcile. */
async function rowElsewhere(at: number, state: { deletedDaysAgo: number | null; desired: string }): Promise<string> {
  const id = `node_${String(at).padStart(20, '0')}`
  await sql`
    INSERT INTO nodes (id, account_id, host, lightning_id, name, auto_liquidity, access_mode, desired_version, history, status, desired_state, deleted_at)
    SELECT ${id}, account_id, 'elsewhere', lightning_id, name, auto_liquidity, access_mode, desired_version, history, 'stopped', ${state.desired},
           now() - ${state.deletedDaysAgo} * interval '1 day'
    FROM nodes LIMIT 1`
  return id
}

test('C50 C26: a node is either restored or purged, never both, even if processes have different retention periods', async () => {
  for (let round = 0; round < 30; round++) {
    const id = await rowElsewhere(round, { deletedDaysAgo: 40, desired: 'deleted' })
    const [purging, back] = await Promise.all([beginPurges(sql, 'elsewhere', 30), undeleteNode(sql, id, 60)])
    expect([purging.includes(id), back !== undefined].sort()).toEqual([false, true])
    expect(await undeleteNode(sql, id, 60)).toBeUndefined()
    await sql`DELETE FROM nodes WHERE id = ${id}`
  }
})

test('C50: only deleted nodes of this host are purged, after their retention period; the database refuses any other', async () => {
  const living = await rowElsewhere(100, { deletedDaysAgo: null, desired: 'stopped' })
  const recent = await rowElsewhere(101, { deletedDaysAgo: 29, desired: 'deleted' })
  const old = await rowElsewhere(102, { deletedDaysAgo: 31, desired: 'deleted' })
  expect(await beginPurges(sql, 'a third host', 30)).toEqual([])
  expect(await beginPurges(sql, 'elsewhere', 30)).toEqual([old])
  expect(await beginPurges(sql, 'elsewhere', 30)).toEqual([])
  await expect(sql`UPDATE nodes SET purging_at = now() WHERE id = ${living}`).rejects.toMatchObject({ code: '23514' })
  await expect(sql`UPDATE nodes SET purged_at = now() WHERE id = ${recent}`).rejects.toMatchObject({ code: '23514' })
})
