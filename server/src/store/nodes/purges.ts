import type { Sql } from '../db.ts'
import type { NodeRow } from './nodes.ts'

/**
 * Marks nodes of this host whose retention period has ended. For a released node, the period begins when its wallet was written to a
 * directory. This statement and the one in `undeleteNode` exclude each other: afterwards the node cannot be restored, so the removal of its
 * data can be interrupted and repeated.
 */
export async function beginPurges(sql: Sql, host: string, retentionDays: number): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    UPDATE nodes SET purging_at = now(), next_at = now()
    WHERE host = ${host} AND CASE WHEN released_at IS NULL THEN deleted_at ELSE exported_at END <= now() - ${retentionDays} * interval '1 day'
      AND deleted_at IS NOT NULL AND desired_state = 'deleted' AND operation IS NULL AND purging_at IS NULL
    RETURNING id`
  return rows.map(({ id }) => id)
}

/**
 * Called when nothing of the node is left on its host. Removes the secrets that could rebuild it, and its user id, which another node may
 * have by now.
 */
export async function finishPurge(sql: Sql, node: NodeRow): Promise<void> {
  await sql`
    WITH purged AS (
      UPDATE nodes SET purged_at = now(), uid = NULL, port = NULL, lease_owner = NULL, lease_until = NULL
      WHERE id = ${node.id} AND lease_epoch = ${node.leaseEpoch} AND purging_at IS NOT NULL RETURNING id)
    DELETE FROM node_secrets WHERE node_id IN (SELECT id FROM purged)`
}
