import type { Database, Fragment, Sql } from '../db.ts'

/** better-auth's data in our own tables. A person's activity is logged in the statement that writes the row, so both exist or neither. */
export type PeopleTable = 'people' | 'people_sessions' | 'people_identities' | 'people_verifications' | 'people_passkeys'
export type Row = Record<string, unknown>
export type Condition = { column: string; operator: string; value: unknown }

export async function insertRow(sql: Sql, table: PeopleTable, row: Row): Promise<Row> {
  const columns = Object.keys(row)
  const [inserted] = await sql<Row[]>`
    WITH row AS (
      INSERT INTO ${sql(table)} (${list(
        sql,
        columns.map((name) => sql`${sql(name)}`),
      )})
      VALUES (${list(
        sql,
        columns.map((name) => sql`${row[name] as string}`),
      )}) RETURNING *
    ), ${logOfInsert(sql, table)} SELECT * FROM row`
  if (!inserted) throw new Error(`nothing was inserted into ${table}`)
  return inserted
}

export async function selectRows(
  sql: Sql,
  table: PeopleTable,
  where: Condition[],
  { limit, offset = 0, sortBy }: { limit: number; offset?: number; sortBy?: { column: string; direction: 'asc' | 'desc' } },
): Promise<Row[]> {
  const order = sortBy ? sql`ORDER BY ${sql(sortBy.column)} ${sortBy.direction === 'desc' ? sql`DESC` : sql`ASC`}` : sql``
  return sql<Row[]>`SELECT * FROM ${sql(table)} WHERE ${all(sql, where)} ${order} LIMIT ${limit} OFFSET ${offset}`
}

export async function countRows(sql: Sql, table: PeopleTable, where: Condition[]): Promise<number> {
  const [row] = await sql<{ count: number }[]>`SELECT count(*)::int AS count FROM ${sql(table)} WHERE ${all(sql, where)}`
  return row?.count ?? 0
}

/** A new password also ends open sign-in links: with one of them, someone could still sign in without the new password. */
export async function updateRows(sql: Sql, table: PeopleTable, where: Condition[], changes: Row): Promise<Row[]> {
  const isNewPassword = table === 'people_identities' && 'password_hash' in changes
  const log = isNewPassword
    ? sql`${logged(sql, 'person.password_changed')}, ended AS (${endLinks(sql, sql`SELECT person_id FROM row`)})`
    : sql`log AS (SELECT 1)`
  const sets = Object.entries(changes).map(([name, value]) => sql`${sql(name)} = ${value as string}`)
  return sql<Row[]>`
    WITH row AS (UPDATE ${sql(table)} SET ${list(sql, sets)} WHERE ${all(sql, where)} RETURNING *), ${log} SELECT * FROM row`
}

/** A session that is deleted before its expiry counts as a sign-out. Expired sessions are only cleaned up. */
export async function deleteRows(sql: Sql, table: PeopleTable, where: Condition[]): Promise<Row[]> {
  const isSignOut = table === 'people_sessions' && where.some(({ column }) => column === 'token_hash')
  const log = isSignOut ? logged(sql, 'person.signed_out', sql`row.expires_at > now()`) : sql`log AS (SELECT 1)`
  return sql<Row[]>`WITH row AS (DELETE FROM ${sql(table)} WHERE ${all(sql, where)} RETURNING *), ${log} SELECT * FROM row`
}

function logOfInsert(sql: Sql, table: PeopleTable) {
  if (table === 'people_passkeys') return logged(sql, 'person.passkey_added')
  if (table === 'people_sessions')
    return logged(sql, 'person.signed_in', sql`row.method IN ('password', 'passkey', 'link')`, sql`'method', row.method`)
  if (table !== 'people') return sql`log AS (SELECT 1)`
  return sql`log AS (INSERT INTO activity (account_id, actor, action) SELECT account_id, id, 'person.signed_up' FROM row)`
}

function logged(sql: Sql, action: string, when = sql`true`, detail = sql``) {
  return sql`log AS (
    INSERT INTO activity (account_id, actor, action, detail)
    SELECT p.account_id, p.id, ${action}, jsonb_build_object(${detail}) FROM row JOIN people p ON p.id = row.person_id WHERE ${when}
  )`
}

const list = (sql: Sql, items: Fragment[]): Fragment => items.reduce((before, item) => sql`${before}, ${item}`)

function all(sql: Sql, where: Condition[]) {
  return where.reduce((before, condition) => sql`${before} AND ${one(sql, condition)}`, sql`true`)
}

function one(sql: Sql, { column, operator, value }: Condition) {
  const name = sql(column)
  const it = value as string
  switch (operator) {
    case 'eq':
      return value === null ? sql`${name} IS NULL` : sql`${name} = ${it}`
    case 'ne':
      return value === null ? sql`${name} IS NOT NULL` : sql`${name} <> ${it}`
    case 'lt':
      return sql`${name} < ${it}`
    case 'lte':
      return sql`${name} <= ${it}`
    case 'gt':
      return sql`${name} > ${it}`
    case 'gte':
      return sql`${name} >= ${it}`
    case 'in':
      return sql`${name} = ANY (${value as string[]})`
  }
  // It is better to fail than to return rows that do not match the condition.
  throw new Error(`queries on people do not support ${operator}`)
}

export type SessionRow = {
  id: string
  createdAt: number
  expiresAt: number
  method: string
  ipAddress: string | null
  userAgent: string | null
  lastSeenAt: number
}

export async function listSessions(sql: Sql, personId: string): Promise<SessionRow[]> {
  return sql<SessionRow[]>`
    SELECT id, unix_seconds(created_at) AS "createdAt", unix_seconds(expires_at) AS "expiresAt",
      method, ip_address AS "ipAddress", user_agent AS "userAgent",
      unix_seconds(greatest(last_seen_at, updated_at)) AS "lastSeenAt"
    FROM people_sessions WHERE person_id = ${personId} AND expires_at > now() ORDER BY created_at DESC, id LIMIT 100`
}

export async function isOpenSession(sql: Sql, id: string): Promise<boolean> {
  const [row] = await sql`SELECT 1 FROM people_sessions WHERE id = ${id} AND expires_at > now()`
  return row !== undefined
}

/**
 * Ends all sessions of a person, or all but one, and the links that could start another. The links are ended first, in their own statement:
 * if a link is being used at this moment, we wait for it, and the second statement sees the session it started.
 */
export async function endSessions(database: Database, personId: string, except: string | undefined): Promise<void> {
  await database.begin(async (sql) => {
    await endLinks(sql, sql`SELECT ${personId}`)
    await sql`
      WITH gone AS (DELETE FROM people_sessions WHERE person_id = ${personId} AND id <> ${except ?? ''} RETURNING 1)
      INSERT INTO activity (account_id, actor, action, detail)
      SELECT account_id, id, 'person.signed_out', jsonb_build_object('sessions', (SELECT count(*) FROM gone))
      FROM people WHERE id = ${personId} AND EXISTS (SELECT 1 FROM gone)`
  })
}

export const endLinks = (sql: Sql, people: Fragment) => sql`
  UPDATE links SET used_at = now() WHERE kind = 'sign-in' AND used_at IS NULL
    AND account_id IN (SELECT account_id FROM people WHERE id IN (${people}))`

export type PersonRow = { id: string; email: string; name: string }

export async function findPersonOf(sql: Sql, accountId: string): Promise<PersonRow | undefined> {
  const [row] = await sql<PersonRow[]>`SELECT id, email, name FROM people WHERE account_id = ${accountId}`
  return row
}

export async function findAccountOf(sql: Sql, email: string): Promise<string | undefined> {
  const [row] = await sql<{ accountId: string }[]>`SELECT account_id AS "accountId" FROM people WHERE lower(email) = ${email}`
  return row?.accountId
}

export async function forgetEndedSessions(sql: Sql): Promise<void> {
  await sql`DELETE FROM people_sessions WHERE expires_at < now()`
  await sql`DELETE FROM people_verifications WHERE expires_at < now()`
}
