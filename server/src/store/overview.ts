import { newId } from '../ids.ts'
import type { Sql } from './db.ts'

export type Point = { at: number; sat: number }
export type OverviewRow = {
  nodes: { ready: number; total: number }
  received: { last24hSat: number; last7dSat: number; hourly: Point[]; daily: Point[] }
  funnel: { issued: number; settled: number; paid: number }
  checklist: { hasNode: boolean; hasKey: boolean; hasChallenge: boolean; hasPaidRequest: boolean }
}

const DAYS = 7
const HOUR = 3_600
const DAY = 24 * HOUR

/** Each statement reads one range of one index, and so costs what happened lately, not what ever happened. */
export async function overviewOf(sql: Sql, accountId: string): Promise<OverviewRow> {
  const [hours, funnel, [things]] = await Promise.all([
    receivedByHour(sql, accountId),
    funnelOf(sql, accountId),
    // By an order, so that an index is used: to find any one row the whole table may be read, and what comes first in it is others'.
    sql<{ ready: number; total: number; hasKey: boolean; hasChallenge: boolean; hasPaidRequest: boolean }[]>`
      SELECT n.ready, n.total,
             EXISTS (SELECT 1 FROM api_keys WHERE account_id = ${accountId} AND revoked_at IS NULL) AS "hasKey",
             (SELECT 1 FROM gateway_payments WHERE account_id = ${accountId} ORDER BY id DESC LIMIT 1) IS NOT NULL AS "hasChallenge",
             (SELECT 1 FROM paid_payments WHERE account_id = ${accountId} ORDER BY id DESC LIMIT 1) IS NOT NULL AS "hasPaidRequest"
      FROM (SELECT count(*) FILTER (WHERE status = 'ready')::int AS ready, count(*)::int AS total
            FROM nodes WHERE account_id = ${accountId} AND deleted_at IS NULL) n`,
  ])
  if (!things) throw new Error('a count without a row')
  const { ready, total, hasKey, hasChallenge, hasPaidRequest } = things
  const hourly = hours.slice(-24)
  const days = new Map(hours.map(({ at }) => [at - (at % DAY), 0]))
  for (const { at, sat } of hours) days.set(at - (at % DAY), (days.get(at - (at % DAY)) ?? 0) + sat)
  const daily = [...days].map(([at, sat]) => ({ at, sat }))
  return {
    nodes: { ready, total },
    // Sums of the points: a number beside a chart that shows another one is a fault to whoever adds it up.
    received: { last24hSat: sumOf(hourly), last7dSat: sumOf(daily), hourly, daily },
    funnel,
    checklist: { hasNode: total > 0, hasKey, hasChallenge, hasPaidRequest },
  }
}

const sumOf = (points: Point[]): number => points.reduce((sum, { sat }) => sum + sat, 0)

/** The hours of today and the six days before it, of UTC; the last one has just begun, and one in which nothing came is there as zero. */
export async function receivedByHour(sql: Sql, accountId: string): Promise<Point[]> {
  return sql<Point[]>`
    WITH start AS (SELECT date_trunc('day', now(), 'UTC') - ${DAYS - 1} * interval '1 day' AS at),
    sums AS (
      SELECT date_trunc('hour', settled_at, 'UTC') AS at, sum(amount_sat) AS sat FROM gateway_payments
      WHERE account_id = ${accountId} AND settled_at >= (SELECT at FROM start) GROUP BY 1
    )
    SELECT extract(epoch FROM hour.at)::bigint AS at, coalesce(sums.sat, 0)::bigint AS sat
    FROM start, generate_series(start.at, now(), interval '1 hour') AS hour (at)
    LEFT JOIN sums ON sums.at = hour.at ORDER BY 1`
}

/**
 * An id begins with the time it was made at, so what was issued in these days is one range of ids, which the index alone can count, and
 * so is what was paid: a challenge lives for minutes, so nothing is settled a day after it was made.
 */
export async function funnelOf(sql: Sql, accountId: string): Promise<OverviewRow['funnel']> {
  const sinceDays = (days: number): string => newId('pay', Date.now() - days * DAY * 1000)
  const [row] = await sql<OverviewRow['funnel'][]>`
    SELECT (SELECT count(*) FROM gateway_payments WHERE account_id = ${accountId} AND id >= ${sinceDays(DAYS)})::int AS issued,
           s.settled, s.paid
    FROM (SELECT count(*)::int AS settled, count(paid.id)::int AS paid
          FROM gateway_payments LEFT JOIN (
            SELECT id FROM paid_payments WHERE account_id = ${accountId} AND id >= ${sinceDays(DAYS + 1)}) paid USING (id)
          WHERE account_id = ${accountId} AND settled_at >= now() - ${DAYS} * interval '1 day') s`
  return row ?? { issued: 0, settled: 0, paid: 0 }
}

/** Two of these that differ: something has changed in between. */
export type Fingerprint = { nodes: string; payments: string; activity: string }

/**
 * Cheap enough for every second. Not the highest ids alone: a row whose transaction took longer appears below one that was there
 * before, and nobody would be told of it. So it is the last few, and of payments also what became of them.
 */
export async function fingerprintOf(sql: Sql, accountId: string): Promise<Fingerprint> {
  const [row] = await sql<Fingerprint[]>`
    SELECT (SELECT count(*) || ' ' || coalesce(sum(hashtextextended(concat_ws(' ', id, name, status, operation, update_status,
                     extract(epoch FROM updated_at)), 0)), 0)
              FROM nodes WHERE account_id = ${accountId} AND deleted_at IS NULL) AS nodes,
           (SELECT coalesce(md5(string_agg(concat_ws(' ', id, settled_at IS NULL), ',')), '')
              FROM (SELECT id, settled_at FROM gateway_payments WHERE account_id = ${accountId} ORDER BY id DESC LIMIT ${LAST}) p)
             || ' ' || (SELECT coalesce(md5(string_agg(log_id::text, ',')), '')
              FROM (SELECT log_id FROM paid_payments WHERE account_id = ${accountId} ORDER BY log_id DESC LIMIT ${LAST}) p)
             || ' ' || coalesce(a.payments, '') AS payments,
           coalesce(a.everything, '') AS activity
    FROM (SELECT md5(string_agg(id::text, ',')) AS everything,
                 md5(string_agg(id::text, ',') FILTER (WHERE action LIKE 'payment.%')) AS payments
          FROM (SELECT id, action FROM activity_log WHERE account_id = ${accountId} ORDER BY id DESC LIMIT ${LAST}) last) a`
  return row ?? { nodes: '', payments: '', activity: '' }
}

const LAST = 50
