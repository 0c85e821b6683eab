import type { Sql } from '../db.ts'

/** The number of failures before pauses begin. */
const FREE_FAILURES = 5
const LONGEST_PAUSE_SECONDS = 900
const REMEMBERED = '1 day'
const MAX_ROWS = 100_000
/** Not now(): a statement that began earlier and waited for the row would see a time in its future, which is a pause. */
const NO_PAUSE = 'epoch'

/**
 * Counts an attempt as failed before it is tried, so that a thousand concurrent guesses are not all tried before the first one fails.
 * During a pause nothing is counted, and the result is the remaining time.
 */
export async function countAttempt(sql: Sql, key: Buffer): Promise<{ pauseMs: number }> {
  const [row] = await sql<{ pauseMs: number }[]>`
    WITH counted AS (
      INSERT INTO sign_in_failures AS f (key, failures, paused_until, forget_at)
      VALUES (${key}, 1, ${NO_PAUSE}, now() + ${REMEMBERED}::interval)
      ON CONFLICT (key) DO UPDATE SET
        failures = f.failures + 1,
        paused_until = CASE WHEN f.failures + 1 < ${FREE_FAILURES} THEN ${NO_PAUSE}
          ELSE now() + least(${LONGEST_PAUSE_SECONDS}, 2 ^ least(f.failures + 1 - ${FREE_FAILURES}, 30)) * interval '1 second' END,
        forget_at = excluded.forget_at
      WHERE f.paused_until <= now()
      RETURNING 1
    )
    SELECT CASE WHEN EXISTS (SELECT 1 FROM counted) THEN 0
      ELSE greatest(1, (SELECT extract(epoch FROM paused_until - now()) * 1000 FROM sign_in_failures WHERE key = ${key})) END::int AS "pauseMs"`
  return { pauseMs: row?.pauseMs ?? 0 }
}

/** The attempt did not end with a wrong password, so its failure and its pause are undone. */
export async function takeBackAttempt(sql: Sql, key: Buffer): Promise<void> {
  await sql`UPDATE sign_in_failures SET failures = greatest(0, failures - 1), paused_until = ${NO_PAUSE} WHERE key = ${key}`
}

export async function forgetFailures(sql: Sql, key: Buffer): Promise<void> {
  await sql`DELETE FROM sign_in_failures WHERE key = ${key}`
}

/**
 * Beyond the limit, rows with the fewest failures are deleted first, so that a flood of invented email addresses cannot displace a pause.
 */
export async function forgetOldFailures(sql: Sql, maxRows = MAX_ROWS): Promise<void> {
  await sql`DELETE FROM sign_in_failures WHERE forget_at < now()`
  await sql`
    DELETE FROM sign_in_failures WHERE key IN (
      SELECT key FROM sign_in_failures ORDER BY failures DESC, forget_at DESC OFFSET ${maxRows})`
}
