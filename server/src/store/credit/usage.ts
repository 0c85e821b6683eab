import type { Fragment, Sql } from '../db.ts'

/**
 * Nodes whose rows are not locked. A transaction that changes a node closes its interval, and no one else may close it at the same time.
 */
const restingNodes = (sql: Sql, started: Fragment) => sql`
  SELECT n.id FROM nodes n JOIN usage_intervals u ON u.node_id = n.id AND u.ended_at IS NULL AND u.started_at <= ${started}
  ORDER BY n.id LIMIT 1000 FOR NO KEY UPDATE OF n SKIP LOCKED`

/**
 * Closes intervals that are at least an hour old and opens the next one at the same moment. If this has not run for a long time, the closed
 * interval is longer; nothing is lost.
 */
export async function closeHours(sql: Sql): Promise<number> {
  const anHourAgo = sql`whole_minute(now()) - interval '1 hour'`
  const rows = await sql`
    WITH resting AS MATERIALIZED (${restingNodes(sql, anHourAgo)}),
    closed AS (
      UPDATE usage_intervals u SET ended_at = whole_minute(now()) FROM resting
      WHERE u.node_id = resting.id AND u.ended_at IS NULL AND u.started_at <= ${anHourAgo} RETURNING u.node_id, u.account_id, u.ended_at
    )
    INSERT INTO usage_intervals (node_id, account_id, started_at) SELECT node_id, account_id, ended_at FROM closed RETURNING 1`
  return rows.length
}

/**
 * Turns every closed interval into one ledger entry. One statement marks the interval and adds the entry, so both happen or neither, and
 * concurrent callers post different intervals. Returns the number of intervals posted. Intervals that cost nothing get no entry.
 */
export async function postUsage(sql: Sql, priceMsatPerDay: number, limit: number): Promise<number> {
  const [row] = await sql<{ posted: number }[]>`
    WITH due AS MATERIALIZED (
      SELECT node_id, started_at FROM usage_intervals WHERE posted_at IS NULL AND ended_at IS NOT NULL
      ORDER BY node_id, started_at LIMIT ${limit} FOR UPDATE SKIP LOCKED
    ), posted AS (
      UPDATE usage_intervals u SET posted_at = now() FROM due
      WHERE u.node_id = due.node_id AND u.started_at = due.started_at AND u.posted_at IS NULL
      RETURNING u.account_id, u.node_id, unix_minute(u.started_at) AS from_minute, unix_minute(u.ended_at) AS to_minute
    ), charged AS (
      SELECT *, usage_charge(${priceMsatPerDay}::bigint, from_minute, to_minute) AS charge FROM posted
    ), entered AS (
      INSERT INTO credit_entries (account_id, amount_msat, kind, reason, reference)
      SELECT account_id, -charge, 'usage',
        CASE to_minute - from_minute WHEN 1 THEN 'A node for a minute' ELSE 'A node for ' || to_minute - from_minute || ' minutes' END,
        node_id || ' ' || from_minute
      FROM charged WHERE charge <> 0 ORDER BY from_minute, node_id
      ON CONFLICT (kind, reference) WHERE reference IS NOT NULL DO NOTHING
    )
    SELECT count(*)::int AS posted FROM posted`
  return row?.posted ?? 0
}

/** While nodes are free, usage is not kept. Otherwise a price set later would be charged for the time before it. */
export async function forgetUsage(sql: Sql): Promise<void> {
  await sql`
    WITH resting AS MATERIALIZED (${restingNodes(sql, sql`whole_minute(now()) - interval '1 minute'`)})
    UPDATE usage_intervals u SET started_at = whole_minute(now()) FROM resting
    WHERE u.node_id = resting.id AND u.ended_at IS NULL AND u.started_at < whole_minute(now())`
  await sql`DELETE FROM usage_intervals WHERE posted_at IS NULL AND ended_at IS NOT NULL`
}

/**
 * What an account has used until now that is not in the ledger yet. An interval that starts in the future, after the clock was set back,
 * does not count.
 */
export const unpostedMsat = (sql: Sql, accountId: Fragment | string, priceMsatPerDay: number) => sql`
  (SELECT coalesce(sum(usage_charge(${priceMsatPerDay}::bigint, unix_minute(u.started_at),
            greatest(unix_minute(u.started_at), unix_minute(coalesce(u.ended_at, now()))))), 0)
   FROM usage_intervals u WHERE u.account_id = ${accountId} AND u.posted_at IS NULL)::bigint`
