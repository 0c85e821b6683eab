import type { Sql } from './db.ts'
import { containing, type ListParams, pageOf } from './operator/lists.ts'

export type AccountRow = {
  id: string
  name: string
  emails: string[]
  creditMsat: number
  createdAt: number
  isTreasury: boolean
  signInMethods: ('password' | 'passkey')[]
  nodes: number
}

const fields = (sql: Sql) => sql`
  a.id, a.name, a.is_treasury AS "isTreasury", unix_seconds(a.created_at) AS "createdAt",
  ARRAY(SELECT p.email FROM people p WHERE p.account_id = a.id ORDER BY p.id) AS emails,
  (SELECT coalesce(sum(e.amount_msat), 0)::bigint FROM credit_entries e WHERE e.account_id = a.id) AS "creditMsat",
  (SELECT count(*) FROM nodes n WHERE n.account_id = a.id AND n.deleted_at IS NULL)::int AS nodes,
  ARRAY(SELECT 'password' FROM people p WHERE p.account_id = a.id AND EXISTS (
          SELECT 1 FROM people_identities i WHERE i.person_id = p.id AND i.password_hash IS NOT NULL)
        UNION ALL SELECT 'passkey' FROM people p WHERE p.account_id = a.id AND EXISTS (
          SELECT 1 FROM people_passkeys k WHERE k.person_id = p.id)) AS "signInMethods"`

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

export async function listAccounts(sql: Sql, { search, ...page }: ListParams): Promise<AccountRow[]> {
  const found =
    search === undefined
      ? sql``
      : sql`AND (a.id = ${search} OR a.name ILIKE ${containing(search)}
          OR EXISTS (SELECT 1 FROM people p WHERE p.account_id = a.id AND p.email ILIKE ${containing(search)})
          OR a.id = (SELECT n.account_id FROM nodes n WHERE n.id = ${search}))`
  return sql<AccountRow[]>`SELECT ${fields(sql)} FROM accounts a WHERE true ${found} ${pageOf(sql, sql`a.id`, page)}`
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
