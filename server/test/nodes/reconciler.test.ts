import { randomUUID } from 'node:crypto'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, beforeAll, expect, test, vi } from 'vitest'
import { silent } from '../../../testing/kubernetes/silent.ts'
import { Reconciler } from '../../src/nodes/reconciler.ts'
import type { NodeSpec, Observation, Runtime } from '../../src/nodes/runtime.ts'
import { newId } from '../../src/platform/ids.ts'
import type { Database } from '../../src/store/db.ts'
import { eventually, startServer } from '../support/server.ts'

/** More nodes than the reconciler checks at once. */
const MANY = 100
const LIGHTNING_ID = '02'.padEnd(66, 'a')
const RECHECK_MS = 600_000

let sql: Database
let accountId: string
let reconciler: Reconciler | undefined

beforeAll(async () => {
  const server = await startServer({ env: { NODE_PRICE_SAT_PER_DAY: '0' } })
  accountId = (await server.newAccount()).id
  // From here on, only the reconciler of a test looks at nodes.
  await server.stop()
  sql = server.sql()
})
afterEach(async () => {
  vi.useRealTimers()
  await reconciler?.stop()
})

/** Running nodes of a host for which no service is responsible. */
async function runningNodes(host: string, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, () => newId('node'))
  const history = { wantedSinceMs: 0, exitsMs: [], startedAtMs: 0, run: 1, version: '1', reached: true, previousVersion: null }
  await sql`
    INSERT INTO nodes (id, account_id, host, lightning_id, name, auto_liquidity, access_mode, status, desired_state, desired_version, history)
    SELECT id, ${accountId}, ${host}, ${LIGHTNING_ID}, 'test', 'off', 'limited', 'ready', 'running', '1', ${sql.json(history)}
    FROM unnest(${ids}::text[]) AS new (id)`
  return ids
}

/** A cluster whose nodes answer as the test wants. Nothing is started or stopped here. */
function reconcile(host: string, observe: (node: NodeSpec) => Promise<Observation>): Reconciler {
  const runtime = { observe, recheckMs: RECHECK_MS, silentAtOnce: 500 } as Runtime
  const unexpected = async (): Promise<never> => {
    throw new Error('nothing should be started or stopped')
  }
  const deadlines = { provisionMs: 300_000 }
  return new Reconciler({
    sql,
    runtime,
    host,
    claims: 'all',
    deadlines,
    materialOf: unexpected,
    beforeStop: unexpected,
    log: silent,
  })
}

const running: Observation = {
  observed: { phase: 'running', nodeId: LIGHTNING_ID, version: '1' },
  process: { run: 1, version: '1' },
}

test('nodes that do not answer never delay those that do', async () => {
  const host = randomUUID()
  const away = new Set(await runningNodes(host, MANY))
  const [healthy = ''] = await runningNodes(host, 1)
  await sql`UPDATE nodes SET next_at = now() - interval '1 hour' WHERE id = ANY (${[...away]})`
  const seen = new Set<string>()
  let giveUp = (): void => undefined
  const silence = new Promise<Observation>((resolve) => {
    giveUp = () => resolve({ observed: { phase: 'unreachable' } })
  })
  reconciler = reconcile(host, async ({ id }) => {
    seen.add(id)
    return away.has(id) ? silence : running
  })
  reconciler.wake()
  try {
    await eventually(
      async () => (await sql`SELECT 1 FROM nodes WHERE id = ${healthy} AND phase = 'running'`).length,
      'the healthy one',
    )
    expect(
      [...away].filter((id) => !seen.has(id)),
      'all others were asked before',
    ).toEqual([])
  } finally {
    giveUp()
  }
})

test('nodes whose steps fail never delay the others, and are not tried again and again', async () => {
  const host = randomUUID()
  const broken = new Set(await runningNodes(host, MANY))
  const [healthy = ''] = await runningNodes(host, 1)
  await sql`UPDATE nodes SET next_at = now() - interval '1 hour' WHERE id = ANY (${[...broken]})`
  let failures = 0
  reconciler = reconcile(host, async ({ id }) => {
    if (!broken.has(id)) return running
    failures++
    throw new Error('the cluster is ill')
  })
  // No timer ends, so there is no next sweep.
  vi.useFakeTimers({ toFake: ['setTimeout'] })
  reconciler.wake()
  const isSeen = async () => (await sql`SELECT 1 FROM nodes WHERE id = ${healthy} AND phase = 'running'`).length > 0
  while (!(await isSeen())) expect(failures, 'the failing nodes are tried all the time').toBeLessThan(20 * MANY)
})

test('the next checks of many nodes are spread out, within the time that their runtime allows', async () => {
  const host = randomUUID()
  await runningNodes(host, MANY)
  reconciler = reconcile(host, async () => running)
  reconciler.wake()
  const dueIn = async (): Promise<number[]> => {
    const rows = await sql<{ ms: number }[]>`
      SELECT extract(epoch FROM next_at - now())::float8 * 1000 AS ms FROM nodes WHERE host = ${host} AND phase = 'running'`
    return rows.map(({ ms }) => ms)
  }
  await eventually(async () => (await dueIn()).length === MANY, 'all checks')
  const times = await dueIn()
  expect(Math.max(...times)).toBeLessThanOrEqual(RECHECK_MS)
  expect(Math.max(...times) - Math.min(...times)).toBeGreaterThan(RECHECK_MS / 4)
})

test('a pass over many nodes goes on as soon as there is a free place, not with the next sweep', async () => {
  const host = randomUUID()
  await runningNodes(host, MANY)
  const seen = new Set<string>()
  reconciler = reconcile(host, async ({ id }) => {
    seen.add(id)
    return running
  })
  // No timer ends, so there is no next sweep.
  vi.useFakeTimers({ toFake: ['setTimeout'] })
  reconciler.wake()
  while (seen.size < MANY) await turn()
})
