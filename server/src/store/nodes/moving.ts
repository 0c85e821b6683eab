import { logActivity } from '../activity.ts'
import type { Database, Sql } from '../db.ts'
import { columns, type NodeRow } from './nodes.ts'
import { beginOperation } from './operations.ts'

/** What the database remembers of a wallet, even after its node was purged. */
export type KnownWallet = {
  nodeId: string
  accountId: string
  releases: string[]
  isAdopted: boolean
  isDeleted: boolean
  isPurged: boolean
  isReleased: boolean
}

/**
 * The latest node with this seed; undefined if there never was one. A wallet that was released and came back has several, of which at most
 * one is not released. Every release adds its id to the wallet's list, so the order does not depend on the clock.
 */
export async function findWallet(sql: Sql, lightningId: string): Promise<KnownWallet | undefined> {
  const [row] = await sql<KnownWallet[]>`
    SELECT id AS "nodeId", account_id AS "accountId", releases, adopted_at IS NOT NULL AS "isAdopted", deleted_at IS NOT NULL AS "isDeleted",
           purged_at IS NOT NULL AS "isPurged", released_at IS NOT NULL AS "isReleased"
    FROM nodes WHERE lightning_id = ${lightningId}
    ORDER BY released_at IS NULL DESC, cardinality(releases) DESC, created_at DESC LIMIT 1`
  return row
}

/** Held until the end of the transaction: of two processes that adopt the same wallet, the second one finds the node of the first. */
export async function lockWallet(sql: Sql, lightningId: string): Promise<void> {
  await sql`SELECT pg_advisory_xact_lock(hashtextextended(${`wallet ${lightningId}`}, 0))`
}

/** Throws if the lock is lost. */
export type RequireLock = () => Promise<void>

/**
 * Across all machines: one wallet of the installation is moved at a time. The lock ends with the connection, so no crash can leave it. The
 * connection may be lost while the work goes on, so the work calls `requireLock` before each step that only one process may take.
 */
export async function withMovesLocked<T>(
  sql: Database,
  work: (requireLock: RequireLock) => Promise<T>,
): Promise<'locked' | { result: T }> {
  const kept: { done?: { result: T } } = {}
  try {
    return await sql.begin(async (transaction) => {
      // A move sends nothing for minutes, so there is no timeout, and a paused process keeps the lock. Keepalives detect a lost machine.
      await transaction.unsafe(`
        SET LOCAL idle_in_transaction_session_timeout = 0;
        SET LOCAL tcp_keepalives_idle = 30; SET LOCAL tcp_keepalives_interval = 10; SET LOCAL tcp_keepalives_count = 3`)
      const [lock] = await transaction<{ isOurs: boolean }[]>`
        SELECT pg_try_advisory_xact_lock(hashtextextended('moving a wallet', 0)) AS "isOurs"`
      if (!lock?.isOurs) return 'locked'
      const result = await work(async () => {
        await transaction`SELECT 1`
      })
      kept.done = { result }
      return kept.done
    })
  } catch (error) {
    // This transaction only holds the lock. The work is done outside it, so its result stands even if the commit fails.
    if (kept.done) return kept.done
    throw error
  }
}

export type Release = { releaseId: string; operationId: string; timeoutMs: number }

/**
 * Once this commits, no process of this installation starts the node again, and the reconciler stops it as it stops a deleted one.
 * False: it is deleted already, or another operation is in progress.
 */
export async function beginRelease(sql: Sql, node: NodeRow, release: Release): Promise<boolean> {
  const begun = await beginOperation(sql, node.accountId, node.id, {
    kind: 'delete',
    from: ['provisioning', 'ready', 'stopped', 'failed'],
    state: 'deleted',
    newRun: false,
    operationId: release.operationId,
    timeoutMs: release.timeoutMs,
  })
  if (!begun) return false
  await sql`UPDATE nodes SET released_at = now(), releases = releases || ${release.releaseId}::text WHERE id = ${node.id}`
  await logActivity(sql, node.accountId, 'operator', 'node.released', node.id)
  return true
}

/** The operator has a directory with the wallet, so the retention period of the data here begins. */
export async function markExported(sql: Sql, id: string): Promise<void> {
  await sql`UPDATE nodes SET exported_at = now() WHERE id = ${id}`
}

export type ReleasableNode = NodeRow & { releases: string[]; isTreasury: boolean; isAdopted: boolean }

/** The node, with fields that only a release needs. */
export async function findReleasable(sql: Sql, id: string): Promise<ReleasableNode | undefined> {
  const [row] = await sql<ReleasableNode[]>`
    SELECT ${columns(sql)}, releases, adopted_at IS NOT NULL AS "isAdopted",
           (SELECT is_treasury FROM accounts WHERE accounts.id = account_id) AS "isTreasury"
    FROM nodes WHERE id = ${id}`
  return row
}
