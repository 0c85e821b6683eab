import type { Database, Sql } from './db.ts'

/**
 * The name of the key created at the first start. It is the name of the file with the key, so that an operator who finds the key in a list
 * knows where it came from.
 */
export const FIRST_RUN_KEY = 'first-run.json'

export type Scope = 'nodes:read' | 'nodes:write' | 'gateway:write' | 'events:read' | 'webhooks:write'
export type KeyRow = {
  id: string
  accountId: string
  scopes: Scope[]
  expiresAt: number | null
  /** After a rotation, when the presented secret stops working. Null for the current secret. */
  secretExpiresAt: number | null
}
/** How long the presented secret remains valid by the database's clock. Null: until something changes. */
export type UsableKey = { key: KeyRow; validMs: number | null }

/**
 * Notifies every replica when a key is changed, rotated or revoked. If a notification is lost, the change takes effect when the cache
 * expires, after at most 5 s.
 */
export const KEYS_CHANGED = 'boltyard_keys_changed'

/** Only finds keys that are currently usable. The database's clock decides, so that an expiry is the same moment for every replica. */
export async function findUsableKey(sql: Sql, hash: Buffer): Promise<UsableKey | undefined> {
  const [row] = await sql<(KeyRow & { validMs: number | null })[]>`
    SELECT id, account_id AS "accountId", scopes, unix_seconds(expires_at) AS "expiresAt", unix_seconds(until) AS "secretExpiresAt",
           (extract(epoch FROM least(expires_at, until) - now()) * 1000)::float8 AS "validMs"
    FROM (SELECT *, CASE WHEN hash = ${hash} THEN NULL ELSE previous_until END AS until
          FROM api_keys WHERE hash = ${hash} OR previous_hash = ${hash}) k
    WHERE NOT disabled AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now()) AND (until IS NULL OR until > now())`
  if (!row) return undefined
  const { validMs, ...key } = row
  return { key, validMs }
}

export type NewKeyRow = {
  id: string
  accountId: string
  name: string
  prefix: string
  hash: Buffer
  scopes: Scope[]
  /** Unix seconds. */
  expiresAt: number | null
  actor: string
}

/** The row lock on the account makes concurrent creations count one after the other, so the limit holds. */
export async function insertKey(
  database: Database,
  key: NewKeyRow,
  maxKeys: number,
): Promise<'created' | 'no such account' | 'limit reached' | 'already expired'> {
  return database.begin(async (sql) => {
    const [account] = await sql`SELECT id FROM accounts WHERE id = ${key.accountId} AND closed_at IS NULL FOR UPDATE`
    if (!account) return 'no such account'
    const [row] = await sql<{ count: number }[]>`
      SELECT count(*)::int AS count FROM api_keys WHERE account_id = ${key.accountId} AND revoked_at IS NULL`
    if ((row?.count ?? 0) >= maxKeys) return 'limit reached'
    const inserted = await sql`
      INSERT INTO api_keys (id, account_id, name, prefix, hash, scopes, expires_at)
      SELECT ${key.id}, ${key.accountId}, ${key.name}, ${key.prefix}, ${key.hash}, ${key.scopes}::text[], e.at
      FROM (SELECT to_timestamp(${key.expiresAt}::float8) AS at) e WHERE e.at IS NULL OR e.at > now() RETURNING 1`
    if (inserted.length === 0) return 'already expired'
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
  expiresAt: number | null
  isExpired: boolean
  rotatedAt: number | null
  /** Until when the secret before the last rotation works; null if it no longer does. */
  previousSecretUntil: number | null
}

const shown = (sql: Sql) => sql`
  id, name, prefix, scopes, disabled, unix_seconds(created_at) AS "createdAt",
  unix_seconds(last_used_at) AS "lastUsedAt", unix_seconds(expires_at) AS "expiresAt",
  coalesce(expires_at <= now(), false) AS "isExpired", unix_seconds(rotated_at) AS "rotatedAt",
  unix_seconds(CASE WHEN previous_until > now() THEN previous_until END) AS "previousSecretUntil"`

/** Oldest first, without revoked keys. */
export async function listKeys(sql: Sql, accountId: string): Promise<KeyView[]> {
  return sql<KeyView[]>`SELECT ${shown(sql)} FROM api_keys WHERE account_id = ${accountId} AND revoked_at IS NULL ORDER BY id`
}

export type KeyName = { accountId: string; keyId: string; actor: string }
/** Only the given fields change. `expiresAt` null: never. */
export type KeyChange = { disabled?: boolean; name?: string; scopes?: Scope[]; expiresAt?: number | null }

/** Undefined: no such key in this account, or `expiresAt` is in the past. Each kind of change has its own entry in the log. */
export async function changeKey(
  sql: Sql,
  key: KeyName,
  { disabled, name, scopes, expiresAt }: KeyChange,
): Promise<KeyView | undefined> {
  const isEdited = name !== undefined || scopes !== undefined || expiresAt !== undefined
  const actions = [
    ...(disabled === undefined ? [] : [disabled ? 'key.disabled' : 'key.enabled']),
    ...(isEdited ? ['key.changed'] : []),
  ]
  const [row] = await sql<KeyView[]>`
    WITH changed AS (
      UPDATE api_keys SET
        disabled = coalesce(${disabled ?? null}, disabled),
        name = coalesce(${name ?? null}, name),
        scopes = coalesce(${scopes ?? null}::text[], scopes),
        expires_at = CASE WHEN ${expiresAt !== undefined} THEN to_timestamp(${expiresAt ?? null}::float8) ELSE expires_at END
      WHERE id = ${key.keyId} AND account_id = ${key.accountId} AND revoked_at IS NULL
        AND coalesce(to_timestamp(${expiresAt ?? null}::float8) > now(), true)
      RETURNING *
    ), log AS (
      INSERT INTO activity (account_id, actor, action, target, detail)
      SELECT account_id, ${key.actor}, action, id,
             CASE action WHEN 'key.changed' THEN jsonb_build_object('name', name, 'scopes', scopes) ELSE jsonb_build_object('name', name) END
      FROM changed, unnest(${actions}::text[]) action
    ), told AS (SELECT pg_notify(${KEYS_CHANGED}, id) FROM changed)
    SELECT ${shown(sql)} FROM changed, told`
  return row
}

/** Revoking is final: a revoked key is never returned again. False: no such key in this account. */
export async function revokeKey(sql: Sql, key: KeyName): Promise<boolean> {
  const rows = await sql`
    WITH changed AS (
      UPDATE api_keys SET revoked_at = now(), previous_hash = NULL, previous_until = NULL
      WHERE id = ${key.keyId} AND account_id = ${key.accountId} AND revoked_at IS NULL
      RETURNING *
    ), log AS (
      INSERT INTO activity (account_id, actor, action, target, detail)
      SELECT account_id, ${key.actor}, 'key.revoked', id, jsonb_build_object('name', name) FROM changed
    )
    SELECT pg_notify(${KEYS_CHANGED}, id) FROM changed`
  return rows.length > 0
}

/**
 * One statement, so that after a crash either the old secret or both are valid as promised. A key never has more than two valid
 * secrets, so a rotation during an overlap ends that overlap. If the response to the earlier rotation was lost, the owner knows
 * only the older secret, so such a rotation is refused unless it requests that (`endOverlap`) or has no overlap of its own.
 * Undefined: no such key in this account, the key has expired, or an earlier overlap has not ended.
 */
export async function rotateKey(
  sql: Sql,
  key: KeyName,
  secret: { hash: Buffer; prefix: string; overlapSeconds: number; endOverlap: boolean },
): Promise<KeyView | undefined> {
  const [row] = await sql<KeyView[]>`
    WITH changed AS (
      UPDATE api_keys SET hash = ${secret.hash}, prefix = ${secret.prefix}, rotated_at = now(),
        previous_hash = CASE WHEN ${secret.overlapSeconds}::int > 0 THEN hash END,
        previous_until = CASE WHEN ${secret.overlapSeconds}::int > 0 THEN now() + ${secret.overlapSeconds}::int * interval '1 second' END
      WHERE id = ${key.keyId} AND account_id = ${key.accountId} AND revoked_at IS NULL
        AND (expires_at IS NULL OR expires_at > now())
        AND (${secret.endOverlap || secret.overlapSeconds === 0} OR previous_until IS NULL OR previous_until <= now())
      RETURNING *
    ), log AS (
      INSERT INTO activity (account_id, actor, action, target, detail)
      SELECT account_id, ${key.actor}, 'key.rotated', id, jsonb_build_object('name', name) FROM changed
    ), told AS (SELECT pg_notify(${KEYS_CHANGED}, id) FROM changed)
    SELECT ${shown(sql)} FROM changed, told`
  return row
}

/** Undefined: no such key in this account. */
export async function findKey(sql: Sql, accountId: string, keyId: string): Promise<KeyView | undefined> {
  const [row] = await sql<KeyView[]>`
    SELECT ${shown(sql)} FROM api_keys WHERE account_id = ${accountId} AND id = ${keyId} AND revoked_at IS NULL`
  return row
}

export async function forgetOldSecrets(sql: Sql): Promise<void> {
  await sql`UPDATE api_keys SET previous_hash = NULL, previous_until = NULL WHERE previous_hash IS NOT NULL AND previous_until < now()`
}

/** Sorted ids: two replicas that write overlapping sets in different orders would deadlock. */
export async function recordUse(sql: Sql, uses: Map<string, Date>): Promise<void> {
  const ids = [...uses.keys()].sort()
  const times = ids.map((id) => uses.get(id)?.toISOString() ?? '')
  await sql`
    UPDATE api_keys k SET last_used_at = greatest(k.last_used_at, u.at)
    FROM (SELECT unnest(${ids}::text[]) AS id, unnest(${times}::timestamptz[]) AS at ORDER BY 1) u WHERE k.id = u.id`
}
