import type { Sql } from '../db.ts'

export type LinkKind = 'claim' | 'invitation' | 'sign-in'
export type LinkRow = { kind: LinkKind; accountId: string | null; email: string | null; expiresAt: number }

/** Neither used nor expired; and a claim is void once its account has an owner. */
const isGood = (sql: Sql) => sql`
  l.used_at IS NULL AND l.expires_at > now()
  AND (l.kind <> 'claim' OR NOT EXISTS (SELECT 1 FROM people p WHERE p.account_id = l.account_id))`
const fields = (sql: Sql) => sql`
  l.kind, l.account_id AS "accountId", unix_seconds(l.expires_at) AS "expiresAt",
  CASE WHEN l.kind = 'sign-in' THEN (SELECT p.email FROM people p WHERE p.account_id = l.account_id) ELSE l.email END AS email`

/** For an account: a claim if it has no owner yet, otherwise a sign-in link for its owner. Undefined: no such account. */
export async function insertAccountLink(
  sql: Sql,
  link: { hash: Buffer; accountId: string; seconds: number; actor: string },
): Promise<Omit<LinkRow, 'accountId'> | undefined> {
  const [row] = await sql<Omit<LinkRow, 'accountId'>[]>`
    WITH link AS (
      INSERT INTO links AS l (token_hash, kind, account_id, expires_at)
      SELECT ${link.hash}, CASE WHEN EXISTS (SELECT 1 FROM people p WHERE p.account_id = a.id) THEN 'sign-in' ELSE 'claim' END,
        a.id, now() + ${link.seconds} * interval '1 second'
      FROM accounts a WHERE a.id = ${link.accountId} AND a.closed_at IS NULL
      RETURNING *
    ), log AS (
      INSERT INTO activity (account_id, actor, action, detail)
      SELECT account_id, ${link.actor}, 'link.created', jsonb_build_object('kind', kind) FROM link
    )
    SELECT kind, unix_seconds(expires_at) AS "expiresAt", (SELECT p.email FROM people p WHERE p.account_id = link.account_id) AS email
    FROM link`
  return row
}

export async function insertInvitation(
  sql: Sql,
  { hash, email, seconds }: { hash: Buffer; email: string | undefined; seconds: number },
): Promise<{ expiresAt: number }> {
  const [row] = await sql<{ expiresAt: number }[]>`
    INSERT INTO links (token_hash, kind, email, expires_at)
    VALUES (${hash}, 'invitation', ${email ?? null}, now() + ${seconds} * interval '1 second')
    RETURNING unix_seconds(expires_at) AS "expiresAt"`
  if (!row) throw new Error('no link was created')
  return row
}

export async function findLink(sql: Sql, hash: Buffer): Promise<LinkRow | undefined> {
  const [row] = await sql<LinkRow[]>`SELECT ${fields(sql)} FROM links l WHERE l.token_hash = ${hash} AND ${isGood(sql)}`
  return row
}

/** Whether the account with this name is waiting to be claimed. */
export async function hasOpenClaim(sql: Sql, accountName: string): Promise<boolean> {
  const [row] = await sql`
    SELECT 1 FROM links l JOIN accounts a ON a.id = l.account_id
    WHERE l.kind = 'claim' AND a.name = ${accountName} AND ${isGood(sql)} LIMIT 1`
  return row !== undefined
}

/**
 * Exactly one of any number of callers can use the link. Call it in the transaction that does what the link is for: if that fails, the link
 * stays valid.
 */
export async function useLink(sql: Sql, hash: Buffer): Promise<LinkRow | undefined> {
  const [row] = await sql<LinkRow[]>`
    UPDATE links AS l SET used_at = now() WHERE l.token_hash = ${hash} AND ${isGood(sql)} RETURNING ${fields(sql)}`
  return row
}

export async function forgetOldLinks(sql: Sql): Promise<void> {
  await sql`DELETE FROM links WHERE expires_at < now()`
}
