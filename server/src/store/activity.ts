import type { Sql } from './db.ts'

export async function logActivity(sql: Sql, accountId: string, actor: string, action: string, target: string): Promise<void> {
  await sql`INSERT INTO activity (account_id, actor, action, target) VALUES (${accountId}, ${actor}, ${action}, ${target})`
}

export type ActivityRow = {
  id: number
  at: number
  actor: string
  action: string
  target: string | null
  detail: Record<string, unknown>
}

/** Newest first; with `before`, only older entries. `id > 0` is always true, but lets PostgreSQL use the index of the log. */
export async function listActivity(sql: Sql, accountId: string, limit: number, before?: number): Promise<ActivityRow[]> {
  return sql<ActivityRow[]>`
    SELECT id, unix_seconds(at) AS at, actor, action, target, detail
    FROM activity_log WHERE account_id = ${accountId} AND id > 0 ${before === undefined ? sql`` : sql`AND id < ${before}`}
    ORDER BY id DESC LIMIT ${limit}`
}
