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

/** The last known balance, as assignments of an UPDATE. An observation never overwrites one that began later. */
export const balanceSeen = (sql: Sql, balanceSat: number | undefined, sinceMs: number) =>
  balanceSat === undefined
    ? sql``
    : sql`balance_sat = CASE WHEN balance_at > to_timestamp(${sinceMs} / 1000.0) THEN balance_sat ELSE ${balanceSat} END,
          balance_at = greatest(balance_at, to_timestamp(${sinceMs} / 1000.0)),`

/**
 * Not written if the same balance was recorded less than 30 s before: a page that shows a node reads its balance every few
 * seconds.
 */
export async function recordBalance(sql: Sql, id: string, balanceSat: number, sinceMs: number): Promise<void> {
  await sql`
    UPDATE nodes SET balance_sat = ${balanceSat}, balance_at = to_timestamp(${sinceMs} / 1000.0)
    WHERE id = ${id} AND (balance_at IS NULL OR balance_at < to_timestamp(${sinceMs} / 1000.0))
      AND (balance_sat IS DISTINCT FROM ${balanceSat} OR balance_at < to_timestamp(${sinceMs} / 1000.0) - interval '30 seconds')`
}
