import type { Sql } from '../db.ts'
import type { EntryRow, LedgerRow } from './credit.ts'

export type LedgerFilter = { kind?: string; from?: number; to?: number }
export type Matching = { count: number; amountMsat: number }

const matches = (sql: Sql, { kind, from, to }: LedgerFilter) => sql`
  ${kind === undefined ? sql`` : sql`AND kind = ${kind}`}
  ${from === undefined ? sql`` : sql`AND created_at >= to_timestamp(${from}::bigint)`}
  ${to === undefined ? sql`` : sql`AND created_at < to_timestamp(${to}::bigint)`}`

/** The entries that match, newest first, each with the balance that the account had after it: of all entries, not only of those that match. */
export async function listMatchingEntries(
  sql: Sql,
  accountId: string,
  filter: LedgerFilter,
  before: number | undefined,
  limit: number,
): Promise<LedgerRow[]> {
  return sql<LedgerRow[]>`
    WITH page AS MATERIALIZED (
      SELECT * FROM credit_entries
      WHERE account_id = ${accountId} ${before === undefined ? sql`` : sql`AND id < ${before}`} ${matches(sql, filter)}
      ORDER BY id DESC LIMIT ${limit}
    ), balances AS (
      SELECT id, sum(amount_msat) OVER (ORDER BY id) AS msat FROM credit_entries
      WHERE account_id = ${accountId} AND id <= (SELECT max(id) FROM page)
    )
    SELECT page.id, amount_msat AS "amountMsat", kind, reason, reference, unix_seconds(created_at) AS "createdAt",
           balances.msat::bigint AS "balanceAfterMsat"
    FROM page JOIN balances USING (id) ORDER BY page.id DESC`
}

export async function sumMatchingEntries(sql: Sql, accountId: string, filter: LedgerFilter): Promise<Matching> {
  const [row] = await sql<Matching[]>`
    SELECT count(*)::int AS count, coalesce(sum(amount_msat), 0)::bigint AS "amountMsat" FROM credit_entries
    WHERE account_id = ${accountId} ${matches(sql, filter)}`
  return row ?? { count: 0, amountMsat: 0 }
}

/** Oldest first, after the entry with this id. */
export async function listEntriesAfter(sql: Sql, accountId: string, after: number, limit: number): Promise<EntryRow[]> {
  return sql<EntryRow[]>`
    SELECT id, amount_msat AS "amountMsat", kind, reason, reference, unix_seconds(created_at) AS "createdAt"
    FROM credit_entries WHERE account_id = ${accountId} AND id > ${after} ORDER BY id LIMIT ${limit}`
}

export type UnpostedRow = { nodeId: string; since: number; minutes: number; amountMsat: number; isRunning: boolean }

/** By the same rule as `unpostedMsat`, so that in one snapshot the rows add up to it. */
export async function listUnposted(sql: Sql, accountId: string, priceMsatPerDay: number): Promise<UnpostedRow[]> {
  return sql<UnpostedRow[]>`
    SELECT node_id AS "nodeId", min(from_minute) * 60 AS since, sum(to_minute - from_minute)::int AS minutes,
           sum(usage_charge(${priceMsatPerDay}::bigint, from_minute, to_minute))::bigint AS "amountMsat", bool_or(is_open) AS "isRunning"
    FROM (
      SELECT node_id, ended_at IS NULL AS is_open, unix_minute(started_at) AS from_minute,
             greatest(unix_minute(started_at), unix_minute(coalesce(ended_at, now()))) AS to_minute
      FROM usage_intervals WHERE account_id = ${accountId} AND posted_at IS NULL) unposted
    GROUP BY node_id ORDER BY 3 DESC, 1`
}

export type ChargeRow = { nodeId: string; at: number; amountMsat: number; minutes: number }

/**
 * What the ledger charged for intervals that began in the period, by node and quarter hour. The reference of such an entry is the node and the
 * minute in which the interval began. It is posted after its end, so no entry from before the period can be about it.
 */
export async function listCharges(
  sql: Sql,
  accountId: string,
  from: number | undefined,
  to: number | undefined,
): Promise<ChargeRow[]> {
  return sql<ChargeRow[]>`
    SELECT charged.node_id AS "nodeId", from_minute / 15 * 900 AS at, sum(msat)::bigint AS "amountMsat",
           coalesce(sum(unix_minute(u.ended_at) - from_minute), 0)::int AS minutes
    FROM (
      SELECT split_part(reference, ' ', 1) AS node_id, split_part(reference, ' ', 2)::bigint AS from_minute, -amount_msat AS msat
      FROM credit_entries
      WHERE account_id = ${accountId} AND kind = 'usage' AND reference IS NOT NULL
        ${from === undefined ? sql`` : sql`AND created_at >= to_timestamp(${from}::bigint)`}) charged
    LEFT JOIN usage_intervals u ON u.node_id = charged.node_id AND u.started_at = to_timestamp(from_minute * 60)
    WHERE true ${from === undefined ? sql`` : sql`AND from_minute * 60 >= ${from}`} ${to === undefined ? sql`` : sql`AND from_minute * 60 < ${to}`}
    GROUP BY 1, 2`
}
