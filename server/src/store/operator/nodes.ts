import type { Sql } from '../db.ts'
import { columns, isSilent, type NodeRow } from '../nodes/nodes.ts'
import { containing, type ListParams, pageOf } from './lists.ts'

export type NodeListParams = ListParams & { accountId?: string | undefined; state?: 'live' | 'failed' | 'restorable' | undefined }
export type ListedNodeRow = NodeRow & {
  accountName: string
  isRestorable: boolean
  /** Null unless it can be restored. */
  purgesAt: number | null
}

/** The same condition as in `undeleteNode`. */
const isRestorable = (sql: Sql, retentionDays: number) => sql`
  (deleted_at IS NOT NULL AND deleted_at > now() - ${retentionDays} * interval '1 day' AND operation IS NULL AND purging_at IS NULL
   AND released_at IS NULL)`

/** Nodes of all accounts, including deleted ones unless `state` excludes them. */
export async function listNodesOfAll(
  sql: Sql,
  { accountId, state, search, ...page }: NodeListParams,
  retentionDays: number,
): Promise<ListedNodeRow[]> {
  const restorable = isRestorable(sql, retentionDays)
  const states = {
    live: sql`AND deleted_at IS NULL`,
    failed: sql`AND deleted_at IS NULL AND (status = 'failed' OR ${isSilent(sql)})`,
    restorable: sql`AND ${restorable}`,
  }
  return sql<ListedNodeRow[]>`
    SELECT ${columns(sql)}, (SELECT a.name FROM accounts a WHERE a.id = account_id) AS "accountName", ${restorable} AS "isRestorable",
           CASE WHEN ${restorable} THEN unix_seconds(deleted_at + ${retentionDays} * interval '1 day') END AS "purgesAt"
    FROM nodes WHERE true ${state === undefined ? sql`` : states[state]}
      ${accountId === undefined ? sql`` : sql`AND account_id = ${accountId}`}
      ${search === undefined ? sql`` : sql`AND (id = ${search} OR name ILIKE ${containing(search)})`} ${pageOf(sql, sql`id`, page)}`
}
