import type { Sql } from '../db.ts'

export type HostRow = {
  host: string
  nodes: number
  nodesReady: number
  nodesFailed: number
  nodesDeleted: number
  /** Nodes that count towards the limit per host, as in `countNodes`: those of the treasury do not. */
  slotsUsed: number
}

/** Hosts that have data of nodes, and `here` even if it has none. */
export async function countNodesByHost(sql: Sql, here: string): Promise<HostRow[]> {
  return sql<HostRow[]>`
    SELECT h.host, (count(n.id) FILTER (WHERE n.deleted_at IS NULL))::int AS nodes,
           (count(n.id) FILTER (WHERE n.deleted_at IS NULL AND n.status = 'ready'))::int AS "nodesReady",
           (count(n.id) FILTER (WHERE n.deleted_at IS NULL AND n.status = 'failed'))::int AS "nodesFailed",
           (count(n.id) FILTER (WHERE n.deleted_at IS NOT NULL))::int AS "nodesDeleted",
           (count(n.id) FILTER (WHERE n.deleted_at IS NULL AND NOT a.is_treasury))::int AS "slotsUsed"
    FROM (SELECT DISTINCT host FROM nodes WHERE purged_at IS NULL UNION SELECT ${here}) h (host)
      LEFT JOIN nodes n ON n.host = h.host AND n.purged_at IS NULL LEFT JOIN accounts a ON a.id = n.account_id
    GROUP BY h.host ORDER BY h.host`
}

export async function countNodesByVersion(sql: Sql): Promise<{ version: string | null; count: number }[]> {
  return sql`SELECT version, count(*)::int AS count FROM nodes WHERE deleted_at IS NULL GROUP BY version ORDER BY version`
}
