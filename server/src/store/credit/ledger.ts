import type { Sql } from '../db.ts'
import type { EntryRow, LedgerRow } from './credit.ts'

export type LedgerFilter = { kind?: string; from?: number; to?: number }
export type Matching = { count: number; amountMsat: number }

const MAX_ID = Number.MAX_SAFE_INTEGER

const matches = (sql: Sql, { kind, from, to }: LedgerFilter) => sql`
  ${kind === undefined ? sql`` : sql`AND kind = ${kind}`}
  ${from === undefined ? sql`` : sql`AND created_at >= to_timestamp(${from}::bigint)`}
  ${to === undefined ? sql`` : sql`AND created_at < to_timestamp(${to}::bigint)`}`

/**
 * The matching entries, newest first, each with the account's balance after it. That balance includes entries that do not match: it is the
 * balance of the whole ledger minus all later entries, which are summed up from one entry of the page to the next.
 */
export async function listMatchingEntries(
  sql: Sql,
  accountId: string,
  filter: LedgerFilter,
  { before, limit }: { before: number | undefined; limit: number },
  ledgerMsat: number,
): Promise<LedgerRow[]> {
  return sql<LedgerRow[]>`
    WITH page AS MATERIALIZED (
      SELECT * FROM credit_entries
      WHERE account_id = ${accountId} ${before === undefined ? sql`` : sql`AND id < ${before}`} ${matches(sql, filter)}
      ORDER BY id DESC LIMIT ${limit}
    ), later AS (
      SELECT page.*, (SELECT coalesce(sum(e.amount_msat), 0) FROM credit_entries e
                      WHERE e.account_id = ${accountId} AND e.id > page.id AND e.id <= coalesce(page.next_id, ${MAX_ID}::bigint)) AS msat
      FROM (SELECT *, lag(id) OVER (ORDER BY id DESC) AS next_id FROM page) page
    )
    SELECT id, amount_msat AS "amountMsat", kind, reason, reference, unix_seconds(created_at) AS "createdAt",
           (${ledgerMsat}::bigint - sum(msat) OVER (ORDER BY id DESC))::bigint AS "balanceAfterMsat"
    FROM later ORDER BY id DESC`
}

export async function sumMatchingEntries(sql: Sql, accountId: string, filter: LedgerFilter): Promise<Matching> {
  const [row] = await sql<Matching[]>`
    SELECT count(*)::int AS count, coalesce(sum(amount_msat), 0)::bigint AS "amountMsat" FROM credit_entries
    WHERE account_id = ${accountId} ${matches(sql, filter)}`
  return row ?? { count: 0, amountMsat: 0 }
}

/**
 * The matching entries after the one with this id, oldest first. `changeMsat` is how much the balance has changed since the previous one of
 * them, which includes the entries between them that do not match.
 */
export async function listEntriesAfter(
  sql: Sql,
  accountId: string,
  filter: LedgerFilter,
  after: number,
  limit: number,
): Promise<(EntryRow & { changeMsat: number })[]> {
  const isFiltered = Object.values(filter).some((value) => value !== undefined)
  const change = isFiltered
    ? sql`(SELECT sum(e.amount_msat) FROM credit_entries e
           WHERE e.account_id = ${accountId} AND e.id > page.previous_id AND e.id <= page.id)::bigint`
    : sql`amount_msat`
  return sql<(EntryRow & { changeMsat: number })[]>`
    WITH page AS MATERIALIZED (
      SELECT *, lag(id, 1, ${after}::bigint) OVER (ORDER BY id) AS previous_id FROM (
        SELECT * FROM credit_entries WHERE account_id = ${accountId} AND id > ${after} ${matches(sql, filter)}
        ORDER BY id LIMIT ${limit}) matching
    )
    SELECT id, amount_msat AS "amountMsat", kind, reason, reference, unix_seconds(created_at) AS "createdAt",
           ${change} AS "changeMsat"
    FROM page ORDER BY id`
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
