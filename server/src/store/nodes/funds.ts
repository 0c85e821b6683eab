import type { Sql } from '../db.ts'

/** Money that arrived after an observation began overrides that observation. */
export const fundsSeen = (sql: Sql, hasFunds: boolean, sinceMs: number) =>
  sql`(${hasFunds} OR (has_funds AND coalesce(funded_at >= to_timestamp(${sinceMs} / 1000.0), false)))`

/**
 * Records a definite observation that began at `sinceMs`, by the database's clock. Must not be called if it is unknown whether there are
 * funds.
 */
export async function recordFunds(sql: Sql, id: string, hasFunds: boolean, sinceMs: number): Promise<void> {
  await sql`UPDATE nodes SET has_funds = ${fundsSeen(sql, hasFunds, sinceMs)} WHERE id = ${id}`
}

/** The node has received money. */
export async function recordFunding(sql: Sql, id: string): Promise<void> {
  await sql`UPDATE nodes SET has_funds = true, funded_at = now() WHERE id = ${id}`
}
