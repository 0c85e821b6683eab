import type { Sql } from '../db.ts'
import { DELIVERIES_DUE, isWanted } from './webhooks.ts'

/** Notifies every process that an account has new events. */
export const EVENTS_ADDED = 'boltyard_events_added'

/** The key of the advisory lock that lets one process at a time number events, or remove old ones. */
export const SEQUENCER_LOCK = 8_402_016

export type Sequenced = { count: number; hasMore: boolean }

/**
 * Moves up to `limit` events from the outbox to the feeds of their accounts. It takes only those whose transactions
 * began before every transaction that is still open: no event can appear before them later. One statement, so there is nothing to repair
 * after a crash. While another process numbers events, it moves none.
 *
 * Each event also gets its deliveries, one for every webhook that wants it.
 *
 * Events of an account that are moved together share the random part of their ids: a random number costs a third of the whole move.
 */
export async function sequenceEvents(sql: Sql, limit: number): Promise<Sequenced> {
  const [row] = await sql<Sequenced[]>`
    WITH due AS MATERIALIZED (
      SELECT ctid FROM event_outbox
      WHERE xid < pg_snapshot_xmin(pg_current_snapshot()) AND (SELECT pg_try_advisory_xact_lock(${SEQUENCER_LOCK}))
      ORDER BY xid, id LIMIT ${limit}
    ), taken AS (
      DELETE FROM event_outbox WHERE ctid = ANY (ARRAY(SELECT ctid FROM due)) RETURNING *
    ), counted AS (
      INSERT INTO event_counters AS c (account_id, last_seq) SELECT account_id, count(*) FROM taken GROUP BY 1 ORDER BY 1
      ON CONFLICT (account_id) DO UPDATE SET last_seq = c.last_seq + excluded.last_seq
      RETURNING account_id, last_seq, left(translate(gen_random_uuid()::text, '-', ''), 24) AS random
    ), numbered AS (
      SELECT taken.*, row_number() OVER (PARTITION BY account_id ORDER BY xid DESC, id DESC) - 1 AS followers FROM taken
    ), added AS (
      INSERT INTO event_log (account_id, seq, id, type, node_id, payment_id, at, data)
      SELECT n.account_id, c.last_seq - n.followers, 'evt_' || c.random || lpad(to_hex(n.followers), 8, '0'), n.type,
             CASE WHEN n.type LIKE 'node.%' THEN n.subject END, CASE WHEN n.type LIKE 'payment.%' THEN n.subject END, n.at, n.data
      FROM numbered n JOIN counted c ON c.account_id = n.account_id
      RETURNING account_id, seq, type, node_id, payment_id
    ), addressed AS (
      INSERT INTO webhook_deliveries (webhook_id, seq)
      SELECT w.id, e.seq FROM (
        SELECT account_id, seq, type, coalesce(node_id, (SELECT node_id FROM gateway_payments p WHERE p.id = payment_id)) AS node_id FROM added
      ) e JOIN webhooks w ON w.account_id = e.account_id AND w.enabled AND ${isWanted(sql)}
      RETURNING webhook_id
    ), wake AS MATERIALIZED (SELECT count(pg_notify(${DELIVERIES_DUE}, '')) FROM (SELECT FROM addressed LIMIT 1) a
    ), told AS MATERIALIZED (SELECT count(pg_notify(${EVENTS_ADDED}, account_id)) FROM counted)
    SELECT moved.count, (SELECT count(*) FROM (SELECT FROM event_outbox LIMIT ${limit} + 1) o) > moved.count AS "hasMore"
    FROM (SELECT count(*)::int AS count FROM taken) moved, told, wake`
  return row ?? { count: 0, hasMore: false }
}

/** Cheap, unlike `sequenceEvents`, which PostgreSQL has to plan even if there is nothing to move. */
export async function isOutboxEmpty(sql: Sql): Promise<boolean> {
  return (await sql`SELECT 1 FROM event_outbox LIMIT 1`).length === 0
}

/** How long the oldest event has been waiting for its number; 0 if none is. */
export async function outboxLagSeconds(sql: Sql): Promise<number> {
  const [row] = await sql<{ seconds: number }[]>`
    SELECT coalesce(extract(epoch FROM clock_timestamp() - min(at)), 0)::float8 AS seconds FROM event_outbox`
  return row?.seconds ?? 0
}

/**
 * Transaction ids belong to a database server. Events that were moved here from another server, by a backup or a dump, can have
 * ids that this server has not reached yet, and would wait until it does. They come first, because they happened before the move.
 */
export async function adoptMovedEvents(sql: Sql): Promise<void> {
  await sql`UPDATE event_outbox SET xid = '0' WHERE xid >= pg_snapshot_xmax(pg_current_snapshot())`
}
