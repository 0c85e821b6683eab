import { idsFrom } from '../platform/ids.ts'
import type { Sql } from './db.ts'
import { FIRST_RUN_KEY } from './keys.ts'
import { isSilent } from './nodes/nodes.ts'
import { countFailedDeliveries, countSettled, listSettled, type ShownPayment } from './payments/settled.ts'

export type OverviewRow = {
  /** `ready` excludes nodes that did not respond to the last check. `starting` includes those being set up. */
  nodes: { ready: number; silent: number; starting: number; stopped: number; failed: number; total: number }
  recent: ShownPayment[]
  /**
   * Payments of this period whose customers did not come back or whose delivery failed; webhooks that fail or were disabled
   * because they failed.
   */
  attention: { unclaimedPayments: number; failedDeliveries: number; failingWebhooks: number; disabledWebhooks: number }
  funnel: { issued: number; settled: number; paid: number }
  checklist: { hasNode: boolean; hasKey: boolean; hasChallenge: boolean; hasPaidRequest: boolean }
}

const DAYS = 7
/** Leaves room for a period of seven days that begins at midnight in the reader's time zone and includes a change of the clocks. */
const MOST_DAYS = 8
const RECENT = 6
const DAY_SECONDS = 86_400

type Counts = OverviewRow['nodes'] &
  Pick<OverviewRow['attention'], 'failingWebhooks' | 'disabledWebhooks'> & {
    hasKey: boolean
    hasChallenge: boolean
    hasPaidRequest: boolean
  }

/**
 * Counts payments since `from`, in Unix seconds. Each statement reads one range of one index, so its cost depends on recent activity, not
 * on the whole history.
 */
export async function overviewOf(sql: Sql, accountId: string, from?: number): Promise<OverviewRow> {
  const now = Math.floor(Date.now() / 1000)
  const since = Math.max(from ?? now - DAYS * DAY_SECONDS, now - MOST_DAYS * DAY_SECONDS)
  const [issued, { settled, paid, unclaimed }, recent, failedDeliveries, [counts]] = await Promise.all([
    countIssued(sql, accountId, since),
    countSettled(sql, accountId, since),
    listSettled(sql, accountId, RECENT),
    countFailedDeliveries(sql, accountId, since),
    // ORDER BY makes PostgreSQL use an index: without it, finding any one row may scan the whole table, past the rows of other accounts.
    sql<Counts[]>`
      SELECT n.*, w.*,
             EXISTS (SELECT 1 FROM api_keys
                     WHERE account_id = ${accountId} AND revoked_at IS NULL AND name <> ${FIRST_RUN_KEY}) AS "hasKey",
             (SELECT 1 FROM gateway_payments WHERE account_id = ${accountId} ORDER BY id DESC LIMIT 1) IS NOT NULL AS "hasChallenge",
             (SELECT 1 FROM paid_payments WHERE account_id = ${accountId} ORDER BY id DESC LIMIT 1) IS NOT NULL AS "hasPaidRequest"
      FROM (SELECT count(*) FILTER (WHERE status = 'ready' AND NOT ${isSilent(sql)})::int AS ready,
                   count(*) FILTER (WHERE ${isSilent(sql)})::int AS silent,
                   count(*) FILTER (WHERE status = 'provisioning' OR (status = 'stopped' AND operation = 'start')
                                          OR (status = 'failed' AND operation IS NOT NULL))::int AS starting,
                   count(*) FILTER (WHERE status = 'stopped' AND operation IS DISTINCT FROM 'start')::int AS stopped,
                   count(*) FILTER (WHERE status = 'failed' AND operation IS NULL)::int AS failed, count(*)::int AS total
            FROM nodes WHERE account_id = ${accountId} AND deleted_at IS NULL) n,
           (SELECT count(*) FILTER (WHERE enabled AND failing_since IS NOT NULL)::int AS "failingWebhooks",
                   count(*) FILTER (WHERE NOT enabled AND disabled_reason IS NOT NULL)::int AS "disabledWebhooks"
            FROM webhooks WHERE account_id = ${accountId} AND deleted_at IS NULL) w`,
  ])
  if (!counts) throw new Error('a count returned no row')
  const { hasKey, hasChallenge, hasPaidRequest, failingWebhooks, disabledWebhooks, ...nodes } = counts
  return {
    nodes,
    funnel: { issued, settled, paid },
    recent,
    attention: { unclaimedPayments: unclaimed, failedDeliveries, failingWebhooks, disabledWebhooks },
    checklist: { hasNode: nodes.total > 0, hasKey, hasChallenge, hasPaidRequest },
  }
}

/**
 * An id begins with its creation time, so the payments issued since a given time are one range of ids, which an index-only scan can count.
 * Challenges that have been removed since are included in hourly counts.
 */
export async function countIssued(sql: Sql, accountId: string, from: number): Promise<number> {
  const [row] = await sql<{ issued: number }[]>`
    SELECT ((SELECT count(*) FROM gateway_payments WHERE account_id = ${accountId} AND id >= ${idsFrom('pay', from)})
            + (SELECT coalesce(sum(count), 0) FROM removed_challenges
               WHERE account_id = ${accountId} AND hour >= to_timestamp(${from})))::int AS issued`
  return row?.issued ?? 0
}
