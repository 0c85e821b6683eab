import type { Sql } from '../db.ts'
import type { DesiredState, OperationKind, Status } from './node-state.ts'
import { columns, type NodeRow } from './nodes.ts'

export type Ask = {
  kind: OperationKind
  operationId: string
  timeoutMs: number
  from: readonly Status[]
  state: DesiredState | 'as it is'
  /** For a restart: the current process must be replaced. */
  newRun: boolean
  version?: string
  /** For a deletion: refuse if the node holds funds. Decided in the statement, because funds may arrive while the node is being checked. */
  unlessFunded?: boolean
}

/**
 * Exactly one of any number of callers begins the operation, and only from a state that allows it: both conditions are in the WHERE clause.
 * Once this commits, the intent is durable, and the operation completes even if this process dies.
 */
export async function beginOperation(sql: Sql, accountId: string, id: string, ask: Ask): Promise<NodeRow | undefined> {
  const [row] = await sql<NodeRow[]>`
    UPDATE nodes SET
      operation = ${ask.kind}, operation_id = ${ask.operationId}, operation_result = NULL,
      operation_deadline = now() + ${ask.timeoutMs} * interval '1 millisecond',
      desired_state = ${ask.state === 'as it is' ? sql`desired_state` : ask.state},
      desired_run = desired_run + ${ask.newRun ? 1 : 0},
      desired_version = ${ask.version ?? sql`desired_version`},
      update_status = ${ask.kind === 'update' ? 'updating' : sql`update_status`},
      update_completed_at = ${ask.kind === 'update' ? null : sql`update_completed_at`},
      updated_at = ${ask.kind === 'update' ? sql`now()` : sql`updated_at`},
      deleted_at = ${ask.kind === 'delete' ? sql`now()` : sql`deleted_at`},
      history = history || jsonb_build_object('wantedSinceMs', unix_ms(clock_timestamp()), 'exitsMs', '[]'::jsonb),
      next_at = now()
    WHERE id = ${id} AND account_id = ${accountId} AND deleted_at IS NULL AND operation IS NULL AND status = ANY (${ask.from})
      ${ask.unlessFunded ? sql`AND NOT has_funds` : sql``}
    RETURNING ${columns(sql)}`
  return row
}

/** Undefined: not deleted, still being deleted, deleted too long ago, or released to another installation. */
export async function undeleteNode(sql: Sql, id: string, retentionDays: number): Promise<NodeRow | undefined> {
  const [row] = await sql<NodeRow[]>`
    UPDATE nodes SET deleted_at = NULL, desired_state = 'stopped', status = 'stopped', failure_message = NULL, updated_at = now(), next_at = now()
    WHERE id = ${id} AND deleted_at > now() - ${retentionDays} * interval '1 day' AND operation IS NULL AND purging_at IS NULL
      AND released_at IS NULL
    RETURNING ${columns(sql)}`
  return row
}
