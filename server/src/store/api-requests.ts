import type { Database, Sql } from './db.ts'

export type RequestRow = {
  accountId: string
  keyId: string
  /** Milliseconds since 1970. */
  atMs: number
  method: string
  /** A pattern, never a path. */
  route: string
  status: number
  errorCode: string | null
  durationMs: number
  requestId: string
}
export type UsageRow = { keyId: string; day: string; requests: number; errors: number }

/**
 * Writes the requests of about one second. The commit does not wait for the disk: a crash of PostgreSQL may lose the last
 * moments. The counts are sorted, because two replicas that update overlapping counts in different orders would deadlock. The
 * time of a row is never later than the database's time: a row from a clock that is ahead would be kept for longer and block the
 * removal of the rows after it.
 */
export async function recordRequests(database: Database, rows: RequestRow[], usage: UsageRow[]): Promise<void> {
  const counts = usage.toSorted((a, b) => (`${a.keyId} ${a.day}` < `${b.keyId} ${b.day}` ? -1 : 1))
  await database.begin(async (sql) => {
    await sql`SELECT set_config('synchronous_commit', 'off', true)`
    if (rows.length > 0)
      await sql`
        INSERT INTO api_requests (account_id, key_id, at, method, route, status, error_code, duration_ms, request_id)
        SELECT account_id, key_id, least(to_timestamp(at_ms / 1000), now()), method, route, status, error_code, duration_ms, request_id
        FROM unnest(${rows.map(({ accountId }) => accountId)}::text[], ${rows.map(({ keyId }) => keyId)}::text[],
                    ${rows.map(({ atMs }) => atMs)}::float8[], ${rows.map(({ method }) => method)}::text[],
                    ${rows.map(({ route }) => route)}::text[], ${rows.map(({ status }) => status)}::smallint[],
                    ${rows.map(({ errorCode }) => errorCode)}::text[], ${rows.map(({ durationMs }) => durationMs)}::real[],
                    ${rows.map(({ requestId }) => requestId)}::text[])
          AS r (account_id, key_id, at_ms, method, route, status, error_code, duration_ms, request_id)`
    await sql`
      INSERT INTO api_key_usage AS u (key_id, day, requests, errors)
      SELECT * FROM unnest(${counts.map(({ keyId }) => keyId)}::text[], ${counts.map(({ day }) => day)}::date[],
                           ${counts.map(({ requests }) => requests)}::bigint[], ${counts.map(({ errors }) => errors)}::bigint[])
      ON CONFLICT (key_id, day) DO UPDATE SET requests = u.requests + excluded.requests, errors = u.errors + excluded.errors`
  })
}

export type RequestFilter = {
  keyId?: string
  /** 2 for 200–299. */
  statusClass?: number
  route?: string
  requestId?: string
}
export type LoggedRequest = {
  id: number
  at: number
  keyId: string
  keyName: string | null
  method: string
  route: string
  status: number
  errorCode: string | null
  durationMs: number
  requestId: string
}

/**
 * Newest first; with `before`, only older ones. A key, a route, errors and a request id have an index, but not every combination: a rare
 * match in a long log takes time to find.
 */
export async function listRequests(
  sql: Sql,
  accountId: string,
  { keyId, statusClass, route, requestId }: RequestFilter,
  limit: number,
  before?: number,
): Promise<LoggedRequest[]> {
  const ofClass = (from: number) => sql`AND r.status >= ${from} AND r.status < ${from + 100}`
  return sql<LoggedRequest[]>`
    SELECT r.id, unix_seconds(r.at) AS at, r.key_id AS "keyId", k.name AS "keyName", r.method, r.route, r.status,
           r.error_code AS "errorCode", r.duration_ms AS "durationMs", r.request_id AS "requestId"
    FROM api_requests r LEFT JOIN api_keys k ON k.id = r.key_id
    WHERE r.account_id = ${accountId}
      ${keyId === undefined ? sql`` : sql`AND r.key_id = ${keyId}`}
      ${statusClass === undefined ? sql`` : ofClass(statusClass * 100)}
      ${statusClass !== undefined && statusClass >= 4 ? sql`AND r.status >= 400` : sql``}
      ${route === undefined ? sql`` : sql`AND r.route = ${route}`}
      ${requestId === undefined ? sql`` : sql`AND r.request_id = ${requestId}`}
      ${before === undefined ? sql`` : sql`AND r.id < ${before}`}
    ORDER BY r.id DESC LIMIT ${limit}`
}

export type DayOfUse = { keyId: string; day: string; requests: number; errors: number }

/**
 * Days without requests are left out. Nothing is known about the time before `since`: the day of the migration that added the table or, if an
 * older backup was restored afterwards, the day of the first count.
 */
export async function usageOf(
  sql: Sql,
  accountId: string,
  days: number,
): Promise<{ today: string; since: string; days: DayOfUse[] }> {
  const [[clock], rows] = await Promise.all([
    sql<{ today: string; since: string }[]>`
      SELECT (now() AT TIME ZONE 'UTC')::date::text AS today,
             least((applied_at AT TIME ZONE 'UTC')::date,
                   (SELECT min(u.day) FROM api_keys k JOIN api_key_usage u ON u.key_id = k.id WHERE k.account_id = ${accountId}))::text AS since
      FROM schema_migrations WHERE name LIKE '%-key-lifetimes.sql'`,
    sql<DayOfUse[]>`
      SELECT u.key_id AS "keyId", u.day::text AS day, u.requests, u.errors
      FROM api_keys k JOIN api_key_usage u ON u.key_id = k.id
      WHERE k.account_id = ${accountId} AND k.revoked_at IS NULL AND u.day > (now() AT TIME ZONE 'UTC')::date - ${days}::int
      ORDER BY u.key_id, u.day`,
  ])
  if (!clock) throw new Error('schema_migrations has no row for the migration key-lifetimes.sql')
  return { ...clock, days: rows }
}

/** The oldest rows have the lowest ids, so each batch is one short range of the primary key. Returns how many were removed. */
export async function removeOldRequests(sql: Sql, batch: number): Promise<number> {
  const rows = await sql`
    DELETE FROM api_requests WHERE id IN (SELECT id FROM api_requests ORDER BY id LIMIT ${batch}) AND at < now() - interval '7 days'
    RETURNING 1`
  return rows.length
}

export async function removeOldUsage(sql: Sql): Promise<void> {
  await sql`DELETE FROM api_key_usage WHERE day < (now() AT TIME ZONE 'UTC')::date - 60`
}
