import type { Sql } from '../db.ts'

/** Whoever has seen money come in since a look began knows better than the look. */
export const fundsSeen = (sql: Sql, hasFunds: boolean, sinceMs: number) =>
  sql`(${hasFunds} OR (has_funds AND coalesce(funded_at >= to_timestamp(${sinceMs} / 1000.0), false)))`

/** A trusted observation that began then, by the database's clock; what is not known must not come here. */
export async function recordFunds(sql: Sql, id: string, hasFunds: boolean, sinceMs: number): Promise<void> {
  await sql`UPDATE nodes SET has_funds = ${fundsSeen(sql, hasFunds, sinceMs)} WHERE id = ${id}`
}

/** Money was given to it. */
export async function recordFunding(sql: Sql, id: string): Promise<void> {
  await sql`UPDATE nodes SET has_funds = true, funded_at = now() WHERE id = ${id}`
}
