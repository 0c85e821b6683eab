import type { Database, Sql } from './db.ts'

/**
 * The name of the key created at the first start. It is the name of the file with the key, so that an operator who finds the key in a list
 * knows where it came from.
 */
export const FIRST_RUN_KEY = 'first-run.json'

export type Scope = 'nodes:read' | 'nodes:write' | 'gateway:write' | 'events:read' | 'webhooks:write'
export type KeyRow = { id: string; accountId: string; scopes: Scope[] }

/**
 * Notifies every replica when a key is disabled, enabled or revoked. If a notification is lost, the change takes effect when the cache
 * expires, after at most 5 s.
 */
export const KEYS_CHANGED = 'boltyard_keys_changed'

/** Only finds keys that are currently usable. */
export async function findUsableKey(sql: Sql, hash: Buffer): Promise<KeyRow | undefined> {
  const [row] = await sql<KeyRow[]>`
    SELECT id, account_id AS "accountId", scopes FROM api_keys WHERE hash = ${hash} AND NOT disabled AND revoked_at IS NULL`
  return row
}

export type NewKeyRow = {
  id: string
  accountId: string
  name: string
  prefix: string
  hash: Buffer
  scopes: Scope[]
  actor: string
}

/** The row lock on the account makes concurrent creations count one after the other, so the limit holds. */
export async function insertKey(
  database: Database,
  key: NewKeyRow,
  maxKeys: number,
): Promise<'created' | 'no such account' | 'limit reached'> {
  return database.begin(async (sql) => {
    const [account] = await sql`SELECT id FROM accounts WHERE id = ${key.accountId} AND closed_at IS NULL FOR UPDATE`
    if (!account) return 'no such account'
    const [row] = await sql<{ count: number }[]>`
      SELECT count(*)::int AS count FROM api_keys WHERE account_id = ${key.accountId} AND revoked_at IS NULL`
    if ((row?.count ?? 0) >= maxKeys) return 'limit reached'
    await sql`
      INSERT INTO api_keys (id, account_id, name, prefix, hash, scopes)
      VALUES (${key.id}, ${key.accountId}, ${key.name}, ${key.prefix}, ${key.hash}, ${key.scopes})`
    await sql`
      INSERT INTO activity (account_id, actor, action, target, detail)
      VALUES (${key.accountId}, ${key.actor}, 'key.created', ${key.id}, ${sql.json({ name: key.name, scopes: key.scopes })})`
    return 'created'
  })
}

export type KeyView = {
  id: string
  name: string
  prefix: string
  scopes: Scope[]
  disabled: boolean
  createdAt: number
  lastUsedAt: number | null
}

const shown = (sql: Sql) => sql`
  id, name, prefix, scopes, disabled, unix_seconds(created_at) AS "createdAt",
  unix_seconds(last_used_at) AS "lastUsedAt"`

/** Oldest first, without revoked keys. */
export async function listKeys(sql: Sql, accountId: string): Promise<KeyView[]> {
  return sql<KeyView[]>`SELECT ${shown(sql)} FROM api_keys WHERE account_id = ${accountId} AND revoked_at IS NULL ORDER BY id`
}

/** Revoking is final: a revoked key is never returned again. Undefined: no such key in this account. */
export async function changeKey(
  sql: Sql,
  key: { accountId: string; keyId: string; actor: string },
  change: { disabled: boolean } | 'revoke',
): Promise<KeyView | undefined> {
  const revoke = change === 'revoke'
  const action = revoke ? 'key.revoked' : change.disabled ? 'key.disabled' : 'key.enabled'
  const [row] = await sql<KeyView[]>`
    WITH changed AS (
      UPDATE api_keys SET disabled = ${revoke ? sql`disabled` : change.disabled}, revoked_at = ${revoke ? sql`now()` : null}
      WHERE id = ${key.keyId} AND account_id = ${key.accountId} AND revoked_at IS NULL
      RETURNING *
    ), log AS (
      INSERT INTO activity (account_id, actor, action, target, detail)
      SELECT account_id, ${key.actor}, ${action}, id, jsonb_build_object('name', name) FROM changed
    ), told AS (SELECT pg_notify(${KEYS_CHANGED}, id) FROM changed)
    SELECT ${shown(sql)} FROM changed, told`
  return row
}

/** Sorted ids: two replicas that write overlapping sets in different orders would deadlock. */
export async function recordUse(sql: Sql, uses: Map<string, Date>): Promise<void> {
  const ids = [...uses.keys()].sort()
  const times = ids.map((id) => uses.get(id)?.toISOString() ?? '')
  await sql`
    UPDATE api_keys k SET last_used_at = greatest(k.last_used_at, u.at)
    FROM (SELECT unnest(${ids}::text[]) AS id, unnest(${times}::timestamptz[]) AS at ORDER BY 1) u WHERE k.id = u.id`
}
