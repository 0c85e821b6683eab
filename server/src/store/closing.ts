import type { Database, Sql } from './db.ts'
import { KEYS_CHANGED } from './keys.ts'

/** Replaces the name of an account that is deleted, because it may be the name of a person. */
export const CLOSED_NAME = 'deleted account'

export type NodesLeft = {
  existing: number
  /** Deleted, but their data is kept until the retention period is over. */
  retained: number
  /** When the data of the retained nodes is due for removal; null if there are none, or if one has no date yet. */
  dueAt: number | null
}

export async function nodesLeft(sql: Sql, accountId: string, retentionDays: number): Promise<NodesLeft> {
  const [row] = await sql<[NodesLeft]>`
    SELECT count(*) FILTER (WHERE deleted_at IS NULL)::int AS existing, count(*) FILTER (WHERE deleted_at IS NOT NULL)::int AS retained,
      CASE WHEN bool_or(released_at IS NOT NULL AND exported_at IS NULL) THEN NULL
        ELSE unix_seconds(max(CASE WHEN released_at IS NULL THEN deleted_at ELSE exported_at END) + ${retentionDays} * interval '1 day')
      END AS "dueAt"
    FROM nodes WHERE account_id = ${accountId} AND purged_at IS NULL`
  return row
}

export type MoneyLeft = {
  creditSat: number
  /** When the last invoice for credit expires, or has expired so recently that its payment may not be known yet; null if there is none. */
  topUpUntil: number | null
}

/** The node is asked about an expired invoice for another hour. If the node is gone, the invoice counts as open for a day. */
const openTopUp = (sql: Sql, accountId: string) => sql`
  account_id = ${accountId} AND settled_at IS NULL
    AND (expires_at > now() OR (ask_at IS NOT NULL AND expires_at > now() - interval '1 day'))`

export async function moneyLeft(sql: Sql, accountId: string): Promise<MoneyLeft> {
  const [row] = await sql<[MoneyLeft]>`
    SELECT floor(coalesce((SELECT sum(amount_msat) FROM credit_entries WHERE account_id = ${accountId}), 0) / 1000)::float8 AS "creditSat",
      (SELECT unix_seconds(max(expires_at)) FROM top_ups WHERE ${openTopUp(sql, accountId)}) AS "topUpUntil"`
  return row
}

export type Closing = { accountId: string; personId: string; name: string }

/**
 * Ends every way to use the account, in one transaction. The lock waits for nodes, keys, webhooks and top-ups that are being created; later
 * attempts to create one find the account closed. Rows that the ledger and the log of payments refer to are kept.
 */
export async function closeAccount(
  database: Database,
  { accountId, personId, name }: Closing,
): Promise<'closed' | 'has nodes' | 'open top-up' | 'other name'> {
  return database.begin(async (sql) => {
    const [account] = await sql<{ name: string }[]>`
      SELECT name FROM accounts WHERE id = ${accountId} AND closed_at IS NULL FOR UPDATE`
    if (account?.name !== name) return 'other name'
    const [node] = await sql`SELECT 1 FROM nodes WHERE account_id = ${accountId} AND purged_at IS NULL LIMIT 1`
    if (node) return 'has nodes'
    // Its payment would be credited to an account that nobody can use.
    const [topUp] = await sql`SELECT 1 FROM top_ups WHERE ${openTopUp(sql, accountId)} LIMIT 1`
    if (topUp) return 'open top-up'
    await sql`INSERT INTO activity (account_id, actor, action) VALUES (${accountId}, ${personId}, 'account.deleted')`
    await sql`
      WITH revoked AS (
        UPDATE api_keys SET revoked_at = now() WHERE account_id = ${accountId} AND revoked_at IS NULL RETURNING id)
      SELECT pg_notify(${KEYS_CHANGED}, id) FROM revoked`
    await sql`
      UPDATE webhooks SET deleted_at = now(), enabled = false, secret = '', previous_secret = NULL, previous_until = NULL
      WHERE account_id = ${accountId} AND deleted_at IS NULL`
    await sql`DELETE FROM links WHERE account_id = ${accountId}`
    // Sessions, passkeys, the password and two-factor secrets go with the person.
    await sql`DELETE FROM people WHERE account_id = ${accountId}`
    await sql`UPDATE accounts SET name = ${CLOSED_NAME}, closed_at = now() WHERE id = ${accountId}`
    return 'closed'
  })
}
