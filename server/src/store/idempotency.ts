import type { Sql } from './db.ts'

export type IdempotencyName = { callerId: string; route: string; key: string }
export type Claim = 'mine' | 'other body' | 'running' | { status: number; answer: Buffer }

const RUNNING_SECONDS = 30

/** The first request gets the key. A later one gets the first one's answer, or takes over if the first one's process has died. */
export async function claimKey(sql: Sql, name: IdempotencyName, bodyHash: Buffer, attempt: string): Promise<Claim> {
  const [mine] = await sql`
    INSERT INTO idempotency_keys AS i (caller_id, route, key, body_hash, attempt, running_until)
    VALUES (${name.callerId}, ${name.route}, ${name.key}, ${bodyHash}, ${attempt}, now() + ${RUNNING_SECONDS} * interval '1 second')
    ON CONFLICT (caller_id, route, key) DO UPDATE SET attempt = excluded.attempt, running_until = excluded.running_until,
      body_hash = excluded.body_hash, answer = NULL, status = NULL, created_at = now()
    WHERE (i.answer IS NULL AND i.running_until < now() AND i.body_hash = excluded.body_hash) OR i.created_at < now() - interval '24 hours'
    RETURNING 1`
  if (mine) return 'mine'
  const [row] = await sql<{ bodyHash: Buffer; status: number | null; answer: Buffer | null }[]>`
    SELECT body_hash AS "bodyHash", status, answer FROM idempotency_keys
    WHERE caller_id = ${name.callerId} AND route = ${name.route} AND key = ${name.key}`
  // The key was released between the two statements: the caller tries again.
  if (!row) return 'running'
  if (!bodyHash.equals(Buffer.from(row.bodyHash))) return 'other body'
  return row.answer && row.status ? { status: row.status, answer: Buffer.from(row.answer) } : 'running'
}

/** Runs in the transaction that does the work, so both are committed or neither. False: another request has taken over. */
export async function keepAnswer(
  sql: Sql,
  name: IdempotencyName,
  attempt: string,
  status: number,
  answer: Buffer,
): Promise<boolean> {
  const [row] = await sql`
    UPDATE idempotency_keys SET status = ${status}, answer = ${answer}
    WHERE caller_id = ${name.callerId} AND route = ${name.route} AND key = ${name.key} AND attempt = ${attempt} AND answer IS NULL
    RETURNING 1`
  return row !== undefined
}

/** After an error, the key can be used again. */
export async function giveBack(sql: Sql, name: IdempotencyName, attempt: string): Promise<void> {
  await sql`
    DELETE FROM idempotency_keys
    WHERE caller_id = ${name.callerId} AND route = ${name.route} AND key = ${name.key} AND attempt = ${attempt} AND answer IS NULL`
}

export async function forgetOldAnswers(sql: Sql): Promise<void> {
  await sql`DELETE FROM idempotency_keys WHERE created_at < now() - interval '24 hours'`
}
