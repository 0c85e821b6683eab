import type { Sql } from './db.ts'
import { sealingKeyIds } from './nodes/secrets.ts'

export type Stats = {
  accounts: number
  keys: number
  nodes: number
  nodesReady: number
  nodesFailed: number
  nodesDeleted: number
  payments: number
  paymentsPaid: number
  rowsUnderPreviousKey: number
}

export async function statsOf(sql: Sql, masterKeyId: string): Promise<Stats> {
  const [row] = await sql<Omit<Stats, 'rowsUnderPreviousKey'>[]>`
    SELECT (SELECT count(*) FROM accounts)::int AS accounts,
           (SELECT count(*) FROM api_keys WHERE revoked_at IS NULL)::int AS keys,
           (SELECT count(*) FROM nodes WHERE deleted_at IS NULL)::int AS nodes,
           (SELECT count(*) FROM nodes WHERE deleted_at IS NULL AND status = 'ready')::int AS "nodesReady",
           (SELECT count(*) FROM nodes WHERE deleted_at IS NULL AND status = 'failed')::int AS "nodesFailed",
           (SELECT count(*) FROM nodes WHERE deleted_at IS NOT NULL)::int AS "nodesDeleted",
           (SELECT count(*) FROM gateway_payments)::int AS payments,
           (SELECT count(*) FROM paid_payments)::int AS "paymentsPaid"`
  if (!row) throw new Error('a query without FROM returned no row')
  const underPreviousKey = (await sealingKeyIds(sql)).filter(({ keyId }) => keyId !== masterKeyId)
  return { ...row, rowsUnderPreviousKey: underPreviousKey.reduce((sum, { rows }) => sum + rows, 0) }
}

export async function countNodesByPhase(sql: Sql): Promise<{ status: string; phase: string; count: number }[]> {
  return sql`SELECT status, phase, count(*)::int AS count FROM nodes WHERE deleted_at IS NULL GROUP BY status, phase`
}

/** How long the most overdue node has waited; 0 if none is due. A node that a process is working on right now is not waiting. */
export async function reconcileLagSeconds(sql: Sql): Promise<number> {
  const [row] = await sql<{ seconds: number }[]>`
    SELECT coalesce(extract(epoch FROM now() - min(next_at)), 0)::float8 AS seconds FROM nodes
    WHERE next_at <= now() AND purged_at IS NULL AND (lease_until IS NULL OR lease_until < now())`
  return row?.seconds ?? 0
}

export type LedgerTotal = { kind: string; sat: number }

/** The sum of all entries by kind, over all accounts. Reads the whole ledger. */
export async function ledgerTotals(sql: Sql): Promise<LedgerTotal[]> {
  return sql`SELECT kind, (sum(amount_msat) / 1000)::float8 AS sat FROM credit_entries GROUP BY kind`
}
