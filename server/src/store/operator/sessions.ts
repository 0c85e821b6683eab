import type { Sql } from '../db.ts'

export type OperatorSessionName = {
  cookieHash: Buffer
  /** Derived from the operator token that is configured now: a session that was started with another token is not found. */
  tokenMac: Buffer
}

export async function insertOperatorSession(
  sql: Sql,
  { cookieHash, tokenMac }: OperatorSessionName,
  seconds: number,
): Promise<{ expiresAt: number }> {
  const [row] = await sql<{ expiresAt: number }[]>`
    INSERT INTO operator_sessions (cookie_hash, token_mac, expires_at)
    VALUES (${cookieHash}, ${tokenMac}, now() + ${seconds} * interval '1 second') RETURNING unix_seconds(expires_at) AS "expiresAt"`
  if (!row) throw new Error('no session was created')
  return row
}

export async function findOperatorSession(
  sql: Sql,
  { cookieHash, tokenMac }: OperatorSessionName,
): Promise<{ expiresAt: number } | undefined> {
  const [row] = await sql<{ expiresAt: number }[]>`
    SELECT unix_seconds(expires_at) AS "expiresAt" FROM operator_sessions
    WHERE cookie_hash = ${cookieHash} AND token_mac = ${tokenMac} AND expires_at > now()`
  return row
}

/** True if there was such a session. */
export async function deleteOperatorSession(sql: Sql, cookieHash: Buffer): Promise<boolean> {
  return (await sql`DELETE FROM operator_sessions WHERE cookie_hash = ${cookieHash} RETURNING 1`).length > 0
}

export async function forgetOperatorSessions(sql: Sql): Promise<void> {
  await sql`DELETE FROM operator_sessions WHERE expires_at < now()`
}
