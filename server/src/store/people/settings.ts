import type { Database, Sql } from '../db.ts'
import { endLinks } from './people.ts'

/** Old sign-in links end: they were made for whoever owned the old address. Throws if the address is taken (people_email). */
export async function changeEmail(database: Database, personId: string, email: string): Promise<void> {
  await database.begin(async (sql) => {
    await endLinks(sql, sql`SELECT ${personId}`)
    await sql`
      WITH row AS (UPDATE people SET email = ${email}, email_verified = false, updated_at = now() WHERE id = ${personId} RETURNING *)
      INSERT INTO activity (account_id, actor, action) SELECT account_id, id, 'person.email_changed' FROM row`
  })
}

/** False: the person has no such session. */
export async function endSession(sql: Sql, personId: string, sessionId: string): Promise<boolean> {
  const rows = await sql`
    WITH row AS (DELETE FROM people_sessions WHERE id = ${sessionId} AND person_id = ${personId} AND expires_at > now() RETURNING person_id),
    log AS (
      INSERT INTO activity (account_id, actor, action, detail)
      SELECT p.account_id, p.id, 'person.signed_out', jsonb_build_object('sessions', 1) FROM row JOIN people p ON p.id = row.person_id)
    SELECT 1 FROM row`
  return rows.length > 0
}

/** Whether the session was started with a passkey within this time. If so, its user has just proved their identity. */
export async function hasUsedPasskey(sql: Sql, sessionId: string, withinSeconds: number): Promise<boolean> {
  const [row] = await sql`
    SELECT 1 FROM people_sessions
    WHERE id = ${sessionId} AND method = 'passkey' AND created_at > now() - ${withinSeconds} * interval '1 second'`
  return row !== undefined
}

/** Written at most once in `everySeconds`, because a page makes many requests. */
export async function noteSession(sql: Sql, sessionId: string, address: string, everySeconds: number): Promise<void> {
  await sql`
    UPDATE people_sessions SET last_seen_at = now(), ip_address = ${address}
    WHERE id = ${sessionId} AND (last_seen_at IS NULL OR last_seen_at < now() - ${everySeconds} * interval '1 second')`
}

/** The lock makes concurrent removals run one after the other. Otherwise, each could count on the passkey that the other removes. */
export async function removePasskey(
  database: Database,
  personId: string,
  id: string,
): Promise<'removed' | 'not found' | 'last way in'> {
  return database.begin(async (sql) => {
    await sql`SELECT 1 FROM people WHERE id = ${personId} FOR UPDATE`
    const [found] = await sql<{ isLast: boolean }[]>`
      SELECT NOT EXISTS (SELECT 1 FROM people_passkeys o WHERE o.person_id = k.person_id AND o.id <> k.id)
        AND NOT EXISTS (SELECT 1 FROM people_identities i WHERE i.person_id = k.person_id AND i.password_hash IS NOT NULL) AS "isLast"
      FROM people_passkeys k WHERE k.id = ${id} AND k.person_id = ${personId}`
    if (!found) return 'not found'
    if (found.isLast) return 'last way in'
    await sql`
      WITH row AS (DELETE FROM people_passkeys WHERE id = ${id} RETURNING person_id)
      INSERT INTO activity (account_id, actor, action)
      SELECT p.account_id, p.id, 'person.passkey_removed' FROM row JOIN people p ON p.id = row.person_id`
    return 'removed'
  })
}
