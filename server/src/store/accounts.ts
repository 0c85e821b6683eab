import type { Sql } from './db.ts'

export type AccountRow = { id: string; name: string; emails: string[]; creditMsat: number; createdAt: number }

const fields = (sql: Sql) => sql`
  a.id, a.name, unix_seconds(a.created_at) AS "createdAt",
  ARRAY(SELECT p.email FROM people p WHERE p.account_id = a.id ORDER BY p.id) AS emails,
  (SELECT coalesce(sum(e.amount_msat), 0)::bigint FROM credit_entries e WHERE e.account_id = a.id) AS "creditMsat"`

/** The account and its first credit exist together or not at all. */
export async function insertAccount(
  sql: Sql,
  account: { id: string; name: string; creditMsat: number; reason: string; actor: string; isSelfRegistered: boolean },
): Promise<void> {
  await sql`
    WITH account AS (
      INSERT INTO accounts (id, name, is_self_registered) VALUES (${account.id}, ${account.name}, ${account.isSelfRegistered})
      RETURNING id
    ),
    credit AS (
      INSERT INTO credit_entries (account_id, amount_msat, kind, reason, reference)
      SELECT id, ${account.creditMsat}::bigint, 'signup', ${account.reason}, id FROM account WHERE ${account.creditMsat}::bigint <> 0
    )
    INSERT INTO activity (account_id, actor, action) SELECT id, ${account.actor}, 'account.created' FROM account`
}

export async function listAccounts(sql: Sql): Promise<AccountRow[]> {
  return sql<AccountRow[]>`SELECT ${fields(sql)} FROM accounts a ORDER BY a.id`
}

export async function findAccount(sql: Sql, id: string): Promise<AccountRow | undefined> {
  const [row] = await sql<AccountRow[]>`SELECT ${fields(sql)} FROM accounts a WHERE a.id = ${id}`
  return row
}

export async function renameAccount(sql: Sql, id: string, name: string, actor: string): Promise<void> {
  await sql`
    WITH renamed AS (UPDATE accounts SET name = ${name} WHERE id = ${id} AND closed_at IS NULL AND name <> ${name} RETURNING id)
    INSERT INTO activity (account_id, actor, action) SELECT id, ${actor}, 'account.renamed' FROM renamed`
}
