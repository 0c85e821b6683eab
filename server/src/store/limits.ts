import type { Sql } from './db.ts'

/** A single statement, so that concurrent replicas never lose a hit. The window begins with its first hit. */
export async function countHit(sql: Sql, key: string, windowMs: number): Promise<{ hits: number; remainingMs: number }> {
  const [row] = await sql<{ hits: number; remainingMs: number }[]>`
    INSERT INTO rate_limits AS r (key, hits, resets_at) VALUES (${key}, 1, now() + ${windowMs} * interval '1 millisecond')
    ON CONFLICT (key) DO UPDATE SET
      hits = CASE WHEN r.resets_at <= now() THEN 1 ELSE r.hits + 1 END,
      resets_at = CASE WHEN r.resets_at <= now() THEN excluded.resets_at ELSE r.resets_at END
    RETURNING hits, greatest(0, extract(epoch FROM resets_at - now()) * 1000)::int AS "remainingMs"`
  return row ?? { hits: 1, remainingMs: windowMs }
}

export async function forgetOldHits(sql: Sql): Promise<void> {
  await sql`DELETE FROM rate_limits WHERE resets_at < now() - interval '1 minute'`
}
