import type { Sql } from '../db.ts'
import { balanceSeen, fundsSeen } from './funds.ts'
import type { History, Status } from './node-state.ts'
import { columns, type NodeRow } from './nodes.ts'

const LEASE_SECONDS = 30

/** If only a process with special rights may remove data, reconcilers leave the nodes that are being purged to that process. */
export type Claimable = 'all' | 'not purging' | 'purging'

/**
 * Leases due nodes of this host for 30 s; the epoch fences off earlier owners. A lease of our own on a node we are not working on is left
 * over from a failed step, usually because the store was down, so it can be taken at once.
 */
export async function claimDueNodes(
  sql: Sql,
  host: string,
  { owner, busyWith, which = 'all' }: { owner: string; busyWith: string[]; which?: Claimable },
  limit: number,
): Promise<NodeRow[]> {
  return sql<NodeRow[]>`
    UPDATE nodes SET lease_owner = ${owner}, lease_epoch = lease_epoch + 1,
      lease_until = now() + ${LEASE_SECONDS} * interval '1 second'
    WHERE id IN (
      SELECT id FROM nodes WHERE host = ${host} AND next_at <= now() AND purged_at IS NULL
        AND (${which} = 'all' OR (purging_at IS NOT NULL) = (${which} = 'purging'))
        AND (lease_until IS NULL OR lease_until < now() OR lease_owner = ${owner}) AND id <> ALL (${busyWith})
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
  desiredVersion: string
  history: History
  recheckMs: number
  hasFunds: boolean | undefined
  balanceSat: number | undefined
  shows: { status: Status; failureMessage: string | null } | undefined
  ends: 'done' | 'failed' | undefined
  updateEnds: { status: 'updated' | 'failed'; error: string | null; version?: string } | undefined
}

/**
 * - superseded: something else was requested meanwhile, so nothing was written, and the node is due again at once
 * - lease_lost: another process has leased the node, and nothing was written
 */
export type Finished = 'recorded' | 'superseded' | 'lease_lost'

/**
 * If a new request arrived meanwhile, nothing is written. If only a change of the node was reported meanwhile (next_at is later than the
 * start of the lease), next_at is kept: what this step observed may be older than the change.
 */
export async function finishStep(sql: Sql, node: NodeRow, outcome: Outcome): Promise<Finished> {
  const { shows, ends, updateEnds } = outcome
  const changes = sql`${shows ? sql`(status, failure_message) IS DISTINCT FROM (${shows.status}, ${shows.failureMessage}::text)` : sql`false`}`
  const [row] = await sql`
    WITH finished AS (UPDATE nodes SET
      phase = ${outcome.phase}, version = ${outcome.version}, history = ${sql.json(outcome.history)},
      updated_at = CASE WHEN ${changes} OR ${updateEnds !== undefined} THEN now() ELSE updated_at END,
      status = ${shows?.status ?? sql`status`}, failure_message = ${shows ? shows.failureMessage : sql`failure_message`},
      has_funds = ${outcome.hasFunds === undefined ? sql`has_funds` : fundsSeen(sql, outcome.hasFunds, node.nowMs)},
      ${balanceSeen(sql, outcome.balanceSat, node.nowMs)}
      operation_result = ${ends ?? sql`operation_result`}, operation = ${ends ? null : sql`operation`},
      update_status = ${updateEnds?.status ?? sql`update_status`},
      update_completed_at = ${updateEnds ? sql`now()` : sql`update_completed_at`},
      last_update_error = ${updateEnds ? updateEnds.error : sql`last_update_error`},
      desired_version = ${outcome.desiredVersion},
      next_at = CASE WHEN next_at > lease_until - ${LEASE_SECONDS} * interval '1 second' THEN next_at
                     ELSE now() + ${outcome.recheckMs} * interval '1 millisecond' END,
      lease_owner = NULL, lease_until = NULL
    WHERE id = ${node.id} AND lease_epoch = ${node.leaseEpoch} AND operation_id IS NOT DISTINCT FROM ${node.operationId}
      AND (purging_at IS NULL) = ${node.purgingAt === null}
    RETURNING id, account_id) ${updateEnds ? logged(sql, updateEnds.status) : sql``} SELECT 1 FROM finished`
  if (row) return 'recorded'
  const [released] = await sql`
    UPDATE nodes SET lease_owner = NULL, lease_until = NULL, next_at = now()
    WHERE id = ${node.id} AND lease_epoch = ${node.leaseEpoch} RETURNING 1`
  return released ? 'superseded' : 'lease_lost'
}

/** The activity log already has an entry for the request to update; this one records the outcome. */
const logged = (sql: Sql, status: 'updated' | 'failed') => sql`
  , logged AS (
    INSERT INTO activity (account_id, actor, action, target)
    SELECT account_id, id, ${status === 'updated' ? 'node.updated' : 'node.update_failed'}, id FROM finished
  )`

/**
 * After a failed step, the node is due again a second later, or at once if a change of the node was reported meanwhile. Without
 * the delay, nodes whose steps fail would be claimed again and again, before all others.
 */
export async function postponeStep(sql: Sql, { id, leaseEpoch }: NodeRow): Promise<void> {
  await sql`
    UPDATE nodes SET next_at = now() + interval '1 second', lease_owner = NULL, lease_until = NULL
    WHERE id = ${id} AND lease_epoch = ${leaseEpoch} AND next_at <= lease_until - ${LEASE_SECONDS} * interval '1 second'`
}

/**
 * After a restart, every node is checked once. We hold the lock on the data directory, so the previous process is dead and its leases need
 * not expire first. The epoch still rejects late writes.
 */
export async function takeOverHost(sql: Sql, host: string): Promise<void> {
  await sql`UPDATE nodes SET lease_until = NULL, lease_owner = NULL, next_at = now() WHERE host = ${host}`
}

/**
 * For a host whose nodes other replicas may be working on: every node is checked once within this time, because changes were not reported
 * while no process was watching. The checks are spread out, so that operations never wait behind ten thousand of them.
 */
export async function checkAllWithin(sql: Sql, host: string, milliseconds: number): Promise<void> {
  await sql`
    UPDATE nodes SET next_at = now() + random() * ${milliseconds} * interval '1 millisecond'
    WHERE id IN (
      SELECT id FROM nodes
      WHERE host = ${host} AND next_at > now() + ${milliseconds} * interval '1 millisecond' AND purged_at IS NULL
      FOR UPDATE SKIP LOCKED)`
}

/**
 * Not now(), the start of the transaction: if this statement waits while a process leases the node, next_at must still be later
 * than the start of the lease, or `finishStep` would overwrite it.
 */
export async function wakeNode(sql: Sql, id: string): Promise<void> {
  await sql`UPDATE nodes SET next_at = clock_timestamp() WHERE id = ${id}`
}

/**
 * The ports and users that earlier versions recorded in this table, before the runtime kept its own records. The columns stay until no such
 * version can still be running.
 */
export async function placesBefore(sql: Sql, host: string): Promise<{ id: string; port: number | null; uid: number | null }[]> {
  return sql`
    SELECT id, port, uid FROM nodes WHERE host = ${host} AND purged_at IS NULL AND (port IS NOT NULL OR uid IS NOT NULL)`
}
