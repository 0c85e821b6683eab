import type { Sql } from '../db.ts'
import type { Attempt, DeliveryStatus } from '../events/deliveries.ts'

/** An event of a payment, and its way to each webhook. */
export type PaymentEvent = {
  id: string
  type: string
  createdAt: number
  /** Why the delivery failed, if the shop gave a reason. */
  reason: string | null
  deliveries: {
    webhookId: string
    url: string
    status: DeliveryStatus
    nextAttemptAt: number | null
    attempts: Attempt[]
  }[]
}

/** More than a payment can have, even if it was released as often as `MOST_RELEASES` allows. */
const MOST_EVENTS = 100

/** The newest events of the payment that are still kept, oldest first. */
export async function eventsOfPayment(sql: Sql, accountId: string, paymentId: string): Promise<PaymentEvent[]> {
  const newestFirst = await sql<PaymentEvent[]>`
    SELECT e.id, e.type, unix_seconds(e.at) AS "createdAt", e.data ->> 'reason' AS reason,
           coalesce((SELECT jsonb_agg(jsonb_build_object('webhookId', w.id, 'url', w.url, 'status', d.status,
                                                         'nextAttemptAt', unix_seconds(d.next_at), 'attempts', d.attempts) ORDER BY w.id)
                     FROM webhooks w JOIN webhook_deliveries d ON d.webhook_id = w.id AND d.seq = e.seq
                     WHERE w.account_id = ${accountId} AND w.deleted_at IS NULL), '[]') AS deliveries
    FROM (SELECT * FROM event_log WHERE payment_id = ${paymentId} OFFSET 0) e
    WHERE e.account_id = ${accountId} ORDER BY e.seq DESC LIMIT ${MOST_EVENTS}`
  return newestFirst.reverse()
}

/** Who created a payment: an API key, also a revoked one, or a person. Undefined: no such key or person in this account. */
export async function creatorName(sql: Sql, accountId: string, id: string): Promise<string | undefined> {
  const [row] = await sql<{ name: string }[]>`
    SELECT name FROM api_keys WHERE id = ${id} AND account_id = ${accountId}
    UNION ALL SELECT email FROM people WHERE id = ${id} AND account_id = ${accountId}`
  return row?.name
}
