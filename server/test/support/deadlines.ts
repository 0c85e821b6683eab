import type { Database, Fragment } from '../../src/store/db.ts'
import { eventually } from './server.ts'

/**
 * Deadlines that pass when a test wants them to. A short deadline could pass while a slow machine is still starting the node, and the
 * message to the owner depends on how far the start got.
 */

/**
 * As soon as the condition `seen` holds, sets `wantedSinceMs` (since when the node should run) this many seconds back. The new
 * epoch keeps a running step from overwriting it.
 */
export async function wantedFor(sql: Database, nodeId: string, seconds: number, seen: Fragment): Promise<void> {
  await eventually(async () => {
    const rows = await sql`
      UPDATE nodes SET next_at = now(), lease_epoch = lease_epoch + 1,
        history = history || jsonb_build_object('wantedSinceMs', unix_ms(clock_timestamp()) - ${seconds}::bigint * 1000)
      WHERE id = ${nodeId} AND ${seen} RETURNING 1`
    return rows.length === 1
  }, `${nodeId} to be seen as the test needs it`)
}

/** Lets the node's running operation reach its deadline as soon as the condition `seen` holds. */
export async function endOperation(sql: Database, nodeId: string, seen: Fragment): Promise<void> {
  await eventually(async () => {
    const rows = await sql`
      UPDATE nodes SET next_at = now(), operation_deadline = now() WHERE id = ${nodeId} AND operation IS NOT NULL AND ${seen} RETURNING 1`
    return rows.length === 1
  }, `the operation of ${nodeId} to get as far as the test needs it`)
}

/** Waits until the service has looked at the node this many times, not counting a look that is under way. */
export async function looks(sql: Database, nodeId: string, times: number): Promise<void> {
  const find = async (): Promise<{ epoch: number; isResting: boolean }> => {
    const [row] = await sql<{ epoch: number; isResting: boolean }[]>`
      SELECT lease_epoch AS epoch, lease_until IS NULL AS "isResting" FROM nodes WHERE id = ${nodeId}`
    if (!row) throw new Error(`no node ${nodeId}`)
    return row
  }
  const before = await find()
  await eventually(async () => {
    const { epoch, isResting } = await find()
    return isResting && epoch >= before.epoch + times
  }, `${times} looks at ${nodeId}`)
}
