import { beforeAll, expect, test } from 'vitest'
import { newId } from '../../src/platform/ids.ts'
import { newOwner } from '../support/nodes.ts'
import { eventually, type Server, startServer } from '../support/server.ts'

let server: Server
beforeAll(async () => {
  server = await startServer({ env: { TRUST_PROXY: '1', MAX_NODES: '7' } })
})

const get = async (path: string) => {
  const answer = await server.operator('GET', path)
  if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${answer.text}`)
  return answer.json()
}

test('each host is listed with how many nodes it has, and how many it has room for', async () => {
  const owner = await newOwner(server)
  await owner.createReady()
  const { hosts } = await get('/hosts')
  expect(hosts).toEqual([
    // The treasury's node takes no slot.
    {
      id: expect.any(String),
      isHere: true,
      nodes: 2,
      nodesReady: expect.any(Number),
      nodesFailed: 0,
      nodesDeleted: 0,
      slots: 7,
      slotsUsed: 1,
    },
  ])
  const sql = server.sql()
  await sql`UPDATE nodes SET host = 'elsewhere', next_at = now() + interval '1 day', status = 'failed' WHERE account_id = ${owner.accountId}`
  const away = (await get('/hosts')).hosts.find(({ id }: { id: string }) => id === 'elsewhere')
  expect(away).toMatchObject({ isHere: false, nodes: 1, nodesFailed: 1, slots: null, slotsUsed: 1 })
})

test('the catalogue says which version new nodes get, and counts nodes on versions that are no longer in it', async () => {
  const { versions, nodesNeverRun, whyNoUpdates } = await get('/versions')
  const latest = versions.at(-1)
  expect(latest).toMatchObject({ isInCatalog: true, isLatest: true })
  expect([nodesNeverRun, whyNoUpdates]).toEqual([expect.any(Number), null])
  const owner = await newOwner(server)
  const { node } = await owner.createReady()
  await server.sql()`UPDATE nodes SET version = '0.0.1', next_at = now() + interval '1 day' WHERE id = ${node.id}`
  const after = (await get('/versions')).versions
  expect(after[0]).toEqual({ version: '0.0.1', isInCatalog: false, isLatest: false, nodes: 1 })
  expect(after.at(-1).version).toBe(latest.version)
})

test('totals are per UTC day, with today last, and include days on which nothing happened', async () => {
  const sql = server.sql()
  const midnight = Math.floor(Date.now() / 86_400_000) * 86_400
  const account = await server.newAccount()
  const add = (id: string, at: number, sat: number) => sql`
    INSERT INTO gateway_payments (id, account_id, node_id, protocol, amount_sat, description, challenge, payment_hash, protocol_key_id,
      token_id, created_at, expires_at, settled_at)
    VALUES (${id}, ${account.id}, 'node_x', 'l402', ${sat}, 'x', 'x', ${Buffer.from(id)}, 'x', ${Buffer.from('x')},
      to_timestamp(${at}), to_timestamp(${at}), to_timestamp(${at}))`
  await add('pay_1', midnight - 1, 30)
  await add('pay_2', midnight, 12)
  await add('pay_3', midnight - 3 * 86_400, 1)
  const { days } = await get('/stats/days?days=3')
  expect(days.map(({ at }: { at: number }) => at)).toEqual([midnight - 2 * 86_400, midnight - 86_400, midnight])
  expect(days.map(({ receivedSat }: { receivedSat: number }) => receivedSat)).toEqual([0, 30, 12])
  expect(days.map(({ paymentsReceived }: { paymentsReceived: number }) => paymentsReceived)).toEqual([0, 1, 1])
  expect(days[2].accounts).toBeGreaterThan(0)
  // Created and received long ago, and validated for the first time today.
  const old = newId('pay', Date.now() - 40 * 86_400_000)
  await add(old, midnight - 40 * 86_400, 5)
  await sql`INSERT INTO paid_payments (account_id, id, actor) VALUES (${account.id}, ${old}, 'test')`
  expect((await get('/stats/days?days=1')).days[0].paymentsPaid).toBe(days[2].paymentsPaid + 1)
  expect((await get('/stats/days')).days).toHaveLength(30)
  expect((await server.operator('GET', '/stats/days?days=91')).status).toBe(400)
})

test('each background job is listed with how much is overdue, for how long, and from when on that is too long', async () => {
  const sql = server.sql()
  const job = async (name: string) => (await get('/background-work')).jobs.find((one: { name: string }) => one.name === name)
  const names = (await get('/background-work')).jobs.map(({ name }: { name: string }) => name)
  expect(names).toEqual(['reconciler', 'settlements', 'events', 'webhooks', 'retention', 'metering'])
  const owner = await newOwner(server)
  const { node } = await owner.createReady()
  // No process here is responsible for this host, so the node stays due.
  await sql`UPDATE nodes SET host = 'nowhere', next_at = now() - interval '10 minutes', lease_until = NULL WHERE id = ${node.id}`
  const late = await job('reconciler')
  expect(late.waiting).toBeGreaterThan(0)
  expect(late.lagSeconds).toBeGreaterThan(599)
  expect(late.lagSeconds).toBeGreaterThan(late.lateAfterSeconds)
  await sql`UPDATE nodes SET deleted_at = now() - interval '31 days', desired_state = 'deleted', next_at = now() + interval '1 day' WHERE id = ${node.id}`
  expect(await job('retention')).toMatchObject({ waiting: 1 })
  expect((await job('retention')).lagSeconds).toBeGreaterThan(86_000)
  await sql`UPDATE nodes SET purging_at = now(), purged_at = now() WHERE id = ${node.id}`
  expect(await job('retention')).toMatchObject({ waiting: 0, lagSeconds: 0 })
  await eventually(async () => (await job('reconciler')).lagSeconds < 60, 'the reconciler to be on time')
  const { database, orphanedNodes } = await get('/background-work')
  expect([database.max, orphanedNodes]).toEqual([10, null])
})
