import type { Sql } from './db.ts'

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
  const [row] = await sql<Stats[]>`
    SELECT (SELECT count(*) FROM accounts)::int AS accounts,
           (SELECT count(*) FROM api_keys WHERE revoked_at IS NULL)::int AS keys,
           (SELECT count(*) FROM nodes WHERE deleted_at IS NULL)::int AS nodes,
           (SELECT count(*) FROM nodes WHERE deleted_at IS NULL AND status = 'ready')::int AS "nodesReady",
           (SELECT count(*) FROM nodes WHERE deleted_at IS NULL AND status = 'failed')::int AS "nodesFailed",
           (SELECT count(*) FROM nodes WHERE deleted_at IS NOT NULL)::int AS "nodesDeleted",
           (SELECT count(*) FROM gateway_payments)::int AS payments,
           (SELECT count(*) FROM paid_payments)::int AS "paymentsPaid",
           (SELECT count(*) FROM (SELECT key_id FROM node_secrets UNION ALL SELECT key_id FROM protocol_keys) sealed
              WHERE key_id <> ${masterKeyId})::int AS "rowsUnderPreviousKey"`
  if (!row) throw new Error('a query without FROM returned no row')
  return row
}
