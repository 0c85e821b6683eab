import { newId } from '../../platform/ids.ts'
import type { Sql } from '../db.ts'
import { ASK_EVERY_SECONDS } from './invoices.ts'

export type Protocol = 'mpp' | 'l402' | 'x402'

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
  /** The API key or the person. */
  createdBy: string
  expiresAtSeconds: number
}

/** False: the node has already used this payment hash. */
export async function insertPayment(sql: Sql, payment: NewPayment): Promise<boolean> {
  const [row] = await sql`
    INSERT INTO gateway_payments (id, account_id, node_id, protocol, amount_sat, description, resource, challenge, payment_hash,
                                  protocol_key_id, token_id, created_at, created_by, expires_at, ask_at)
    VALUES (${payment.id}, ${payment.accountId}, ${payment.nodeId}, ${payment.protocol}, ${payment.amountSat}, ${payment.description},
            ${payment.resource}, ${payment.challenge}, ${payment.paymentHash}, ${payment.protocolKeyId}, ${payment.tokenId},
            to_timestamp(${payment.createdAtMs} / 1000.0), ${payment.createdBy}, to_timestamp(${payment.expiresAtSeconds}),
            now() + ${ASK_EVERY_SECONDS} * interval '1 second')
    ON CONFLICT (node_id, payment_hash) DO NOTHING RETURNING 1`
  return row !== undefined
}

/** What was sold, by which node and for how much. */
export type Terms = { nodeId: string; amountSat: number; description: string; resource: string | null }

/** `none` includes a hold that has lapsed. */
export type DeliveryState = 'none' | 'held' | 'done'

/**
 * Everything a validation needs, with the database's time, in one statement. The text of the statement is fixed, because building it takes
 * longer than sending it.
 */
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
  /** MPP only, once settled. */
  receipt: string | null
  delivery: DeliveryState
  /** Also true for a lapsed hold, until another claim replaces it. */
  isClaimed: boolean
  /** Null unless held or done. */
  redeemedAt: number | null
  /** The request of the last claim, even if its hold has lapsed. */
  redeemRequestId: string | null
  /** Time until the hold lapses; null unless held. */
  heldForMs: number | null
  /** In the order of their release. */
  releasedRequestIds: string[]
  nowMs: number
}

/**
 * `IS TRUE`, here and below, hides the account condition from the planner, which without good statistics would read all of an account's
 * payments.
 */
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

/**
 * The x402 payment with this invoice. The hash is looked up in each node of the account, including those deleted recently, because an index
 * of hashes alone would have to be built for a whole table of payments. OFFSET 0 keeps PostgreSQL from reading all payments of the account.
 */
export async function findIdByInvoice(sql: Sql, accountId: string, paymentHash: Buffer): Promise<string | undefined> {
  const [row] = await sql<{ id: string }[]>`
    SELECT payment.id FROM nodes CROSS JOIN LATERAL (
      SELECT id, protocol FROM gateway_payments WHERE node_id = nodes.id AND payment_hash = ${paymentHash} OFFSET 0) payment
    WHERE nodes.account_id = ${accountId} AND (nodes.deleted_at IS NULL OR nodes.deleted_at > now() - interval '7 days')
      AND payment.protocol = 'x402' LIMIT 1`
  return row?.id
}

/** What a validation returns. */
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
  /** Also of a claim that has lapsed. */
  heldUntil: number | null
  releases: number
}

const statusOf = (sql: Sql) => sql`
  CASE WHEN paid_at IS NOT NULL THEN 'paid' WHEN settled_at IS NULL AND expires_at <= now() THEN 'expired' ELSE 'payment_required' END`
export const deliveryOf = (sql: Sql) => sql`
  CASE WHEN redeemed_at IS NULL OR held_until <= now() THEN 'none' WHEN held_until IS NULL THEN 'done' ELSE 'held' END`
/** A delivery was claimed, but failed or was never confirmed, and nobody has claimed it since. */
export const hasFailedDelivery = (sql: Sql) => sql`
  (${deliveryOf(sql)} = 'none' AND (redeemed_at IS NOT NULL OR coalesce(cardinality(released_request_ids), 0) > 0))`
export const shownColumns = (sql: Sql) => sql`
  id, protocol, ${statusOf(sql)} AS status,
  node_id AS "nodeId", amount_sat AS "amountSat", description, resource, unix_seconds(created_at) AS "createdAt",
  unix_seconds(expires_at) AS "expiresAt", unix_seconds(settled_at) AS "settledAt", unix_seconds(paid_at) AS "paidAt",
  CASE WHEN held_until IS NULL OR held_until > now() THEN unix_seconds(redeemed_at) END AS "redeemedAt",
  ${deliveryOf(sql)} AS delivery, unix_seconds(held_until) AS "heldUntil", coalesce(cardinality(released_request_ids), 0) AS releases`

export type PaymentDetails = ShownPayment & {
  challenge: string
  /** In hex. */
  paymentHash: string
  /** MPP only, once settled. */
  receipt: string | null
  createdBy: string | null
}

export async function findShownPayment(sql: Sql, accountId: string, id: string): Promise<PaymentDetails | undefined> {
  const [row] = await sql<PaymentDetails[]>`
    SELECT ${shownColumns(sql)}, challenge, encode(payment_hash, 'hex') AS "paymentHash", receipt, created_by AS "createdBy" FROM gateway_payments LEFT JOIN paid_payments USING (account_id, id)
    WHERE id = ${id} AND (account_id = ${accountId}) IS TRUE`
  return row
}

/**
 * Like the status, except that settled payments that were never validated are separate: their money is there, but nothing was delivered.
 */
const listedAs = (sql: Sql) => sql`
  CASE WHEN paid_at IS NOT NULL THEN 'paid' WHEN settled_at IS NOT NULL THEN 'settled' WHEN expires_at <= now() THEN 'expired'
       ELSE 'payment_required' END`

export type PaymentFilter = {
  status?: ShownPayment['status'] | 'settled'
  delivery?: DeliveryState
  nodeId?: string
  /** Only payments older than this one. */
  before?: string
  limit: number
}

export const HOUR_SECONDS = 3_600

/**
 * A challenge lives for five minutes at most, and an id begins with its creation time. So open payments are among the newest, and only
 * those are read. The other conditions follow from the status; without them, the planner would expect more rows and might read all paid
 * payments.
 */
const openOnes = (sql: Sql) =>
  sql`AND id >= ${newId('pay', Date.now() - HOUR_SECONDS * 1000)} AND settled_at IS NULL AND expires_at > now()`

export async function listPayments(sql: Sql, accountId: string, filter: PaymentFilter): Promise<ShownPayment[]> {
  const { status, delivery, nodeId, before, limit } = filter
  return sql<ShownPayment[]>`
    SELECT ${shownColumns(sql)} FROM gateway_payments LEFT JOIN paid_payments USING (account_id, id)
    WHERE account_id = ${accountId} ${nodeId === undefined ? sql`` : sql`AND node_id = ${nodeId}`}
      ${status === 'payment_required' ? openOnes(sql) : sql``}
      ${before === undefined ? sql`` : sql`AND id < ${before}`} ${status === undefined ? sql`` : sql`AND ${listedAs(sql)} = ${status}`}
      ${delivery === undefined ? sql`` : sql`AND ${deliveryOf(sql)} = ${delivery}`}
    ORDER BY id DESC LIMIT ${limit}`
}

/**
 * What a verified credential proves about its payment. The whole challenge is not compared: it begins with its id, which is a keyed hash of
 * the rest.
 */
export type Proof = { challengeBeginning: string; paymentHash: Uint8Array }

/**
 * Exactly one of any number of callers marks the payment paid, and only if it is settled and matches the proof. Undefined: another caller
 * did, or it does not match; the caller reads the payment to find out which. Every parameter and column costs time here, so only what is
 * not known yet is selected.
 */
export async function markPaidByProof(
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

/** Marks a payment paid after its credential was verified on the slow path. */
export async function markPaid(sql: Sql, id: string, actor: string): Promise<void> {
  await sql`
    INSERT INTO paid_payments (account_id, id, actor)
    SELECT account_id, id, ${actor} FROM gateway_payments WHERE id = ${id} AND settled_at IS NOT NULL
    ON CONFLICT DO NOTHING`
}

/**
 * A payment that its node now reports as settled; undefined if it is not ours or already recorded. OFFSET 0 keeps the two conditions apart:
 * together they would also match the index of all open payments.
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
 * Records a settlement once: the first time and receipt stay. Also records that the node now has funds, because the node might be deleted
 * before it is observed again. Returns the account; undefined if already recorded.
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
 * Removes challenges that expired more than a day ago if the node, when last asked at least an hour after the expiry, reported them unpaid.
 * Returns how many.
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

/** How many challenges of a node can still be paid, counted up to `most`, and when the first of them expires. */
export async function countOpen(sql: Sql, nodeId: string, most: number): Promise<{ open: number; nextEndSeconds: number }> {
  const [row] = await sql<{ open: number; nextEndSeconds: number }[]>`
    SELECT count(*)::int AS open, coalesce(ceil(extract(epoch FROM min(expires_at) - now())), 0)::int AS "nextEndSeconds"
    FROM (SELECT expires_at FROM gateway_payments
          WHERE node_id = ${nodeId} AND settled_at IS NULL AND expires_at > now() ORDER BY expires_at LIMIT ${most}) open`
  return row ?? { open: 0, nextEndSeconds: 0 }
}
