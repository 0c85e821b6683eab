import type { Database, Sql } from '../db.ts'
import { DELIVERIES_DUE, isWanted, type SigningSecrets, signingSecrets } from './webhooks.ts'

/** Attempts at once to one webhook, from all processes. */
const AT_ONCE = 4
/** An attempt may take until its timeout, and many of them would leave no room for webhooks that work. */
const AT_ONCE_WHILE_FAILING = 1
/** The key of the advisory lock under which attempts are counted and begun. */
const CLAIM_LOCK = 8_402_017
const KEPT_ATTEMPTS = 20

export type DeliveryStatus = 'pending' | 'delivered' | 'failed'

/** An attempt that only this process may make until the lease ends. */
export type ClaimedDelivery = SigningSecrets & {
  webhookId: string
  accountId: string
  seq: number
  epoch: number
  /** How many attempts of the schedule were made before. */
  tries: number
  url: string
  nowSeconds: number
  event: { id: string; type: string; createdAt: number; data: string }
}

/**
 * Webhooks that have deliveries to make, and how many attempts may begin now. The recursion steps from one webhook to the next in
 * the index, so that it does not read every waiting delivery.
 */
const slots = (sql: Sql) => sql`
  waiting (webhook_id) AS (
    (SELECT webhook_id FROM webhook_deliveries WHERE next_at IS NOT NULL ORDER BY webhook_id LIMIT 1)
    UNION ALL
    SELECT (SELECT d.webhook_id FROM webhook_deliveries d WHERE d.next_at IS NOT NULL AND d.webhook_id > waiting.webhook_id
            ORDER BY d.webhook_id LIMIT 1)
    FROM waiting WHERE waiting.webhook_id IS NOT NULL
  ), slots AS (
    SELECT w.id, CASE WHEN w.failing_since IS NULL THEN ${AT_ONCE}::int ELSE ${AT_ONCE_WHILE_FAILING}::int END
      - (SELECT count(*) FROM webhook_deliveries WHERE webhook_id = w.id AND lease_until > now()) AS free
    FROM waiting JOIN webhooks w ON w.id = waiting.webhook_id WHERE w.enabled
  )`
const isUnleased = (sql: Sql) => sql`(d.lease_until IS NULL OR d.lease_until <= now())`

/**
 * How long until the next attempt may begin: 0 if one may now, null if none is waiting, or if all must wait for running attempts.
 */
export async function nextAttemptInMs(sql: Sql): Promise<number | null> {
  // A separate statement, because PostgreSQL plans the next one again each time, and usually nothing is waiting.
  const waiting = await sql`SELECT 1 FROM webhook_deliveries WHERE next_at IS NOT NULL LIMIT 1`
  if (waiting.length === 0) return null
  const [row] = await sql<{ ms: number }[]>`
    WITH RECURSIVE ${slots(sql)}
    SELECT greatest(0, ceil(extract(epoch FROM min(first.next_at) - now()) * 1000))::float8 AS ms
    FROM slots CROSS JOIN LATERAL (
      SELECT next_at FROM webhook_deliveries d WHERE webhook_id = slots.id AND next_at IS NOT NULL AND ${isUnleased(sql)}
      ORDER BY next_at, seq LIMIT 1) first
    WHERE slots.free > 0 HAVING count(*) > 0`
  return row?.ms ?? null
}

/**
 * Leases deliveries that are due. One process at a time counts what is in flight and adds to it, so the limit per webhook holds for all
 * processes together.
 */
export async function claimDeliveries(database: Database, limit: number, leaseSeconds: number): Promise<ClaimedDelivery[]> {
  type Row = Omit<ClaimedDelivery, 'event'> & { id: string; type: string; createdAt: number; data: string }
  const rows = await database.begin(async (sql) => {
    // A separate statement: the next one must see what the previous holder of the lock wrote.
    await sql`SELECT pg_advisory_xact_lock(${CLAIM_LOCK})`
    return sql<Row[]>`
      WITH RECURSIVE ${slots(sql)}, due AS (
        SELECT d.webhook_id, d.seq FROM slots CROSS JOIN LATERAL (
          SELECT webhook_id, seq, next_at FROM webhook_deliveries d WHERE webhook_id = slots.id AND next_at <= now() AND ${isUnleased(sql)}
          ORDER BY next_at, seq LIMIT greatest(0, slots.free) FOR UPDATE SKIP LOCKED) d
        ORDER BY d.next_at LIMIT ${limit}
      ), leased AS (
        UPDATE webhook_deliveries d SET lease_until = now() + ${leaseSeconds} * interval '1 second', lease_epoch = d.lease_epoch + 1
        FROM due WHERE d.webhook_id = due.webhook_id AND d.seq = due.seq
        RETURNING d.webhook_id, d.seq, d.lease_epoch, d.tries
      )
      SELECT w.id AS "webhookId", w.account_id AS "accountId", l.seq, l.lease_epoch AS epoch, l.tries, w.url, ${signingSecrets(sql)},
             unix_seconds(now()) AS "nowSeconds", e.id, e.type, unix_seconds(e.at) AS "createdAt", e.data::text AS data
      FROM leased l JOIN webhooks w ON w.id = l.webhook_id JOIN events e ON e.account_id = w.account_id AND e.seq = l.seq`
  })
  return rows.map(({ id, type, createdAt, data, ...row }) => ({ ...row, event: { id, type, createdAt, data } }))
}

export type Attempt = {
  /** Unix seconds. */
  at: number
  /** Null if there was no response. */
  status: number | null
  durationMs: number
  /** The beginning of the response. */
  response: string | null
  error: string | null
}

const withAttempt = (sql: Sql, attempt: Attempt) => sql`
  tries = d.tries + 1, lease_until = NULL,
  attempts = CASE WHEN jsonb_array_length(d.attempts) < ${KEPT_ATTEMPTS} THEN d.attempts ELSE d.attempts - 0 END || ${sql.json([attempt])}::jsonb`
const isHeld = (sql: Sql, { webhookId, seq, epoch }: ClaimedDelivery) => sql`
  d.webhook_id = ${webhookId} AND d.seq = ${seq} AND d.lease_epoch = ${epoch}`

/** Writes nothing if the lease was lost. The webhook's own row is written at most once a second. */
export async function recordSuccess(sql: Sql, claimed: ClaimedDelivery, attempt: Attempt): Promise<void> {
  await sql`
    WITH recorded AS (
      UPDATE webhook_deliveries d SET status = 'delivered', next_at = NULL, ${withAttempt(sql, attempt)}
      WHERE ${isHeld(sql, claimed)} RETURNING webhook_id
    )
    UPDATE webhooks SET last_success_at = now(), failing_since = NULL
    WHERE id IN (SELECT webhook_id FROM recorded) AND url = ${claimed.url}
      AND (last_success_at IS NULL OR last_success_at < now() - interval '1 second' OR failing_since IS NOT NULL)`
}

export type Failure = {
  /** Null: that was the last attempt. */
  retryInSeconds: number | null
  /** The response was 410 (C58). */
  isGone: boolean
  /** The webhook is disabled once every attempt has failed for this long. */
  disableAfterSeconds: number
}

/** Writes nothing if the lease was lost. Returns whether the webhook was disabled. An attempt to a former URL does not count. */
export async function recordFailure(
  sql: Sql,
  claimed: ClaimedDelivery,
  attempt: Attempt,
  { retryInSeconds, isGone, disableAfterSeconds }: Failure,
): Promise<boolean> {
  const rows = await sql`
    WITH recorded AS (
      UPDATE webhook_deliveries d SET ${withAttempt(sql, attempt)},
        status = ${retryInSeconds === null ? 'failed' : 'pending'}, next_at = now() + ${retryInSeconds}::float8 * interval '1 second'
      WHERE ${isHeld(sql, claimed)} RETURNING webhook_id
    ), blamed AS (
      SELECT w.id, ${isGone} OR w.failing_since <= now() - ${disableAfterSeconds} * interval '1 second' AS is_over
      FROM webhooks w JOIN recorded ON recorded.webhook_id = w.id WHERE w.enabled AND w.url = ${claimed.url}
    ), changed AS (
      UPDATE webhooks w SET failing_since = coalesce(w.failing_since, now()), enabled = b.is_over IS NOT TRUE,
        disabled_reason = CASE WHEN b.is_over THEN ${isGone ? 'gone' : 'failing'} END
      FROM blamed b WHERE w.id = b.id AND w.enabled AND (w.failing_since IS NULL OR b.is_over)
      RETURNING w.id, w.account_id, w.enabled, w.disabled_reason
    )
    INSERT INTO activity (account_id, actor, action, target, detail)
    SELECT account_id, 'system', 'webhook.disabled', id, jsonb_build_object('reason', disabled_reason) FROM changed WHERE NOT enabled
    RETURNING target`
  return rows.length > 0
}

export type DeliveryRow = {
  seq: number
  eventId: string
  type: string
  status: DeliveryStatus
  createdAt: number
  nextAttemptAt: number | null
  attempts: Attempt[]
}

const shown = (sql: Sql) => sql`
  d.seq, e.id AS "eventId", e.type, d.status, unix_seconds(d.created_at) AS "createdAt", unix_seconds(d.next_at) AS "nextAttemptAt", d.attempts`

/** Newest event first; with `before`, only older ones. */
export async function listDeliveries(
  sql: Sql,
  { accountId, webhookId }: { accountId: string; webhookId: string },
  { status, before, limit }: { status?: DeliveryStatus | undefined; before?: number | undefined; limit: number },
): Promise<DeliveryRow[]> {
  return sql<DeliveryRow[]>`
    SELECT ${shown(sql)} FROM webhook_deliveries d JOIN events e ON e.account_id = ${accountId} AND e.seq = d.seq
    WHERE d.webhook_id = ${webhookId} ${status === undefined ? sql`` : sql`AND d.status = ${status}`}
      ${before === undefined ? sql`` : sql`AND d.seq < ${before}`}
    ORDER BY d.seq DESC LIMIT ${limit}`
}

/** Due now, and the schedule starts again. The result of an attempt that is being made no longer counts. */
const againNow = (sql: Sql) => sql`
  status = 'pending', next_at = now(), tries = 0, lease_until = NULL, lease_epoch = d.lease_epoch + 1`

export async function redeliver(
  sql: Sql,
  { accountId, webhookId }: { accountId: string; webhookId: string },
  seq: number,
): Promise<DeliveryRow | undefined> {
  const [row] = await sql<DeliveryRow[]>`
    WITH d AS (
      UPDATE webhook_deliveries d SET ${againNow(sql)} WHERE webhook_id = ${webhookId} AND seq = ${seq} RETURNING d.*
    ), told AS MATERIALIZED (SELECT count(pg_notify(${DELIVERIES_DUE}, '')) FROM d)
    SELECT ${shown(sql)} FROM told, d JOIN events e ON e.account_id = ${accountId} AND e.seq = d.seq`
  return row
}

/** Delivers again what happened in this period; nothing if that would be more than `limit` events. */
export async function replay(
  sql: Sql,
  { accountId, webhookId }: { accountId: string; webhookId: string },
  { from, to, types }: { from: number; to: number; types: string[] | null },
  limit: number,
): Promise<number | 'too many'> {
  const [row] = await sql<[{ found: number }]>`
    WITH found AS MATERIALIZED (
      SELECT e.seq FROM webhooks w JOIN events e ON e.account_id = w.account_id
      WHERE w.id = ${webhookId} AND w.account_id = ${accountId} AND w.deleted_at IS NULL AND ${isWanted(sql)}
        AND e.at >= to_timestamp(${from}) AND e.at < to_timestamp(${to})
        AND (${types}::text[] IS NULL OR e.type = ANY (${types}) OR split_part(e.type, '.', 1) || '.*' = ANY (${types}))
      LIMIT ${limit} + 1
    ), added AS (
      INSERT INTO webhook_deliveries AS d (webhook_id, seq)
      SELECT ${webhookId}, seq FROM found WHERE (SELECT count(*) FROM found) <= ${limit} ORDER BY seq
      ON CONFLICT (webhook_id, seq) DO UPDATE SET ${againNow(sql)}
    ), told AS MATERIALIZED (SELECT pg_notify(${DELIVERIES_DUE}, ''))
    SELECT (SELECT count(*)::int FROM found) AS found FROM told`
  return row.found > limit ? 'too many' : row.found
}

/** Calls `onDue` when there may be attempts to make. */
export function listenForDeliveries(database: Database, onDue: () => void): () => void {
  return database.listen(DELIVERIES_DUE, { onNotify: onDue, onStart: onDue })
}

/** Deliveries of enabled webhooks that have not arrived yet, and how long ago the first of them was added; 0 if there are none. */
export async function countWaiting(sql: Sql): Promise<{ count: number; oldestSeconds: number }> {
  const [row] = await sql<[{ count: number; oldestSeconds: number }]>`
    SELECT count(*)::int AS count, coalesce(extract(epoch FROM now() - min(d.created_at)), 0)::float8 AS "oldestSeconds"
    FROM webhook_deliveries d JOIN webhooks w ON w.id = d.webhook_id WHERE d.next_at IS NOT NULL AND w.enabled`
  return row
}
