import type { Sql } from '../db.ts'
import type { DesiredState, History, OperationKind, Status } from './node-state.ts'

export type NodeRow = {
  id: string
  accountId: string
  host: string
  lightningId: string
  name: string
  autoLiquidity: string
  accessMode: 'limited' | 'full'
  createdAt: number
  updatedAt: number
  status: Status
  failureMessage: string | null
  updateStatus: 'updating' | 'updated' | 'failed' | null
  updateCompletedAt: number | null
  lastUpdateError: string | null
  desiredState: DesiredState
  desiredVersion: string
  desiredRun: number
  operation: OperationKind | null
  operationId: string | null
  operationDeadlineMs: number | null
  operationResult: 'done' | 'failed' | null
  phase: string
  version: string | null
  history: History
  hasFunds: boolean
  /** As of `balanceAt`; null if it was never known. */
  balanceSat: number | null
  balanceAt: number | null
  /** The node has received money since `balanceAt`. */
  isBalanceOutdated: boolean
  /** When its process was started; null if it has none. */
  startedAt: number | null
  isSilent: boolean
  leaseEpoch: number
  deletedAt: number | null
  /** Set once the node can no longer be restored and its data is being removed. */
  purgingAt: number | null
  /** Set once the node was handed over to another installation. */
  releasedAt: number | null
  /** The database's clock when the row was read. */
  nowMs: number
}

/** A node stays `ready` while it is being restarted, so the status does not say whether it responds. The last observation does. */
export const isSilent = (sql: Sql) => sql`(status = 'ready' AND operation IS NULL AND phase NOT IN ('running', 'unknown'))`

const seen = (sql: Sql) => sql`
  balance_sat AS "balanceSat", unix_seconds(balance_at) AS "balanceAt",
  coalesce(funded_at > balance_at, false) AS "isBalanceOutdated", ((history ->> 'startedAtMs')::bigint / 1000)::int8 AS "startedAt"`

export const columns = (sql: Sql) => sql`
  id, account_id AS "accountId", host, lightning_id AS "lightningId", name, auto_liquidity AS "autoLiquidity",
  access_mode AS "accessMode", unix_seconds(created_at) AS "createdAt", unix_seconds(updated_at) AS "updatedAt", status, failure_message AS "failureMessage",
  update_status AS "updateStatus", unix_seconds(update_completed_at) AS "updateCompletedAt", last_update_error AS "lastUpdateError",
  desired_state AS "desiredState", desired_version AS "desiredVersion", desired_run AS "desiredRun",
  operation, operation_id AS "operationId", unix_ms(operation_deadline) AS "operationDeadlineMs",
  operation_result AS "operationResult", phase, version, history, has_funds AS "hasFunds", ${seen(sql)}, ${isSilent(sql)} AS "isSilent", lease_epoch AS "leaseEpoch",
  unix_seconds(deleted_at) AS "deletedAt", unix_seconds(purging_at) AS "purgingAt",
  unix_seconds(released_at) AS "releasedAt", unix_ms(clock_timestamp()) AS "nowMs"`

/** The fields of a node in `/v1`. */
export type PublicNode = Pick<
  NodeRow,
  'id' | 'name' | 'status' | 'failureMessage' | 'updateStatus' | 'updateCompletedAt' | 'createdAt' | 'updatedAt'
>

/** The fields of a node that callers see. */
export type ShownNode = Pick<
  NodeRow,
  | 'id'
  | 'name'
  | 'status'
  | 'failureMessage'
  | 'updateStatus'
  | 'updateCompletedAt'
  | 'createdAt'
  | 'updatedAt'
  | 'accessMode'
  | 'autoLiquidity'
  | 'operation'
  | 'hasFunds'
  | 'balanceSat'
  | 'balanceAt'
  | 'isBalanceOutdated'
  | 'startedAt'
  | 'isSilent'
  | 'version'
  | 'desiredVersion'
>

const publicColumns = (sql: Sql) => sql`
  id, name, status, failure_message AS "failureMessage", update_status AS "updateStatus",
  unix_seconds(update_completed_at) AS "updateCompletedAt", unix_seconds(created_at) AS "createdAt",
  unix_seconds(updated_at) AS "updatedAt"`

/** Only these fields: with all that the dashboard shows, a list of a thousand nodes takes twice as long. */
export async function listPublicNodes(sql: Sql, accountId: string): Promise<PublicNode[]> {
  return sql<PublicNode[]>`
    SELECT ${publicColumns(sql)} FROM nodes WHERE account_id = ${accountId} AND deleted_at IS NULL ORDER BY id`
}

export async function listNodes(sql: Sql, accountId: string): Promise<ShownNode[]> {
  return sql<ShownNode[]>`
    SELECT ${publicColumns(sql)}, access_mode AS "accessMode", auto_liquidity AS "autoLiquidity", operation,
           has_funds AS "hasFunds", ${seen(sql)}, ${isSilent(sql)} AS "isSilent", version, desired_version AS "desiredVersion"
    FROM nodes WHERE account_id = ${accountId} AND deleted_at IS NULL ORDER BY id`
}

/** How many nodes have which versions, without those that are being updated. */
export async function countVersions(
  sql: Sql,
  accountId: string,
): Promise<{ version: string | null; desiredVersion: string; count: number }[]> {
  return sql`
    SELECT version, desired_version AS "desiredVersion", count(*)::int AS count FROM nodes
    WHERE account_id = ${accountId} AND deleted_at IS NULL AND update_status IS DISTINCT FROM 'updating' GROUP BY 1, 2`
}

export async function findNode(sql: Sql, accountId: string, id: string): Promise<NodeRow | undefined> {
  const [row] = await sql<
    NodeRow[]
  >`SELECT ${columns(sql)} FROM nodes WHERE id = ${id} AND account_id = ${accountId} AND deleted_at IS NULL`
  return row
}

/** Whether all these ids are nodes of this account. */
export async function hasNodes(sql: Sql, accountId: string, ids: string[]): Promise<boolean> {
  const rows = await sql`SELECT id FROM nodes WHERE id = ANY (${ids}) AND account_id = ${accountId} AND deleted_at IS NULL`
  return rows.length === new Set(ids).size
}

/** A node of any account, including deleted ones: for the operator and for internal use. */
export async function findAnyNode(sql: Sql, id: string): Promise<NodeRow | undefined> {
  const [row] = await sql<NodeRow[]>`SELECT ${columns(sql)} FROM nodes WHERE id = ${id}`
  return row
}

/** The hosts that hold data of nodes. */
export async function hostsOfNodes(sql: Sql): Promise<string[]> {
  const rows = await sql<{ host: string }[]>`SELECT DISTINCT host FROM nodes WHERE purged_at IS NULL`
  return rows.map(({ host }) => host)
}

/** How many existing nodes belong to machines, not to a cluster. A cluster's nodes have the installation's id as their host. */
export async function countNodesOfMachines(sql: Sql): Promise<number> {
  const [row] = await sql<[{ count: number }]>`
    SELECT count(*)::int AS count FROM nodes
    WHERE deleted_at IS NULL AND NOT EXISTS (SELECT 1 FROM settings WHERE name = 'installation' AND convert_from(value, 'UTF8') = host)`
  return row.count
}

/**
 * Gives the deleted nodes of machines to a cluster, which purges them at the end of their retention period. The cluster has no
 * volumes for them, so a node that has run before and is undeleted there fails instead of starting with an empty wallet.
 */
export async function takeOverDeletedNodes(sql: Sql, host: string): Promise<void> {
  await sql`
    UPDATE nodes SET host = ${host}, port = NULL, uid = NULL, lease_owner = NULL, lease_until = NULL, next_at = now()
    WHERE host <> ${host} AND deleted_at IS NOT NULL AND purged_at IS NULL`
}

/** Returns the given ids of nodes that were never created here, or were purged so long ago that nothing of them should be left. */
export async function unknownNodes(sql: Sql, ids: string[]): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    SELECT id FROM unnest(${ids}::text[]) AS seen (id)
    WHERE NOT EXISTS (
      SELECT 1 FROM nodes WHERE nodes.id = seen.id AND (purged_at IS NULL OR purged_at > now() - interval '1 hour'))
    ORDER BY id`
  return rows.map(({ id }) => id)
}

/** Renaming never waits for an operation. A node that already has the name keeps its `updatedAt`, and nothing is logged. */
export async function renameNode(
  sql: Sql,
  accountId: string,
  id: string,
  name: string,
  actor: string,
): Promise<NodeRow | undefined> {
  const [row] = await sql<NodeRow[]>`
    WITH before AS (
      SELECT id AS node_id, name AS old_name FROM nodes
      WHERE id = ${id} AND account_id = ${accountId} AND deleted_at IS NULL FOR UPDATE
    ), logged AS (
      INSERT INTO activity (account_id, actor, action, target)
      SELECT ${accountId}, ${actor}, 'node.renamed', node_id FROM before WHERE old_name <> ${name}
    )
    UPDATE nodes SET name = ${name}, updated_at = CASE WHEN old_name = ${name} THEN updated_at ELSE now() END
    FROM before WHERE id = node_id RETURNING ${columns(sql)}`
  return row
}
