import type { Database, Sql } from '../db.ts'
import { EVENTS_ADDED, SEQUENCER_LOCK } from './outbox.ts'

export type EventRow = {
  seq: number
  id: string
  type: string
  createdAt: number
  data: Record<string, unknown>
}

export type FeedFilter = { types?: readonly string[]; nodeId?: string }

export type FeedPage = {
  events: EventRow[]
  /** The number of the account's last event, as of this page. */
  lastSeq: number
  /** The highest event number that retention has removed. */
  removedSeq: number
  /** Every matching event up to this number is in this page, or in one before it. */
  readUpTo: number
}

/** Events that a page looks through at most, so that a filter that matches few of them does not read the whole feed. */
const MOST_SCANNED = 20_000
/** Fewer with a filter by node, because the node of each payment has to be looked up. */
const MOST_SCANNED_FOR_NODE = 2_000

/** Events after this number, oldest first; without a number, from the oldest that is kept. */
export async function readFeed(
  sql: Sql,
  accountId: string,
  { after, limit, types, nodeId }: FeedFilter & { after?: number | undefined; limit: number },
): Promise<FeedPage> {
  const mostScanned = nodeId === undefined ? MOST_SCANNED : MOST_SCANNED_FOR_NODE
  type Row = { lastSeq: number; removedSeq: number; after: number } & (EventRow | { seq: null })
  const rows = await sql<Row[]>`
    SELECT c.last_seq AS "lastSeq", c.removed_seq AS "removedSeq", c.after, e.seq, e.id, e.type, unix_seconds(e.at) AS "createdAt", e.data
    FROM (SELECT last_seq, removed_seq, coalesce(${after ?? null}::bigint, removed_seq) AS after FROM event_counters
          WHERE account_id = ${accountId}) c
    LEFT JOIN LATERAL (
      SELECT seq, id, type, at, data FROM events
      WHERE account_id = ${accountId} AND seq > c.after AND seq <= c.after + ${mostScanned}
        ${types === undefined ? sql`` : sql`AND type = ANY (${types as string[]})`} ${nodeId === undefined ? sql`` : sql`AND node_id = ${nodeId}`}
      ORDER BY seq LIMIT ${limit}) e ON true
    ORDER BY e.seq`
  const [first] = rows
  if (!first) return { events: [], lastSeq: 0, removedSeq: 0, readUpTo: 0 }
  const events = rows.filter((row): row is Row & EventRow => row.seq !== null)
  const lastEvent = events.at(-1)
  const readUpTo = lastEvent && events.length === limit ? lastEvent.seq : Math.min(first.lastSeq, first.after + mostScanned)
  return { events, lastSeq: first.lastSeq, removedSeq: first.removedSeq, readUpTo }
}

/** Calls `onAdded` with each account that has new events, and `onStart` when notifications may have been missed. */
export function listenForEvents(
  database: Database,
  { onAdded, onStart }: { onAdded: (accountId: string) => void; onStart: () => void },
): () => void {
  return database.listen(EVENTS_ADDED, { onNotify: onAdded, onStart })
}

/** Returns how many were removed; 0 also if events are being numbered at this moment, which locks the same counters. */
export async function removeOldEvents(sql: Sql, keptDays: number, limit: number): Promise<number> {
  const [row] = await sql<{ count: number }[]>`
    WITH old AS (
      SELECT account_id, seq FROM event_log WHERE at < now() - ${keptDays} * interval '1 day' AND (SELECT pg_try_advisory_xact_lock(${SEQUENCER_LOCK}))
      LIMIT ${limit}
    ), removed AS (
      DELETE FROM event_log e USING old WHERE e.account_id = old.account_id AND e.seq = old.seq RETURNING e.account_id, e.seq
    ), undeliverable AS (
      DELETE FROM webhook_deliveries d USING removed r, webhooks w WHERE w.account_id = r.account_id AND d.webhook_id = w.id AND d.seq = r.seq
    ), counted AS (
      UPDATE event_counters c SET removed_seq = greatest(c.removed_seq, r.seq)
      FROM (SELECT account_id, max(seq) AS seq FROM removed GROUP BY 1) r WHERE c.account_id = r.account_id
    )
    SELECT count(*)::int AS count FROM removed`
  return row?.count ?? 0
}
