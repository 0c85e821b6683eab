import type { Sql } from '../db.ts'
import type { Proof, Terms } from './payments.ts'

/** The terms that a redemption expects; terms that are not given are not compared. */
export type ExpectedTerms = {
  nodeId?: string
  /** Compared with the description if the payment has no resource. */
  resource?: string
  description?: string
  amountSat?: number
  minAmountSat?: number
}

export type Claim = {
  /** Null: the claim cannot be repeated. */
  requestId: string | null
  /** Null: the claim is final. */
  holdSeconds: number | null
}

/** What to deliver, and when it was claimed. */
export type Delivery = Terms & { receipt: string | null; redeemedAt: number }

/** After this many failed deliveries, a person should look at the payment. */
export const MOST_RELEASES = 10

/**
 * Exactly one of any number of callers claims the delivery, which also marks the payment paid. The request that has the claim gets it
 * again, with its original hold. Requires that the payment is settled and has these terms. Undefined: one of these does not hold, another
 * request has the claim, or this request has released it; the caller reads the payment to find out which. Without `proof`, the caller has
 * already verified the credential. `IS TRUE` as in `findPayment`.
 */
export async function claimDelivery(
  sql: Sql,
  { accountId, actor }: { accountId: string; actor: string },
  id: string,
  { requestId, holdSeconds }: Claim,
  expect: ExpectedTerms = {},
  proof?: Proof,
): Promise<Delivery | undefined> {
  const [row] = await sql<Delivery[]>`
    WITH payment AS (
      SELECT account_id, id, node_id, amount_sat, description, resource, receipt FROM gateway_payments
      WHERE id = ${id} AND (account_id = ${accountId}) IS TRUE AND settled_at IS NOT NULL
        AND starts_with(challenge, ${proof?.challengeBeginning ?? ''})
        AND payment_hash = coalesce(${proof?.paymentHash ?? null}, payment_hash)
        AND node_id = coalesce(${expect.nodeId ?? null}, node_id)
        AND coalesce(resource, description) = coalesce(${expect.resource ?? null}, resource, description)
        AND description = coalesce(${expect.description ?? null}, description)
        AND amount_sat = coalesce(${expect.amountSat ?? null}, amount_sat)
        AND amount_sat >= coalesce(${expect.minAmountSat ?? null}, amount_sat)
    ), claimed AS (
      INSERT INTO paid_payments AS paid (account_id, id, actor, redeemed_at, redeem_request_id, held_until)
      SELECT account_id, id, ${actor}, now(), ${requestId}, now() + ${holdSeconds}::int * interval '1 second' FROM payment
      ON CONFLICT (account_id, id) DO UPDATE SET
        redeemed_at = CASE WHEN paid.redeem_request_id = excluded.redeem_request_id THEN paid.redeemed_at ELSE excluded.redeemed_at END,
        held_until = CASE WHEN paid.redeem_request_id = excluded.redeem_request_id AND (paid.held_until <= now()) IS NOT TRUE
                     THEN paid.held_until ELSE excluded.held_until END,
        redeem_request_id = excluded.redeem_request_id
      WHERE (paid.redeemed_at IS NULL OR paid.held_until <= now() OR paid.redeem_request_id = excluded.redeem_request_id)
        AND (excluded.redeem_request_id = ANY (paid.released_request_ids)) IS NOT TRUE
      RETURNING redeemed_at
    )
    SELECT node_id AS "nodeId", amount_sat AS "amountSat", description, resource, receipt,
           unix_seconds(redeemed_at) AS "redeemedAt"
    FROM payment, claimed`
  return row
}

export type DeliveryName = { id: string; requestId: string }

/**
 * Makes the claims of these requests final, including lapsed ones that no one else has taken, and returns those that are final. Rows are
 * locked in one order, so that two batches with the same payments cannot deadlock. Each row is looked up and then written by its key alone:
 * a join could be planned as a scan of all the account's payments. The INSERT never inserts, because its rows exist and are locked.
 */
export async function confirmDeliveries(sql: Sql, accountId: string, deliveries: DeliveryName[]): Promise<DeliveryName[]> {
  return sql<DeliveryName[]>`
    WITH named AS (
      SELECT DISTINCT id, request_id
      FROM unnest(${deliveries.map(({ id }) => id)}::text[], ${deliveries.map(({ requestId }) => requestId)}::text[]) AS n (id, request_id)
      ORDER BY id
    ), held AS MATERIALIZED (
      SELECT paid.* FROM named CROSS JOIN LATERAL (
        SELECT account_id, id, log_id, actor, redeem_request_id FROM paid_payments
        WHERE account_id = ${accountId} AND id = named.id AND redeem_request_id = named.request_id FOR NO KEY UPDATE) paid
    ), confirmed AS (
      INSERT INTO paid_payments AS paid (account_id, id, log_id, actor) SELECT account_id, id, log_id, actor FROM held
      ON CONFLICT (account_id, id) DO UPDATE SET held_until = NULL WHERE paid.held_until IS NOT NULL
    )
    SELECT id, redeem_request_id AS "requestId" FROM held`
}

/** Releases this request's claim. False: it has none, or the payment was released too often. */
export async function releaseDelivery(
  sql: Sql,
  { accountId, actor }: { accountId: string; actor: string },
  { id, requestId }: DeliveryName,
  reason: string | undefined,
): Promise<boolean> {
  const [row] = await sql`
    WITH released AS (
      UPDATE paid_payments SET redeemed_at = NULL, redeem_request_id = NULL, held_until = NULL,
                               released_request_ids = array_append(released_request_ids, ${requestId})
      WHERE account_id = ${accountId} AND id = ${id} AND redeem_request_id = ${requestId}
        AND coalesce(cardinality(released_request_ids), 0) < ${MOST_RELEASES}
      RETURNING account_id, id
    )
    INSERT INTO activity (account_id, actor, action, target, detail)
    SELECT account_id, ${actor}, 'payment.released', id, ${sql.json(reason === undefined ? {} : { reason })} FROM released RETURNING 1`
  return row !== undefined
}
