import { logActivity } from '../activity.ts'
import { missingCredit } from '../credit/credit.ts'
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
  isSilent: boolean
  leaseEpoch: number
  deletedAt: number | null
  /** From then on it cannot be brought back, and its data is being removed. */
  purgingAt: number | null
  /** The database's clock when the row was read. */
  nowMs: number
}

const seconds = (sql: Sql, column: string) => sql`floor(extract(epoch FROM ${sql(column)}))::bigint`
const milliseconds = (sql: Sql, column: string) => sql`floor(extract(epoch FROM ${sql(column)}) * 1000)::bigint`

/**
 * `ready` is a promise that a node keeps while it is brought back, so it does not say whether the node answers. The last look at it does.
 */
export const isSilent = (sql: Sql) => sql`(status = 'ready' AND operation IS NULL AND phase NOT IN ('running', 'unknown'))`

export const columns = (sql: Sql) => sql`
  id, account_id AS "accountId", host, lightning_id AS "lightningId", name, auto_liquidity AS "autoLiquidity",
  access_mode AS "accessMode", ${seconds(sql, 'created_at')} AS "createdAt", ${seconds(sql, 'updated_at')} AS "updatedAt", status, failure_message AS "failureMessage",
  update_status AS "updateStatus", ${seconds(sql, 'update_completed_at')} AS "updateCompletedAt", last_update_error AS "lastUpdateError",
  desired_state AS "desiredState", desired_version AS "desiredVersion", desired_run AS "desiredRun",
  operation, operation_id AS "operationId", ${milliseconds(sql, 'operation_deadline')} AS "operationDeadlineMs",
  operation_result AS "operationResult", phase, version, history, has_funds AS "hasFunds", ${isSilent(sql)} AS "isSilent", lease_epoch AS "leaseEpoch",
  ${seconds(sql, 'deleted_at')} AS "deletedAt", ${seconds(sql, 'purging_at')} AS "purgingAt", floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS "nowMs"`

/** What callers see of a node. */
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
  | 'isSilent'
>

/** Only what is shown: with everything else a list of a thousand takes twice as long. */
export async function listNodes(sql: Sql, accountId: string): Promise<ShownNode[]> {
  return sql<ShownNode[]>`
    SELECT id, name, status, failure_message AS "failureMessage", update_status AS "updateStatus",
           ${seconds(sql, 'update_completed_at')} AS "updateCompletedAt", ${seconds(sql, 'created_at')} AS "createdAt",
           ${seconds(sql, 'updated_at')} AS "updatedAt", access_mode AS "accessMode", auto_liquidity AS "autoLiquidity", operation,
           has_funds AS "hasFunds", ${isSilent(sql)} AS "isSilent"
    FROM nodes WHERE account_id = ${accountId} AND deleted_at IS NULL ORDER BY id`
}

export async function findNode(sql: Sql, accountId: string, id: string): Promise<NodeRow | undefined> {
  const [row] = await sql<
    NodeRow[]
  >`SELECT ${columns(sql)} FROM nodes WHERE id = ${id} AND account_id = ${accountId} AND deleted_at IS NULL`
  return row
}

/** Of any account, deleted ones included: for the operator and for us. */
export async function findAnyNode(sql: Sql, id: string): Promise<NodeRow | undefined> {
  const [row] = await sql<NodeRow[]>`SELECT ${columns(sql)} FROM nodes WHERE id = ${id}`
  return row
}

export async function listAllNodes(sql: Sql): Promise<NodeRow[]> {
  return sql<NodeRow[]>`SELECT ${columns(sql)} FROM nodes ORDER BY id`
}

export type NewNode = {
  id: string
  accountId: string
  host: string
  lightningId: string
  name: string | undefined
  autoLiquidity: string
  accessMode: string
  version: string
  secrets: { keyId: string; dashboardAccess: Buffer; webhookSecret: Buffer; material: Buffer }
  actor: string
}
export type NodeLimits = { perAccount: number; perHost: number; priceMsatPerDay: number }

/**
 * One transaction: the account's row lock makes concurrent creations count, number and pay one after the other. When it has committed
 * the node, what it is meant to be, and its credentials are durable; nothing has been started yet.
 */
export async function insertNode(
  sql: Sql,
  node: NewNode,
  limits: NodeLimits,
): Promise<NodeRow | 'account limit' | 'host limit' | 'newcomer limit' | { missingMsat: number }> {
  const [account] = await sql<{ number: number }[]>`
    SELECT nodes_made + 1 AS number FROM accounts WHERE id = ${node.accountId} FOR NO KEY UPDATE`
  if (!account) throw new Error('the account of a key is gone')
  // Other accounts fill the same host, and the lock above does not hold them off.
  await sql`SELECT pg_advisory_xact_lock(hashtextextended(${`nodes of ${node.host}`}, 0))`
  const [counts] = await sql<{ isNewcomer: boolean; mine: number; here: number }[]>`
    SELECT (SELECT is_self_registered AND NOT EXISTS (
              SELECT 1 FROM credit_entries e WHERE e.account_id = ${node.accountId} AND e.kind IN ('top_up', 'operator') AND e.amount_msat > 0)
            FROM accounts WHERE id = ${node.accountId}) AS "isNewcomer",
           (SELECT count(*) FROM nodes WHERE account_id = ${node.accountId} AND deleted_at IS NULL)::int AS mine,
           (SELECT count(*) FROM nodes n JOIN accounts a ON a.id = n.account_id
              WHERE n.host = ${node.host} AND n.deleted_at IS NULL AND NOT a.is_treasury)::int AS here`
  if (!counts || counts.mine >= limits.perAccount) return 'account limit'
  if (counts.here >= limits.perHost) return 'host limit'
  if (counts.isNewcomer && counts.here >= newcomersShare(limits.perHost)) return 'newcomer limit'
  const missingMsat = await missingCredit(sql, node.accountId, limits.priceMsatPerDay, 1)
  if (missingMsat > 0) return { missingMsat }
  await sql`UPDATE accounts SET nodes_made = ${account.number} WHERE id = ${node.accountId}`
  const history: History = {
    wantedSinceMs: Date.now(),
    exitsMs: [],
    startedAtMs: null,
    run: 0,
    version: null,
    reached: false,
    previousVersion: null,
  }
  const [row] = await sql<NodeRow[]>`
    INSERT INTO nodes (id, account_id, host, lightning_id, name, auto_liquidity, access_mode, desired_version, history)
    VALUES (${node.id}, ${node.accountId}, ${node.host}, ${node.lightningId}, ${node.name ?? `Node ${account.number}`},
            ${node.autoLiquidity}, ${node.accessMode}, ${node.version},
            ${sql.json(history)}::jsonb || jsonb_build_object('wantedSinceMs', floor(extract(epoch FROM clock_timestamp()) * 1000)))
    RETURNING ${columns(sql)}`
  await sql`
    INSERT INTO node_secrets (node_id, key_id, dashboard_access, webhook_secret, material)
    VALUES (${node.id}, ${node.secrets.keyId}, ${node.secrets.dashboardAccess}, ${node.secrets.webhookSecret}, ${node.secrets.material})`
  await logActivity(sql, node.accountId, node.actor, 'node.created', node.id)
  if (!row) throw new Error('the new node is gone')
  return row
}

/** A quarter of a host is out of reach for strangers: however many sign up, whoever is known to the operator or pays finds a place. */
const newcomersShare = (perHost: number): number => Math.max(1, Math.floor(perHost * 0.75))

/** Renaming never waits for an operation. The time moves only when the name does. */
export async function renameNode(
  sql: Sql,
  accountId: string,
  id: string,
  name: string,
  actor: string,
): Promise<NodeRow | undefined> {
  const [row] = await sql<NodeRow[]>`
    UPDATE nodes SET name = ${name}, updated_at = CASE WHEN name = ${name} THEN updated_at ELSE now() END
    WHERE id = ${id} AND account_id = ${accountId} AND deleted_at IS NULL RETURNING ${columns(sql)}`
  if (row) await logActivity(sql, accountId, actor, 'node.renamed', id)
  return row
}
