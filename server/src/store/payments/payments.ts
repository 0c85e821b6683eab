import { newId } from '../../platform/ids.ts'
import type { Sql } from '../db.ts'
import { ASK_EVERY_SECONDS } from './invoices.ts'

export type Protocol = 'mpp' | 'l402'

export type NewPayment = {
  id: string
  accountId: string
  nodeId: string
  protocol: Protocol
  amountSat: number
  description: string
  resource: string | null
  challenge: string
  paymentHash: Buffer
  protocolKeyId: string
  /** L402 only. */
  tokenId: Buffer | null
  createdAtMs: number
  expiresAtSeconds: number
}

/** False: the node gave this hash before. */
export async function insertPayment(sql: Sql, payment: NewPayment): Promise<boolean> {
  const [row] = await sql`
    INSERT INTO gateway_payments (id, account_id, node_id, protocol, amount_sat, description, resource, challenge, payment_hash,
                                  protocol_key_id, token_id, created_at, expires_at, ask_at)
    VALUES (${payment.id}, ${payment.accountId}, ${payment.nodeId}, ${payment.protocol}, ${payment.amountSat}, ${payment.description},
            ${payment.resource}, ${payment.challenge}, ${payment.paymentHash}, ${payment.protocolKeyId}, ${payment.tokenId},
            to_timestamp(${payment.createdAtMs} / 1000.0), to_timestamp(${payment.expiresAtSeconds}),
            now() + ${ASK_EVERY_SECONDS} * interval '1 second')
    ON CONFLICT (node_id, payment_hash) DO NOTHING RETURNING 1`
  return row !== undefined
}

/** What was sold, where, and for how much. */
export type Terms = { nodeId: string; amountSat: number; description: string; resource: string | null }

/** Whether it was claimed; what was held for too long is not. */
export type DeliveryState = 'none' | 'held' | 'done'

/** All that a validation needs, with the database's time, in one statement; of fixed text, since building it each time takes longer than sending it. */
export type PaymentRow = Terms & {
  id: string
  protocol: Protocol
  challenge: string
  paymentHash: Buffer
  protocolKeyId: string
  tokenId: Buffer | null
  expiresAtMs: number
  isSettled: boolean
  isPaid: boolean
  /** MPP, once it is settled. */
  receipt: string | null
  delivery: DeliveryState
  /** Also by a claim that was held for too long, until another takes its place. */
  isClaimed: boolean
  /** Null unless it is held or done. */
  redeemedAt: number | null
  /** Of the last claim, also of one that was held for too long. */
  redeemRequestId: string | null
  /** Until it lapses; null unless it is held. */
  heldForMs: number | null
  /** In the order they were released. */
  releasedRequestIds: string[]
  nowMs: number
}

/** `IS TRUE`, here and below, hides the account from the planner: without good statistics it would read all of an account's payments. */
export async function findPayment(sql: Sql, accountId: string, id: string): Promise<PaymentRow | undefined> {
  const [row] = await sql<PaymentRow[]>`
    SELECT id, node_id AS "nodeId", protocol, amount_sat AS "amountSat", description, resource, challenge, payment_hash AS "paymentHash",
           protocol_key_id AS "protocolKeyId", token_id AS "tokenId", unix_ms(expires_at) AS "expiresAtMs",
           settled_at IS NOT NULL AS "isSettled", paid_at IS NOT NULL AS "isPaid", receipt,
           CASE WHEN redeemed_at IS NULL OR held_until <= now() THEN 'none' WHEN held_until IS NULL THEN 'done' ELSE 'held' END AS delivery,
           redeemed_at IS NOT NULL AS "isClaimed",
           CASE WHEN held_until IS NULL OR held_until > now() THEN unix_seconds(redeemed_at) END AS "redeemedAt",
           redeem_request_id AS "redeemRequestId",
           CASE WHEN held_until > now() THEN ceil(extract(epoch FROM held_until - now()) * 1000)::bigint END AS "heldForMs",
           coalesce(released_request_ids, '{}') AS "releasedRequestIds", unix_ms(now()) AS "nowMs"
    FROM gateway_payments LEFT JOIN paid_payments USING (account_id, id) WHERE id = ${id} AND (account_id = ${accountId}) IS TRUE`
  return row
}

/** What whoever paid is told. */
export type PaidRow = Pick<PaymentRow, 'id' | 'protocol' | 'receipt'>

export type ShownPayment = Terms & {
  id: string
  protocol: Protocol
  status: 'payment_required' | 'paid' | 'expired'
  createdAt: number
  expiresAt: number
  settledAt: number | null
  paidAt: number | null
  redeemedAt: number | null
  delivery: DeliveryState
}

const statusOf = (sql: Sql) => sql`
  CASE WHEN paid_at IS NOT NULL THEN 'paid' WHEN settled_at IS NULL AND expires_at <= now() THEN 'expired' ELSE 'payment_required' END`
const deliveryOf = (sql: Sql) => sql`
  CASE WHEN redeemed_at IS NULL OR held_until <= now() THEN 'none' WHEN held_until IS NULL THEN 'done' ELSE 'held' END`
const shown = (sql: Sql) => sql`
  id, protocol, ${statusOf(sql)} AS status,
  node_id AS "nodeId", amount_sat AS "amountSat", description, resource, unix_seconds(created_at) AS "createdAt",
  unix_seconds(expires_at) AS "expiresAt", unix_seconds(settled_at) AS "settledAt", unix_seconds(paid_at) AS "paidAt",
  CASE WHEN held_until IS NULL OR held_until > now() THEN unix_seconds(redeemed_at) END AS "redeemedAt",
  ${deliveryOf(sql)} AS delivery`

export async function findShownPayment(
  sql: Sql,
  accountId: string,
  id: string,
): Promise<(ShownPayment & { challenge: string }) | undefined> {
  const [row] = await sql<(ShownPayment & { challenge: string })[]>`
    SELECT ${shown(sql)}, challenge FROM gateway_payments LEFT JOIN paid_payments USING (account_id, id)
    WHERE id = ${id} AND (account_id = ${accountId}) IS TRUE`
  return row
}

/** As its status, but that what is settled and was never validated is apart: that money waits for its delivery. */
const listedAs = (sql: Sql) => sql`
  CASE WHEN paid_at IS NOT NULL THEN 'paid' WHEN settled_at IS NOT NULL THEN 'settled' WHEN expires_at <= now() THEN 'expired'
       ELSE 'payment_required' END`

export type PaymentFilter = {
  status?: ShownPayment['status'] | 'settled'
  delivery?: DeliveryState
  /** Only what the node received money for. */
  isSettled?: true
  nodeId?: string
  /** Only older ones than this. */
  before?: string
  limit: number
}

/** A challenge lives for five minutes at most, and an id begins with the time it was made at: what is open is among the newest, and no more is read. */
const HOUR_MS = 3_600_000

export async function listPayments(sql: Sql, accountId: string, filter: PaymentFilter): Promise<ShownPayment[]> {
  const { status, delivery, isSettled, nodeId, before, limit } = filter
  return sql<ShownPayment[]>`
    SELECT ${shown(sql)} FROM gateway_payments LEFT JOIN paid_payments USING (account_id, id)
    WHERE account_id = ${accountId} ${nodeId === undefined ? sql`` : sql`AND node_id = ${nodeId}`}
      ${status === 'payment_required' ? sql`AND id >= ${newId('pay', Date.now() - HOUR_MS)}` : sql``}
      ${before === undefined ? sql`` : sql`AND id < ${before}`} ${status === undefined ? sql`` : sql`AND ${listedAs(sql)} = ${status}`}
      ${delivery === undefined ? sql`` : sql`AND ${deliveryOf(sql)} = ${delivery}`} ${isSettled ? sql`AND settled_at IS NOT NULL` : sql``}
    ORDER BY id DESC LIMIT ${limit}`
}

/**
 * What a credential that proved itself says its payment is like. The whole challenge is not sent along: its id, which it begins with, is a
 * keyed hash of the rest.
 */
export type Proof = { challengeBeginning: string; paymentHash: Uint8Array }

/**
 * Of any number of callers exactly one turns the payment paid, and only if it is settled and the very one that was proved. Undefined:
 * another did, or it is not; which, the caller finds out by reading it. Every parameter and column costs, here: only what is not known
 * yet is asked for.
 */
export async function payProved(
  sql: Sql,
  { accountId, actor }: { accountId: string; actor: string },
  id: string,
  { challengeBeginning, paymentHash }: Proof,
): Promise<PaidRow | undefined> {
  const [row] = await sql<{ receipt: string }[]>`
    INSERT INTO paid_payments (account_id, id, actor)
    SELECT account_id, id, ${actor} FROM gateway_payments
    WHERE id = ${id} AND (account_id = ${accountId}) IS TRUE AND protocol = 'mpp' AND starts_with(challenge, ${challengeBeginning})
      AND payment_hash = ${paymentHash} AND settled_at IS NOT NULL
    ON CONFLICT DO NOTHING
    RETURNING (SELECT receipt FROM gateway_payments p WHERE p.id = paid_payments.id)`
  return row && { id, protocol: 'mpp', ...row }
}

/** The same for a payment whose credential was judged by hand. */
export async function markPaid(sql: Sql, id: string, actor: string): Promise<void> {
  await sql`
    INSERT INTO paid_payments (account_id, id, actor)
    SELECT account_id, id, ${actor} FROM gateway_payments WHERE id = ${id} AND settled_at IS NOT NULL
    ON CONFLICT DO NOTHING`
}

/**
 * One that the node now says was settled; undefined when it is none of ours, or known already. OFFSET 0 keeps the two conditions apart:
 * together they would also fit the index of all open ones.
 */
export async function findUnsettled(
  sql: Sql,
  nodeId: string,
  paymentHash: Buffer,
): Promise<{ id: string; protocol: Protocol; challenge: string; nowMs: number } | undefined> {
  const [row] = await sql<{ id: string; protocol: Protocol; challenge: string; nowMs: number }[]>`
    SELECT id, protocol, challenge, unix_ms(now()) AS "nowMs"
    FROM (SELECT * FROM gateway_payments WHERE node_id = ${nodeId} AND payment_hash = ${paymentHash} OFFSET 0) payment
    WHERE settled_at IS NULL`
  return row
}

/**
 * The node's word about one of its invoices, once: the first time and its receipt stay. What was earned is in the node from now on,
 * whatever happens before the next look at it. Returns whose it is; undefined: it was known already.
 */
export async function recordSettlement(
  sql: Sql,
  id: string,
  settledAtMs: number,
  receipt: string | null,
): Promise<string | undefined> {
  const [row] = await sql<{ accountId: string }[]>`
    WITH settled AS (
      UPDATE gateway_payments SET settled_at = to_timestamp(${settledAtMs} / 1000.0), receipt = ${receipt}, ask_at = NULL, unpaid_at = NULL
      WHERE id = ${id} AND settled_at IS NULL RETURNING id, account_id, node_id
    ), funded AS (
      UPDATE nodes SET has_funds = true, funded_at = now() WHERE id IN (SELECT node_id FROM settled)
    )
    INSERT INTO activity (account_id, actor, action, target) SELECT account_id, node_id, 'payment.settled', id FROM settled
    RETURNING account_id AS "accountId"`
  return row?.accountId
}

/**
 * Removes challenges that expired more than a day ago, if the node, when it was asked for the last time, an hour after the expiry or
 * later, has said that nobody paid. Gives how many.
 */
export async function removeUnpaidPayments(sql: Sql, limit: number): Promise<number> {
  const rows = await sql`
    WITH old AS (
      SELECT id FROM gateway_payments
      WHERE unpaid_at IS NOT NULL AND ask_at IS NULL AND settled_at IS NULL AND expires_at < now() - interval '1 day'
      ORDER BY expires_at LIMIT ${limit} FOR UPDATE SKIP LOCKED
    ), removed AS (
      DELETE FROM gateway_payments USING old WHERE gateway_payments.id = old.id AND settled_at IS NULL RETURNING account_id, created_at
    ), counted AS (
      INSERT INTO removed_challenges AS r (account_id, hour, count)
      SELECT account_id, date_trunc('hour', created_at, 'UTC'), count(*) FROM removed GROUP BY 1, 2 ORDER BY 1, 2
      ON CONFLICT (account_id, hour) DO UPDATE SET count = r.count + excluded.count
    )
    SELECT 1 FROM removed`
  return rows.length
}

export async function forgetRemovedPayments(sql: Sql): Promise<void> {
  await sql`DELETE FROM removed_challenges WHERE hour < now() - interval '8 days'`
}

/** How many of a node's challenges can still be paid, counted up to the most that it may have, and when the first of them ends. */
export async function countOpen(sql: Sql, nodeId: string, most: number): Promise<{ open: number; nextEndSeconds: number }> {
  const [row] = await sql<{ open: number; nextEndSeconds: number }[]>`
    SELECT count(*)::int AS open, coalesce(ceil(extract(epoch FROM min(expires_at) - now())), 0)::int AS "nextEndSeconds"
    FROM (SELECT expires_at FROM gateway_payments
          WHERE node_id = ${nodeId} AND settled_at IS NULL AND expires_at > now() ORDER BY expires_at LIMIT ${most}) open`
  return row ?? { open: 0, nextEndSeconds: 0 }
}
