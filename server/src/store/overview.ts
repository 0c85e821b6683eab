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

/** Each statement reads one range of one index, and so costs what happened lately, not what ever happened. */
export async function overviewOf(sql: Sql, accountId: string): Promise<OverviewRow> {
  const [hourly, daily, funnel, [things]] = await Promise.all([
    received(sql, accountId, 'hour', 24),
    received(sql, accountId, 'day', DAYS),
    funnelOf(sql, accountId),
    sql<{ ready: number; total: number; hasKey: boolean; hasChallenge: boolean; hasPaidRequest: boolean }[]>`
      SELECT n.ready, n.total,
             EXISTS (SELECT 1 FROM api_keys WHERE account_id = ${accountId} AND revoked_at IS NULL) AS "hasKey",
             EXISTS (SELECT 1 FROM gateway_payments WHERE account_id = ${accountId}) AS "hasChallenge",
             EXISTS (SELECT 1 FROM gateway_payments WHERE account_id = ${accountId} AND settled_at IS NOT NULL
                       AND paid_at IS NOT NULL) AS "hasPaidRequest"
      FROM (SELECT count(*) FILTER (WHERE status = 'ready')::int AS ready, count(*)::int AS total
            FROM nodes WHERE account_id = ${accountId} AND deleted_at IS NULL) n`,
  ])
  if (!things) throw new Error('a count without a row')
  const { ready, total, hasKey, hasChallenge, hasPaidRequest } = things
  return {
    nodes: { ready, total },
    // Sums of the points: a number beside a chart that shows another one is a fault to whoever adds it up.
    received: { last24hSat: sumOf(hourly), last7dSat: sumOf(daily), hourly, daily },
    funnel,
    checklist: { hasNode: total > 0, hasKey, hasChallenge, hasPaidRequest },
  }
}

const sumOf = (points: Point[]): number => points.reduce((sum, { sat }) => sum + sat, 0)

/** So many whole hours or days (of UTC), the last of which has just begun; one in which nothing came is there too, as zero. */
export async function received(sql: Sql, accountId: string, unit: 'hour' | 'day', count: number): Promise<Point[]> {
  return sql<Point[]>`
    WITH start AS (SELECT date_trunc(${unit}, now(), 'UTC') - ${count - 1} * ${`1 ${unit}`}::interval AS at),
    sums AS (
      SELECT date_trunc(${unit}, settled_at, 'UTC') AS at, sum(amount_sat) AS sat FROM gateway_payments
      WHERE account_id = ${accountId} AND settled_at >= (SELECT at FROM start) GROUP BY 1
    )
    SELECT extract(epoch FROM point.at)::bigint AS at, coalesce(sums.sat, 0)::bigint AS sat
    FROM start, generate_series(start.at, start.at + ${count - 1} * ${`1 ${unit}`}::interval, ${`1 ${unit}`}::interval) AS point (at)
    LEFT JOIN sums ON sums.at = point.at ORDER BY 1`
}

/** Of the challenges issued in these days. An id begins with the time it was made at, so they are one range of ids. */
export async function funnelOf(sql: Sql, accountId: string): Promise<OverviewRow['funnel']> {
  const since = newId('pay', Date.now() - DAYS * 86_400_000)
  const [row] = await sql<OverviewRow['funnel'][]>`
    SELECT count(*)::int AS issued, count(settled_at)::int AS settled, count(paid_at)::int AS paid
    FROM gateway_payments WHERE account_id = ${accountId} AND id >= ${since}`
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
           (SELECT coalesce(md5(string_agg(concat_ws(' ', id, settled_at IS NULL, paid_at IS NULL), ',')), '')
              FROM (SELECT id, settled_at, paid_at FROM gateway_payments WHERE account_id = ${accountId}
                    ORDER BY id DESC LIMIT ${LAST}) p) || ' ' || coalesce(a.payments, '') AS payments,
           coalesce(a.everything, '') AS activity
    FROM (SELECT md5(string_agg(id::text, ',')) AS everything,
                 md5(string_agg(id::text, ',') FILTER (WHERE action LIKE 'payment.%')) AS payments
          FROM (SELECT id, action FROM activity WHERE account_id = ${accountId} ORDER BY id DESC LIMIT ${LAST}) last) a`
  return row ?? { nodes: '', payments: '', activity: '' }
}

const LAST = 50
