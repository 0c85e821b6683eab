import type { Sql } from '../db.ts'

/** 14 months: a page shows one of the last twelve months, and compares it with the month before. */
const FIRST_LIST_DAYS = 427
/** At least this long after a list was begun, the next one is begun if the balance has changed or the list was not finished. */
const LIST_AGAIN_SECONDS = 300
/** The balance may be the same although the node has received something: it has sent as much, or keeps it as fee credit. */
const LIST_EVERY_SECONDS = 3_600
/** If a list of a node is this late, the node may have received more than we know. */
const LATE_MINUTES = 15

/** A list that is being read, newest first: all that comes before `place`, and was received before `startedMs`, is recorded. */
export type UnfinishedList = {
  startedMs: number
  newestMs: number
  place: { fromMs: number; toMs?: number | undefined; offset: number }
}
/** `unfinished`: the list that the last turn did not finish. */
export type DueList = { nodeId: string; fromMs: number; unfinished: UnfinishedList | null }
export type Receipt = { paymentHash: string; amountSat: number; completedAtMs: number }

/**
 * Ready nodes of this host that are to list what they have received: each is taken by one caller. The balance is recorded before the node is
 * asked, so what it receives meanwhile makes another list due.
 */
export async function takeDueLists(sql: Sql, host: string, limit: number): Promise<DueList[]> {
  const again = sql`${LIST_AGAIN_SECONDS} * interval '1 second'`
  return sql<DueList[]>`
    INSERT INTO node_receipt_lists AS l (node_id, next_at, begun_at, balance_sat)
    SELECT n.id, now() + ${again}, now(), n.balance_sat FROM nodes n LEFT JOIN node_receipt_lists known ON known.node_id = n.id
    WHERE n.host = ${host} AND n.status = 'ready' AND n.deleted_at IS NULL
      AND (known.node_id IS NULL OR known.next_at <= now() OR
           (known.balance_sat IS DISTINCT FROM n.balance_sat AND coalesce(known.begun_at <= now() - ${again}, true)))
    ORDER BY known.next_at NULLS FIRST LIMIT ${limit}
    ON CONFLICT (node_id) DO UPDATE SET next_at = excluded.next_at, begun_at = excluded.begun_at, balance_sat = excluded.balance_sat
      WHERE l.next_at <= now() OR coalesce(l.begun_at <= now() - ${again}, true)
    RETURNING node_id AS "nodeId", unix_ms(coalesce(listed_until, now() - ${FIRST_LIST_DAYS} * interval '1 day')) AS "fromMs", unfinished`
}

/** Records what is neither a gateway payment nor a top-up, once. Returns the account if there was anything new. */
export async function recordReceipts(sql: Sql, nodeId: string, receipts: Receipt[]): Promise<string | undefined> {
  const [row] = await sql<{ accountId: string }[]>`
    WITH recorded AS (
      INSERT INTO node_receipts (node_id, payment_hash, account_id, amount_sat, received_at)
      SELECT n.id, r.hash, n.account_id, r.amount, to_timestamp(r.at / 1000.0)
      FROM nodes n, (SELECT decode("paymentHash", 'hex') AS hash, "amountSat" AS amount, "completedAtMs" AS at
                     FROM jsonb_to_recordset(${sql.json(receipts)}) AS r ("paymentHash" text, "amountSat" bigint, "completedAtMs" bigint)) r
      WHERE n.id = ${nodeId}
        AND NOT EXISTS (SELECT 1 FROM gateway_payments p WHERE p.node_id = ${nodeId} AND p.payment_hash = r.hash)
        AND NOT EXISTS (SELECT 1 FROM top_ups t WHERE t.payment_hash = r.hash)
      ON CONFLICT DO NOTHING RETURNING account_id
    )
    SELECT account_id AS "accountId" FROM recorded LIMIT 1`
  return row?.accountId
}

export async function keepList(sql: Sql, nodeId: string, unfinished: UnfinishedList): Promise<void> {
  await sql`UPDATE node_receipt_lists SET unfinished = ${sql.json(unfinished)} WHERE node_id = ${nodeId}`
}

/** If the list is not current, because it took several turns, the next one is due at once: it has what was received in the meantime. */
export async function finishList(sql: Sql, nodeId: string, untilMs: number, isCurrent: boolean): Promise<void> {
  const change = isCurrent
    ? sql`listed_at = now(), next_at = now() + ${LIST_EVERY_SECONDS} * interval '1 second'`
    : sql`next_at = now()`
  await sql`
    UPDATE node_receipt_lists SET ${change}, listed_until = to_timestamp(${untilMs} / 1000.0), unfinished = NULL WHERE node_id = ${nodeId}`
}

/** Nodes of the account, or this one, that may have received more than is recorded. One that is stopped receives nothing. */
export const unlistedNodes = (sql: Sql, accountId: string, nodeId: string | undefined) => sql`
  (SELECT count(*) FROM nodes n LEFT JOIN node_receipt_lists l ON l.node_id = n.id
   WHERE n.account_id = ${accountId} ${nodeId === undefined ? sql`` : sql`AND n.id = ${nodeId}`} AND n.deleted_at IS NULL
     AND n.status <> 'provisioning' AND (l.listed_at IS NULL OR
       (n.status = 'ready' AND l.listed_at < greatest(l.begun_at, now() - ${LIST_EVERY_SECONDS} * interval '1 second')
                                             - ${LATE_MINUTES} * interval '1 minute')))::int`
