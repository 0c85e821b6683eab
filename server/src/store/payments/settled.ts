import { idsFrom } from '../../platform/ids.ts'
import type { Sql } from '../db.ts'
import { unlistedNodes } from '../nodes/receipts.ts'
import { hasFailedDelivery, type ShownPayment, shownColumns } from './payments.ts'
import { PATIENCE_MINUTES } from './search.ts'

export type { ShownPayment }
export type Point = { at: number; sat: number }
/** The part of `sat` received in the first minutes and seconds of the quarter hour, as many as have passed of the current one. */
type QuarterHour = Point & { satSoFar: number }
/** `now`: by the database's clock. */
export type ReceivedRow = { now: number; quarterHours: QuarterHour[]; unlistedNodes: number }
export type NodeReceivedRow = { nodeId: string; sat: number; count: number }
export type ReceivedByNodeRow = { now: number; nodes: NodeReceivedRow[]; unlistedNodes: number }

const DAY_SECONDS = 86_400

/** Newest settlement first. */
export async function listSettled(sql: Sql, accountId: string, limit: number): Promise<ShownPayment[]> {
  return sql<ShownPayment[]>`
    SELECT ${shownColumns(sql)}
    FROM (SELECT * FROM gateway_payments WHERE account_id = ${accountId} AND settled_at IS NOT NULL
          ORDER BY settled_at DESC LIMIT ${limit}) settled
      LEFT JOIN paid_payments USING (account_id, id)
    ORDER BY settled_at DESC, id DESC`
}

/** `unclaimed`: received payments without a validated credential, because the customers have not come back. */
export type SettledCounts = { settled: number; paid: number; unclaimed: number }

/** A challenge can be paid for less than a day, so what was received since a given time was created since then or in the day before. */
const createdSince = (from: number): string => idsFrom('pay', Math.max(0, from - DAY_SECONDS))

/** Payments received since a given time. The validated ones among them are one range of ids, which begin with the time of creation. */
export async function countSettled(sql: Sql, accountId: string, from: number): Promise<SettledCounts> {
  const [row] = await sql<SettledCounts[]>`
    SELECT count(*)::int AS settled, count(paid.id)::int AS paid,
           (count(*) FILTER (WHERE paid.id IS NULL AND settled_at < now() - ${PATIENCE_MINUTES} * interval '1 minute'))::int AS unclaimed
    FROM gateway_payments LEFT JOIN (
      SELECT id FROM paid_payments WHERE account_id = ${accountId} AND id >= ${createdSince(from)}) paid
      USING (id)
    WHERE account_id = ${accountId} AND settled_at >= to_timestamp(${from})`
  if (!row) throw new Error('a count returned no row')
  return row
}

/** Payments created since a given time whose delivery was begun but failed or was never confirmed, and that nobody has claimed since. */
export async function countFailedDeliveries(sql: Sql, accountId: string, from: number): Promise<number> {
  const [row] = await sql<[{ count: number }]>`
    SELECT count(*)::int AS count FROM paid_payments
    WHERE account_id = ${accountId} AND id >= ${idsFrom('pay', from)}
      AND ${hasFailedDelivery(sql)}`
  return row.count
}

/**
 * Non-empty quarter hours of a period. The page groups them into days of the reader's time zone; all offsets are multiples of a
 * quarter hour. So the same time of an earlier day, in any zone, is as far into its quarter hour as now: `satSoFar` is what was received
 * there until that time. Without a node, only an index is read.
 */
export async function receivedIn(
  sql: Sql,
  accountId: string,
  { from, to, nodeId }: { from: number; to: number; nodeId?: string | undefined },
): Promise<ReceivedRow> {
  const ofNode = nodeId === undefined ? sql`` : sql`AND node_id = ${nodeId}`
  const [row] = await sql<ReceivedRow[]>`
    WITH received AS (
      SELECT settled_at, amount_sat FROM gateway_payments
      WHERE account_id = ${accountId} AND settled_at >= to_timestamp(${from}) AND settled_at < to_timestamp(${to}) ${ofNode}
        ${nodeId === undefined ? sql`` : sql`AND id >= ${createdSince(from)} AND id < ${idsFrom('pay', to)}`}
      UNION ALL
      SELECT received_at, amount_sat FROM node_receipts
      WHERE account_id = ${accountId} AND received_at >= to_timestamp(${from}) AND received_at < to_timestamp(${to}) ${ofNode}
    ), quarters AS (
      SELECT unix_seconds(quarter) AS at, sum(amount_sat) AS sat,
             coalesce(sum(amount_sat) FILTER (WHERE settled_at - quarter < now() - date_bin('15 minutes', now(), to_timestamp(0))), 0) AS "satSoFar"
      FROM (SELECT settled_at, amount_sat, date_bin('15 minutes', settled_at, to_timestamp(0)) AS quarter FROM received) part GROUP BY quarter
    )
    SELECT unix_seconds(now()) AS now, ${unlistedNodes(sql, accountId, nodeId)} AS "unlistedNodes",
           coalesce((SELECT jsonb_agg(jsonb_build_object('at', at, 'sat', sat, 'satSoFar', "satSoFar") ORDER BY at) FROM quarters), '[]') AS "quarterHours"`
  if (!row) throw new Error('a sum returned no row')
  return row
}

/**
 * Reads the row of every payment of these days: no index in the order of settlement has the node. Callers keep the result for a
 * while.
 */
export async function receivedByNode(sql: Sql, accountId: string, days: number): Promise<ReceivedByNodeRow> {
  const [row] = await sql<[ReceivedByNodeRow]>`
    WITH received AS (
      SELECT node_id, sum(amount_sat) AS sat, count(*) AS count FROM (
        SELECT node_id, amount_sat FROM gateway_payments
        WHERE account_id = ${accountId} AND settled_at >= now() - ${days} * interval '1 day'
        UNION ALL
        SELECT node_id, amount_sat FROM node_receipts
        WHERE account_id = ${accountId} AND received_at >= now() - ${days} * interval '1 day') every GROUP BY 1
    )
    SELECT unix_seconds(now()) AS now, ${unlistedNodes(sql, accountId, undefined)} AS "unlistedNodes",
           coalesce((SELECT jsonb_agg(jsonb_build_object('nodeId', node_id, 'sat', sat, 'count', count)) FROM received), '[]') AS nodes`
  return row
}
