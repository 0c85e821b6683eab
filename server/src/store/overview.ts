import { newId } from '../platform/ids.ts'
import type { Sql } from './db.ts'
import { FIRST_RUN_KEY } from './keys.ts'
import { isSilent } from './nodes/nodes.ts'

export type Point = { at: number; sat: number }
export type OverviewRow = {
  /** `ready` excludes nodes that did not respond to the last check. */
  nodes: { ready: number; silent: number; total: number }
  received: { now: number; quarterHours: Point[] }
  funnel: { issued: number; settled: number; paid: number }
  checklist: { hasNode: boolean; hasKey: boolean; hasChallenge: boolean; hasPaidRequest: boolean }
}

const DAYS = 7
const DAY = 86_400

/** Each statement reads one range of one index, so its cost depends on recent activity, not on the whole history. */
export async function overviewOf(sql: Sql, accountId: string): Promise<OverviewRow> {
  const [received, funnel, [things]] = await Promise.all([
    receivedLately(sql, accountId),
    funnelOf(sql, accountId),
    // ORDER BY makes PostgreSQL use an index: without it, finding any one row may scan the whole table, past the rows of other accounts.
    sql<{ ready: number; silent: number; total: number; hasKey: boolean; hasChallenge: boolean; hasPaidRequest: boolean }[]>`
      SELECT n.ready, n.silent, n.total,
             EXISTS (SELECT 1 FROM api_keys
                     WHERE account_id = ${accountId} AND revoked_at IS NULL AND name <> ${FIRST_RUN_KEY}) AS "hasKey",
             (SELECT 1 FROM gateway_payments WHERE account_id = ${accountId} ORDER BY id DESC LIMIT 1) IS NOT NULL AS "hasChallenge",
             (SELECT 1 FROM paid_payments WHERE account_id = ${accountId} ORDER BY id DESC LIMIT 1) IS NOT NULL AS "hasPaidRequest"
      FROM (SELECT count(*) FILTER (WHERE status = 'ready' AND NOT ${isSilent(sql)})::int AS ready,
                   count(*) FILTER (WHERE ${isSilent(sql)})::int AS silent, count(*)::int AS total
            FROM nodes WHERE account_id = ${accountId} AND deleted_at IS NULL) n`,
  ])
  if (!things) throw new Error('a count returned no row')
  const { ready, silent, total, hasKey, hasChallenge, hasPaidRequest } = things
  return {
    nodes: { ready, silent, total },
    received,
    funnel,
    checklist: { hasNode: total > 0, hasKey, hasChallenge, hasPaidRequest },
  }
}

/**
 * Non-empty quarter hours of the last eight days. The page groups them into days of the reader's time zone; all offsets are multiples of a
 * quarter hour. The reader's last seven days begin at most seven days and some hours ago.
 */
export async function receivedLately(sql: Sql, accountId: string): Promise<OverviewRow['received']> {
  const [row] = await sql<OverviewRow['received'][]>`
    WITH quarters AS (
      SELECT unix_seconds(date_bin('15 minutes', settled_at, to_timestamp(0))) AS at, sum(amount_sat) AS sat
      FROM gateway_payments
      WHERE account_id = ${accountId} AND settled_at >= now() - ${DAYS + 1} * interval '1 day' GROUP BY 1
    )
    SELECT unix_seconds(now()) AS now,
           coalesce((SELECT jsonb_agg(jsonb_build_object('at', at, 'sat', sat) ORDER BY at) FROM quarters), '[]') AS "quarterHours"`
  if (!row) throw new Error('a sum returned no row')
  return row
}

/**
 * An id begins with its creation time, so the payments issued in these days are one range of ids, which an index-only scan can count. So
 * are the paid ones: a challenge lives for minutes, so nothing is settled a day after its creation. Challenges that have been removed since
 * are included in hourly counts.
 */
export async function funnelOf(sql: Sql, accountId: string): Promise<OverviewRow['funnel']> {
  const sinceDays = (days: number): string => newId('pay', Date.now() - days * DAY * 1000)
  const [row] = await sql<OverviewRow['funnel'][]>`
    SELECT ((SELECT count(*) FROM gateway_payments WHERE account_id = ${accountId} AND id >= ${sinceDays(DAYS)})
            + (SELECT coalesce(sum(count), 0) FROM removed_challenges
               WHERE account_id = ${accountId} AND hour >= now() - ${DAYS} * interval '1 day'))::int AS issued,
           s.settled, s.paid
    FROM (SELECT count(*)::int AS settled, count(paid.id)::int AS paid
          FROM gateway_payments LEFT JOIN (
            SELECT id FROM paid_payments WHERE account_id = ${accountId} AND id >= ${sinceDays(DAYS + 1)}) paid USING (id)
          WHERE account_id = ${accountId} AND settled_at >= now() - ${DAYS} * interval '1 day') s`
  return row ?? { issued: 0, settled: 0, paid: 0 }
}
