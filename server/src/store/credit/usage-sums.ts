import type { Fragment, Sql } from '../db.ts'

export type NodeUsageRow = { nodeId: string; amountMsat: number; minutes: number }
export type QuarterHourRow = { at: number; amountMsat: number }

/** A day is added up this many days after its end. Entries are written within seconds; this leaves time for a clock that is set back. */
const DAYS_TO_WAIT = 1
const DAY_SECONDS = 86_400
/** The end of the year 9999. */
const LATEST = 253_402_300_799

/**
 * Entries for usage, each with its node: the reference is the node and the minute in which the interval began. The interval is looked up
 * for each entry, because a join may read the intervals of all accounts.
 */
const charges = (sql: Sql, where: Fragment) => sql`
  SELECT account_id, created_at, node_id, amount_msat, coalesce((
    SELECT extract(epoch FROM u.ended_at - u.started_at)::int / 60 FROM usage_intervals u
    WHERE u.node_id = entry.node_id AND u.started_at = entry.started_at), 0) AS minutes
  FROM (
    SELECT e.account_id, e.created_at, split_part(e.reference, ' ', 1) AS node_id, -e.amount_msat AS amount_msat,
           to_timestamp(split_part(e.reference, ' ', 2)::bigint * 60) AS started_at
    FROM credit_entries e WHERE e.kind = 'usage' AND e.reference IS NOT NULL AND ${where}) entry`

const quarterHourOf = (sql: Sql) => sql`date_bin('15 minutes', created_at, to_timestamp(0))`

/** Adds up the next day that is over. Returns whether there was one. Of several concurrent callers, only one does it. */
export async function addUpUsageDay(sql: Sql): Promise<boolean> {
  const [row] = await sql`
    WITH next AS (
      INSERT INTO usage_days_added_up (day)
      SELECT day FROM (SELECT coalesce((SELECT max(day) + 1 FROM usage_days_added_up),
        (SELECT (min(created_at) AT TIME ZONE 'UTC')::date FROM credit_entries WHERE kind = 'usage')) AS day) first
      WHERE day < (now() AT TIME ZONE 'UTC')::date - ${DAYS_TO_WAIT}::int
      ON CONFLICT DO NOTHING RETURNING day::timestamp AT TIME ZONE 'UTC' AS start
    ), charged AS MATERIALIZED (
      ${charges(sql, sql`e.created_at >= (SELECT start FROM next) AND e.created_at < (SELECT start FROM next) + interval '24 hours'`)}
    ), by_node AS (
      INSERT INTO usage_days (account_id, day, node_id, amount_msat, minutes)
      SELECT account_id, (SELECT (start AT TIME ZONE 'UTC')::date FROM next), node_id, sum(amount_msat), sum(minutes) FROM charged GROUP BY 1, 2, 3
    ), by_quarter_hour AS (
      INSERT INTO usage_quarter_hours (account_id, at, amount_msat)
      SELECT account_id, ${quarterHourOf(sql)}, sum(amount_msat) FROM charged GROUP BY 1, 2
    )
    SELECT 1 FROM next`
  return row !== undefined
}

/** `now`: the start of the present quarter hour. `unaddedFrom`: the start of the first day that is not added up. */
export type UsageTimes = { now: number; unaddedFrom: number }

export async function usageTimes(sql: Sql): Promise<UsageTimes> {
  const [row] = await sql<UsageTimes[]>`
    SELECT unix_seconds(date_bin('15 minutes', now(), to_timestamp(0))) AS now,
           unix_seconds(coalesce(max(day) + 1, 'epoch')::timestamp AT TIME ZONE 'UTC') AS "unaddedFrom" FROM usage_days_added_up`
  if (!row) throw new Error('a maximum returned no row')
  return row
}

/**
 * What the ledger charged each node since `from`. Whole days come from the stored sums; entries are read only for the first day and for days
 * that are not added up yet. The times are parameters: with a subquery, PostgreSQL would expect many rows and read whole tables.
 */
export async function usageByNode(
  sql: Sql,
  accountId: string,
  from: number,
  { unaddedFrom }: UsageTimes,
): Promise<NodeUsageRow[]> {
  const firstWholeDay = Math.ceil(from / DAY_SECONDS) * DAY_SECONDS
  const between = (start: number, end: number) =>
    charges(
      sql,
      sql`e.account_id = ${accountId} AND e.created_at >= to_timestamp(${start}::bigint) AND e.created_at < to_timestamp(${end}::bigint)`,
    )
  return sql<NodeUsageRow[]>`
    SELECT node_id AS "nodeId", sum(amount_msat)::bigint AS "amountMsat", sum(minutes)::int AS minutes FROM (
      SELECT node_id, amount_msat, minutes FROM usage_days
      WHERE account_id = ${accountId} AND day >= (to_timestamp(${firstWholeDay}::bigint) AT TIME ZONE 'UTC')::date
      UNION ALL
      SELECT node_id, amount_msat, minutes FROM (${between(from, Math.min(firstWholeDay, unaddedFrom))}) first_day
      UNION ALL
      SELECT node_id, amount_msat, minutes FROM (${between(Math.max(from, unaddedFrom), LATEST)}) latest) charged
    GROUP BY 1`
}

/** What the ledger charged since `from`, by the quarter hour of the entries. */
export async function usageByQuarterHour(
  sql: Sql,
  accountId: string,
  from: number,
  { unaddedFrom }: UsageTimes,
): Promise<QuarterHourRow[]> {
  return sql<QuarterHourRow[]>`
    SELECT unix_seconds(at) AS at, amount_msat AS "amountMsat" FROM (
      SELECT at, amount_msat FROM usage_quarter_hours WHERE account_id = ${accountId} AND at >= to_timestamp(${from}::bigint)
      UNION ALL
      SELECT ${quarterHourOf(sql)}, -sum(amount_msat)::bigint FROM credit_entries
      WHERE account_id = ${accountId} AND kind = 'usage' AND created_at >= to_timestamp(${Math.max(from, unaddedFrom)}::bigint) GROUP BY 1) charged
    ORDER BY 1`
}
