import type { Sql } from '../db.ts'
import { ASK_EVERY_SECONDS } from '../payments/invoices.ts'

export type TopUpRow = { paymentHash: string; amountSat: number; invoice: string; expiresAt: number; settledAt: number | null }

const fields = (sql: Sql) => sql`
  encode(payment_hash, 'hex') AS "paymentHash", amount_sat AS "amountSat", invoice,
  unix_seconds(expires_at) AS "expiresAt", unix_seconds(settled_at) AS "settledAt"`

export type NewTopUp = {
  paymentHash: Buffer
  accountId: string
  nodeId: string
  amountSat: number
  invoice: string
  expiresAtSeconds: number
}

/** Undefined: the node has already used that payment hash, so one payment would count twice; or the account was deleted meanwhile. */
export async function insertTopUp(sql: Sql, topUp: NewTopUp): Promise<TopUpRow | undefined> {
  const [row] = await sql<TopUpRow[]>`
    WITH account AS (SELECT id FROM accounts WHERE id = ${topUp.accountId} AND closed_at IS NULL FOR KEY SHARE)
    INSERT INTO top_ups (payment_hash, account_id, node_id, amount_sat, invoice, expires_at, ask_at)
    SELECT ${topUp.paymentHash}::bytea, id, ${topUp.nodeId}, ${topUp.amountSat}::bigint, ${topUp.invoice},
           to_timestamp(${topUp.expiresAtSeconds}), now() + ${ASK_EVERY_SECONDS} * interval '1 second'
    FROM account
    ON CONFLICT DO NOTHING RETURNING ${fields(sql)}`
  return row
}

export async function findTopUp(sql: Sql, accountId: string, paymentHash: Buffer): Promise<TopUpRow | undefined> {
  const [row] = await sql<TopUpRow[]>`
    SELECT ${fields(sql)} FROM top_ups WHERE payment_hash = ${paymentHash} AND account_id = ${accountId}`
  return row
}

export async function isTopUp(sql: Sql, paymentHash: Buffer): Promise<boolean> {
  return (await sql`SELECT 1 FROM top_ups WHERE payment_hash = ${paymentHash}`).length > 0
}

export type OpenTopUps = { open: number; same: TopUpRow | undefined }

/** How many top-ups of the account are open, and one with this amount and node that does not expire within `longEnoughSeconds`. */
export async function openTopUps(
  sql: Sql,
  { accountId, nodeId, amountSat }: { accountId: string; nodeId: string; amountSat: number },
  longEnoughSeconds: number,
): Promise<OpenTopUps> {
  const isOpen = sql`account_id = ${accountId} AND settled_at IS NULL AND expires_at > now()`
  const [same] = await sql<TopUpRow[]>`
    SELECT ${fields(sql)} FROM top_ups WHERE ${isOpen} AND node_id = ${nodeId} AND amount_sat = ${amountSat}
      AND expires_at > now() + ${longEnoughSeconds} * interval '1 second' ORDER BY expires_at DESC LIMIT 1`
  const [count] = await sql<{ open: number }[]>`SELECT count(*)::int AS open FROM top_ups WHERE ${isOpen}`
  return { open: count?.open ?? 0, same }
}

/**
 * Records the settlement and adds the credit in one statement: both or neither, and only once. Credits the invoice's amount, whatever was
 * sent. False: not one of ours, or already recorded.
 */
export async function settleTopUp(
  sql: Sql,
  nodeId: string,
  paymentHash: Buffer,
  settledAtMs: number | undefined,
): Promise<boolean> {
  const [row] = await sql`
    WITH settled AS (
      UPDATE top_ups SET settled_at = ${settledAtMs === undefined ? sql`now()` : sql`to_timestamp(${settledAtMs} / 1000.0)`}, ask_at = NULL
      WHERE payment_hash = ${paymentHash} AND node_id = ${nodeId} AND settled_at IS NULL RETURNING account_id, amount_sat
    ), funded AS (
      UPDATE nodes SET has_funds = true, funded_at = now() WHERE id = ${nodeId} AND EXISTS (SELECT 1 FROM settled)
    ), entry AS (
      INSERT INTO credit_entries (account_id, amount_msat, kind, reason, reference)
      SELECT account_id, amount_sat * 1000, 'top_up', 'Paid over Lightning', ${paymentHash.toString('hex')} FROM settled
      RETURNING account_id, amount_msat, reference
    )
    INSERT INTO activity (account_id, actor, action, target, detail)
    SELECT account_id, ${nodeId}, 'credit.topped_up', reference, jsonb_build_object('amountMsat', amount_msat) FROM entry RETURNING 1`
  return row !== undefined
}
