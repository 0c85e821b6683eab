import type { Sql } from '../db.ts'

export type SealedTotp = { keyId: string; secret: Buffer }
export type TwoFactorRow = SealedTotp & {
  isOn: boolean
  confirmedAt: number | null
  lastStep: number
  recoveryCodesLeft: number
  nowSeconds: number
}

/** A set-up that was not confirmed within the hour counts as abandoned. */
const isFresh = (sql: Sql) => sql`(t.confirmed_at IS NOT NULL OR t.created_at > now() - interval '1 hour')`

export async function findTwoFactor(sql: Sql, personId: string): Promise<TwoFactorRow | undefined> {
  const [row] = await sql<TwoFactorRow[]>`
    SELECT t.key_id AS "keyId", t.secret, t.confirmed_at IS NOT NULL AS "isOn", unix_seconds(t.confirmed_at) AS "confirmedAt",
      t.last_step::int AS "lastStep", unix_seconds(now()) AS "nowSeconds",
      (SELECT count(*) FROM people_recovery_codes c WHERE c.person_id = t.person_id AND c.used_at IS NULL)::int AS "recoveryCodesLeft"
    FROM people_two_factor t WHERE t.person_id = ${personId} AND ${isFresh(sql)}`
  return row
}

/** A set-up that was never finished protects nothing, and needs its master key as long as it is kept. */
export async function forgetTwoFactorSetups(sql: Sql): Promise<void> {
  await sql`DELETE FROM people_two_factor WHERE confirmed_at IS NULL AND created_at < now() - interval '1 day'`
}

export async function hasTwoFactor(sql: Sql, accountId: string): Promise<boolean> {
  const [row] = await sql`
    SELECT 1 FROM people_two_factor t JOIN people p ON p.id = t.person_id
    WHERE p.account_id = ${accountId} AND t.confirmed_at IS NOT NULL`
  return row !== undefined
}

/** Replaces an unconfirmed secret, never one that is in use. */
export async function beginTwoFactor(sql: Sql, personId: string, { keyId, secret }: SealedTotp): Promise<boolean> {
  const rows = await sql`
    INSERT INTO people_two_factor AS t (person_id, key_id, secret) VALUES (${personId}, ${keyId}, ${secret})
    ON CONFLICT (person_id) DO UPDATE SET key_id = excluded.key_id, secret = excluded.secret, created_at = now(), last_step = 0
      WHERE t.confirmed_at IS NULL
    RETURNING 1`
  return rows.length > 0
}

/** Only confirms the secret that the code was checked against: another window may have restarted the set-up meanwhile. */
export async function confirmTwoFactor(sql: Sql, personId: string, secret: Buffer, step: number): Promise<boolean> {
  const rows = await sql`
    WITH row AS (
      UPDATE people_two_factor SET confirmed_at = now(), last_step = ${step}
      WHERE person_id = ${personId} AND secret = ${secret} AND confirmed_at IS NULL RETURNING person_id
    ), ${logged(sql, 'person.two_factor_enabled')} SELECT 1 FROM row`
  return rows.length > 0
}

/** Of any number of callers with the same code, on any replica, exactly one gets true. */
export async function claimStep(sql: Sql, personId: string, secret: Buffer, step: number): Promise<boolean> {
  const rows = await sql`
    UPDATE people_two_factor SET last_step = ${step}
    WHERE person_id = ${personId} AND secret = ${secret} AND confirmed_at IS NOT NULL AND last_step < ${step} RETURNING 1`
  return rows.length > 0
}

/** Of any number of callers with the same recovery code, exactly one gets true. */
export async function claimRecoveryCode(sql: Sql, personId: string, hash: Buffer): Promise<boolean> {
  const rows = await sql`
    WITH row AS (
      UPDATE people_recovery_codes SET used_at = now() WHERE person_id = ${personId} AND code_hash = ${hash} AND used_at IS NULL
      RETURNING person_id
    ), ${logged(sql, 'person.recovery_code_used')} SELECT 1 FROM row`
  return rows.length > 0
}

/** Call it in a transaction, so that the earlier codes are replaced together. */
export async function replaceRecoveryCodes(sql: Sql, personId: string, hashes: Buffer[]): Promise<void> {
  await sql`DELETE FROM people_recovery_codes WHERE person_id = ${personId}`
  for (const hash of hashes) await sql`INSERT INTO people_recovery_codes (person_id, code_hash) VALUES (${personId}, ${hash})`
}

export async function logRecoveryCodes(sql: Sql, personId: string): Promise<void> {
  await sql`
    WITH row AS (SELECT ${personId}::text AS person_id), ${logged(sql, 'person.recovery_codes_replaced')} SELECT 1 FROM row`
}

/** Removes the secret and the recovery codes; true if two-factor sign-in was on. */
export async function endTwoFactor(sql: Sql, personId: string): Promise<boolean> {
  const rows = await sql`
    WITH gone AS (DELETE FROM people_two_factor WHERE person_id = ${personId} RETURNING person_id, confirmed_at),
    row AS (SELECT person_id FROM gone WHERE confirmed_at IS NOT NULL),
    ${logged(sql, 'person.two_factor_disabled')} SELECT 1 FROM row`
  return rows.length > 0
}

const logged = (sql: Sql, action: string) => sql`log AS (
  INSERT INTO activity (account_id, actor, action) SELECT p.account_id, p.id, ${action} FROM row JOIN people p ON p.id = row.person_id)`

export async function twoFactorUnder(sql: Sql, keyId: string, limit: number): Promise<{ personId: string; secret: Buffer }[]> {
  return sql<{ personId: string; secret: Buffer }[]>`
    SELECT person_id AS "personId", secret FROM people_two_factor WHERE key_id = ${keyId} ORDER BY person_id LIMIT ${limit}`
}

/** Only replaces the value that was read: another replica may have resealed it, or its owner replaced it. */
export async function replaceTotp(
  sql: Sql,
  personId: string,
  before: { keyId: string; secret: Buffer },
  { keyId, secret }: SealedTotp,
): Promise<void> {
  await sql`
    UPDATE people_two_factor SET key_id = ${keyId}, secret = ${secret}
    WHERE person_id = ${personId} AND key_id = ${before.keyId} AND secret = ${before.secret}`
}
