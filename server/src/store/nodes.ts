import type { History, OperationKind, Status } from '../nodes/node.ts'
import { missingCredit } from './credit.ts'
import type { Sql } from './db.ts'

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
  desiredState: 'running' | 'stopped' | 'deleted'
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

const columns = (sql: Sql) => sql`
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

export async function logActivity(sql: Sql, accountId: string, actor: string, action: string, target: string): Promise<void> {
  await sql`INSERT INTO activity (account_id, actor, action, target) VALUES (${accountId}, ${actor}, ${action}, ${target})`
}

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

export type Ask = {
  kind: OperationKind
  operationId: string
  timeoutMs: number
  from: readonly Status[]
  state: 'running' | 'stopped' | 'deleted' | 'as it is'
  /** Restart: the process that runs now has to go. */
  newRun: boolean
  version?: string
  /** Delete: not if there is money in it. Decided here, since it may come in while the node is being looked at. */
  unlessFunded?: boolean
}

/**
 * Of any number of callers one gets the operation, and only from a state that allows it: both are in the WHERE clause. When this has
 * committed the intent is durable; whoever dies now, it is finished all the same.
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
      history = history || jsonb_build_object('wantedSinceMs', floor(extract(epoch FROM clock_timestamp()) * 1000), 'exitsMs', '[]'::jsonb),
      next_at = now()
    WHERE id = ${id} AND account_id = ${accountId} AND deleted_at IS NULL AND operation IS NULL AND status = ANY (${ask.from})
      ${ask.unlessFunded ? sql`AND NOT has_funds` : sql``}
    RETURNING ${columns(sql)}`
  return row
}

/**
 * Nodes of this host that are due, each for 30 s to one owner; the epoch fences off whoever had it before. A lease of our own on a node
 * that we are not busy with is left over from a step that failed, most often because the store was away: it need not run out.
 */
export async function claimDueNodes(
  sql: Sql,
  host: string,
  { owner, busyWith }: { owner: string; busyWith: string[] },
  limit: number,
): Promise<NodeRow[]> {
  return sql<NodeRow[]>`
    UPDATE nodes SET lease_owner = ${owner}, lease_epoch = lease_epoch + 1, lease_until = now() + interval '30 seconds'
    WHERE id IN (
      SELECT id FROM nodes WHERE host = ${host} AND next_at <= now() AND purged_at IS NULL
        AND (lease_until IS NULL OR lease_until < now() OR (lease_owner = ${owner} AND id <> ALL (${busyWith})))
      ORDER BY next_at LIMIT ${limit} FOR UPDATE SKIP LOCKED)
    RETURNING ${columns(sql)}`
}

export async function holdsLease(sql: Sql, id: string, epoch: number): Promise<boolean> {
  const [row] = await sql`SELECT 1 FROM nodes WHERE id = ${id} AND lease_epoch = ${epoch} AND lease_until > now()`
  return row !== undefined
}

export type Outcome = {
  phase: string
  version: string | null
  history: History
  recheckMs: number
  hasFunds: boolean | undefined
  shows: { status: Status; failureMessage: string | null } | undefined
  ends: 'done' | 'failed' | undefined
  updateEnds: { status: 'updated' | 'failed'; error: string | null; version?: string } | undefined
}

/**
 * False: somebody else has the node now, and nothing was written. A wish that came in meanwhile (next_at moved) is not overwritten by
 * the time of the next look.
 */
export async function finishStep(sql: Sql, node: NodeRow, outcome: Outcome): Promise<boolean> {
  const { shows, ends, updateEnds } = outcome
  const changes = sql`${shows ? sql`(status, failure_message) IS DISTINCT FROM (${shows.status}, ${shows.failureMessage}::text)` : sql`false`}`
  const [row] = await sql`
    UPDATE nodes SET
      phase = ${outcome.phase}, version = ${outcome.version}, history = ${sql.json(outcome.history)},
      updated_at = CASE WHEN ${changes} OR ${updateEnds !== undefined} THEN now() ELSE updated_at END,
      status = ${shows?.status ?? sql`status`}, failure_message = ${shows ? shows.failureMessage : sql`failure_message`},
      has_funds = ${outcome.hasFunds === undefined ? sql`has_funds` : fundsSeen(sql, outcome.hasFunds, node.nowMs)},
      operation_result = ${ends ?? sql`operation_result`}, operation = ${ends ? null : sql`operation`},
      update_status = ${updateEnds?.status ?? sql`update_status`},
      update_completed_at = ${updateEnds ? sql`now()` : sql`update_completed_at`},
      last_update_error = ${updateEnds ? updateEnds.error : sql`last_update_error`},
      desired_version = ${updateEnds?.version ?? sql`desired_version`},
      next_at = now() + ${outcome.recheckMs} * interval '1 millisecond', lease_owner = NULL, lease_until = NULL
    WHERE id = ${node.id} AND lease_epoch = ${node.leaseEpoch} AND operation_id IS NOT DISTINCT FROM ${node.operationId}
      AND (purging_at IS NULL) = ${node.purgingAt === null}
    RETURNING 1`
  if (row) return true
  // Asked for something else meanwhile: give the lease back, look again at once.
  await sql`UPDATE nodes SET lease_owner = NULL, lease_until = NULL, next_at = now() WHERE id = ${node.id} AND lease_epoch = ${node.leaseEpoch}`
  return false
}

/**
 * A new process on this host: every node is looked at once. Since it holds the data directory's lock its former self is dead, and its
 * leases need not run out first; the epoch still fences.
 */
export async function takeOverHost(sql: Sql, host: string): Promise<void> {
  await sql`UPDATE nodes SET lease_until = NULL, lease_owner = NULL, next_at = now() WHERE host = ${host}`
}

/** Whoever has seen money come in since a look began knows better than the look. */
const fundsSeen = (sql: Sql, hasFunds: boolean, sinceMs: number) =>
  sql`(${hasFunds} OR (has_funds AND coalesce(funded_at >= to_timestamp(${sinceMs} / 1000.0), false)))`

/** A trusted observation that began then, by the database's clock; what is not known must not come here. */
export async function recordFunds(sql: Sql, id: string, hasFunds: boolean, sinceMs: number): Promise<void> {
  await sql`UPDATE nodes SET has_funds = ${fundsSeen(sql, hasFunds, sinceMs)} WHERE id = ${id}`
}

/** Money was given to it. */
export async function recordFunding(sql: Sql, id: string): Promise<void> {
  await sql`UPDATE nodes SET has_funds = true, funded_at = now() WHERE id = ${id}`
}

export async function wakeNode(sql: Sql, id: string): Promise<void> {
  await sql`UPDATE nodes SET next_at = now() WHERE id = ${id}`
}

/**
 * The ports and users that versions before the runtime kept its own record wrote here. The columns stay until no older version can
 * still be serving.
 */
export async function placesBefore(sql: Sql, host: string): Promise<{ id: string; port: number | null; uid: number | null }[]> {
  return sql`
    SELECT id, port, uid FROM nodes WHERE host = ${host} AND purged_at IS NULL AND (port IS NOT NULL OR uid IS NOT NULL)`
}

export type AccessRow = {
  accountId: string
  host: string
  status: Status
  desiredState: string
  keyId: string
  dashboardAccess: Buffer
  /** Null for nodes made before there was a gateway. */
  webhookSecret: Buffer | null
  isDeleted: boolean
  nowMs: number
}

/** What talking to a node takes, and nothing that could open its seed. */
export async function findAccess(sql: Sql, nodeId: string): Promise<AccessRow | undefined> {
  const [row] = await sql<AccessRow[]>`
    SELECT n.account_id AS "accountId", n.host, n.status, n.desired_state AS "desiredState", s.key_id AS "keyId",
           s.dashboard_access AS "dashboardAccess", s.webhook_secret AS "webhookSecret",
           n.deleted_at IS NOT NULL AS "isDeleted", floor(extract(epoch FROM now()) * 1000)::bigint AS "nowMs"
    FROM nodes n JOIN node_secrets s ON s.node_id = n.id WHERE n.id = ${nodeId}`
  return row
}

export async function findMaterial(sql: Sql, nodeId: string): Promise<{ keyId: string; material: Buffer } | undefined> {
  const [row] = await sql<{ keyId: string; material: Buffer }[]>`
    SELECT key_id AS "keyId", material FROM node_secrets WHERE node_id = ${nodeId}`
  return row
}

/**
 * Nodes of this host that were deleted longer ago than they are kept. This statement and that of an undeletion exclude each other: from
 * here on the node cannot come back, so its data can be removed however often that is interrupted.
 */
export async function beginPurges(sql: Sql, host: string, retentionDays: number): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    UPDATE nodes SET purging_at = now(), next_at = now()
    WHERE host = ${host} AND deleted_at <= now() - ${retentionDays} * interval '1 day' AND desired_state = 'deleted'
      AND operation IS NULL AND purging_at IS NULL
    RETURNING id`
  return rows.map(({ id }) => id)
}

/** Once nothing of it is left on its host: what could rebuild it, and its user's number, which another node may have now. */
export async function finishPurge(sql: Sql, node: NodeRow): Promise<void> {
  await sql`
    WITH purged AS (
      UPDATE nodes SET purged_at = now(), uid = NULL, port = NULL, lease_owner = NULL, lease_until = NULL
      WHERE id = ${node.id} AND lease_epoch = ${node.leaseEpoch} AND purging_at IS NOT NULL RETURNING id)
    DELETE FROM node_secrets WHERE node_id IN (SELECT id FROM purged)`
}

/** Undefined: not deleted, or too long ago. */
export async function undeleteNode(sql: Sql, id: string, retentionDays: number): Promise<NodeRow | undefined> {
  const [row] = await sql<NodeRow[]>`
    UPDATE nodes SET deleted_at = NULL, desired_state = 'stopped', status = 'stopped', failure_message = NULL, updated_at = now(), next_at = now()
    WHERE id = ${id} AND deleted_at > now() - ${retentionDays} * interval '1 day' AND operation IS NULL AND purging_at IS NULL
    RETURNING ${columns(sql)}`
  return row
}

/** Which master keys are still needed. */
export async function sealingKeyIds(sql: Sql): Promise<{ keyId: string; rows: number }[]> {
  return sql<{ keyId: string; rows: number }[]>`
    SELECT key_id AS "keyId", count(*)::int AS rows
    FROM (SELECT key_id FROM node_secrets UNION ALL SELECT key_id FROM protocol_keys) sealed GROUP BY key_id`
}

export type SealedRow = {
  nodeId: string
  accountId: string
  dashboardAccess: Buffer
  webhookSecret: Buffer | null
  material: Buffer
}

export async function secretsUnder(sql: Sql, keyId: string, limit: number): Promise<SealedRow[]> {
  return sql<SealedRow[]>`
    SELECT s.node_id AS "nodeId", n.account_id AS "accountId", s.dashboard_access AS "dashboardAccess",
           s.webhook_secret AS "webhookSecret", s.material
    FROM node_secrets s JOIN nodes n ON n.id = s.node_id WHERE s.key_id = ${keyId} ORDER BY s.node_id LIMIT ${limit}`
}

/** Only over what was read: another replica may have sealed it anew meanwhile. */
export async function replaceSecrets(
  sql: Sql,
  nodeId: string,
  oldKeyId: string,
  next: { keyId: string; dashboardAccess: Buffer; webhookSecret: Buffer | null; material: Buffer },
): Promise<void> {
  await sql`
    UPDATE node_secrets SET key_id = ${next.keyId}, dashboard_access = ${next.dashboardAccess},
      webhook_secret = ${next.webhookSecret}, material = ${next.material}
    WHERE node_id = ${nodeId} AND key_id = ${oldKeyId}`
}
