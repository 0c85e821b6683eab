import { unauthorized } from '../../problems.ts'
import type { Database, Sql } from '../db.ts'

/** Notifies every process that deliveries may be due. */
export const DELIVERIES_DUE = 'boltyard_deliveries_due'

export type DisabledReason = 'gone' | 'failing'

export type WebhookView = {
  id: string
  url: string
  types: string[] | null
  nodeIds: string[] | null
  description: string | null
  enabled: boolean
  disabledReason: DisabledReason | null
  createdAt: number
  lastSuccessAt: number | null
  failingSince: number | null
}

export type WebhookSettings = Pick<WebhookView, 'url' | 'types' | 'nodeIds' | 'description'>
/** The secret, sealed under the master key with this id. */
export type SealedSecret = { keyId: string; secret: Buffer }
export type NewWebhookRow = WebhookSettings & SealedSecret & { id: string; accountId: string; actor: string }
export type WebhookKey = { accountId: string; id: string; actor: string }

const shown = (sql: Sql) => sql`
  id, url, types, node_ids AS "nodeIds", description, enabled, disabled_reason AS "disabledReason", unix_seconds(created_at) AS "createdAt",
  unix_seconds(last_success_at) AS "lastSuccessAt", unix_seconds(failing_since) AS "failingSince"`

/** Whether the webhook `w` gets the event `e`. */
export const isWanted = (sql: Sql) => sql`
  (w.types IS NULL OR e.type = ANY (w.types) OR split_part(e.type, '.', 1) || '.*' = ANY (w.types))
    AND (w.node_ids IS NULL OR e.node_id = ANY (w.node_ids))`

/** The row lock on the account makes concurrent creations count one after the other, so the limit holds. */
export async function insertWebhook(
  database: Database,
  webhook: NewWebhookRow,
  maxWebhooks: number,
): Promise<WebhookView | 'limit reached'> {
  const { id, accountId, url, types, nodeIds, description, keyId, secret, actor } = webhook
  return database.begin(async (sql) => {
    const [account] = await sql`SELECT id FROM accounts WHERE id = ${accountId} AND closed_at IS NULL FOR UPDATE`
    // The account was deleted after the caller’s key or session was checked.
    if (!account) throw unauthorized()
    if ((await listWebhooks(sql, accountId)).length >= maxWebhooks) return 'limit reached'
    const [row] = await sql<[WebhookView]>`
      WITH created AS (
        INSERT INTO webhooks (id, account_id, url, types, node_ids, description, key_id, secret)
        VALUES (${id}, ${accountId}, ${url}, ${types}, ${nodeIds}, ${description}, ${keyId}, ${secret})
        RETURNING *
      ), log AS (
        INSERT INTO activity (account_id, actor, action, target) SELECT account_id, ${actor}, 'webhook.created', id FROM created
      )
      SELECT ${shown(sql)} FROM created`
    return row
  })
}

/** Oldest first. */
export async function listWebhooks(sql: Sql, accountId: string): Promise<WebhookView[]> {
  return sql<WebhookView[]>`SELECT ${shown(sql)} FROM webhooks WHERE account_id = ${accountId} AND deleted_at IS NULL ORDER BY id`
}

export async function findWebhook(sql: Sql, accountId: string, id: string): Promise<WebhookView | undefined> {
  const [row] = await sql<WebhookView[]>`
    SELECT ${shown(sql)} FROM webhooks WHERE id = ${id} AND account_id = ${accountId} AND deleted_at IS NULL`
  return row
}

/** A new URL, or enabling, resets `failingSince`: the webhook is disabled only after it has failed for the full time again. */
export async function changeWebhook(
  sql: Sql,
  { accountId, id, actor }: WebhookKey,
  { url, types, nodeIds, description, enabled }: Partial<WebhookSettings & { enabled: boolean }>,
): Promise<WebhookView | undefined> {
  const [row] = await sql<WebhookView[]>`
    WITH before AS (
      SELECT id, enabled AS was_enabled FROM webhooks WHERE id = ${id} AND account_id = ${accountId} AND deleted_at IS NULL FOR UPDATE
    ), changed AS (
      UPDATE webhooks SET url = ${url ?? sql`url`}, types = ${types === undefined ? sql`types` : types},
        node_ids = ${nodeIds === undefined ? sql`node_ids` : nodeIds},
        description = ${description === undefined ? sql`description` : description},
        enabled = ${enabled ?? sql`enabled`}, disabled_reason = ${enabled === undefined ? sql`disabled_reason` : null},
        failing_since = ${enabled || url !== undefined ? null : sql`failing_since`}
      FROM before WHERE webhooks.id = before.id
      RETURNING webhooks.*, was_enabled
    ), log AS (
      INSERT INTO activity (account_id, actor, action, target)
      SELECT account_id, ${actor}, CASE WHEN enabled THEN 'webhook.enabled' ELSE 'webhook.disabled' END, id
      FROM changed WHERE enabled <> was_enabled
    ), told AS MATERIALIZED (SELECT count(pg_notify(${DELIVERIES_DUE}, '')) FROM changed WHERE enabled)
    SELECT ${shown(sql)} FROM changed, told`
  return row
}

/** No new attempt begins; those under way continue. The secrets are removed now, everything else by `removeDeletedWebhooks`. */
export async function deleteWebhook(sql: Sql, { accountId, id, actor }: WebhookKey): Promise<boolean> {
  const rows = await sql`
    WITH deleted AS (
      UPDATE webhooks SET deleted_at = now(), enabled = false, secret = '', previous_secret = NULL, previous_until = NULL
      WHERE id = ${id} AND account_id = ${accountId} AND deleted_at IS NULL
      RETURNING id, account_id
    ), log AS (
      INSERT INTO activity (account_id, actor, action, target) SELECT account_id, ${actor}, 'webhook.deleted', id FROM deleted
    )
    SELECT id FROM deleted`
  return rows.length > 0
}

/** Returns how many deliveries were removed. */
export async function removeDeletedWebhooks(sql: Sql, limit: number): Promise<number> {
  const rows = await sql`
    DELETE FROM webhook_deliveries d USING (
      SELECT webhook_id, seq FROM webhook_deliveries WHERE webhook_id IN (SELECT id FROM webhooks WHERE deleted_at IS NOT NULL) LIMIT ${limit}) old
    WHERE d.webhook_id = old.webhook_id AND d.seq = old.seq RETURNING 1`
  // Events that were being numbered when the webhook was deleted may still have added deliveries.
  await sql`
    DELETE FROM webhooks w WHERE deleted_at < now() - interval '1 hour' AND NOT EXISTS (SELECT FROM webhook_deliveries WHERE webhook_id = w.id)`
  return rows.length
}

export type SigningSecrets = SealedSecret & {
  /** Null after its grace period. */
  previousSecret: Buffer | null
}
export type WebhookTarget = SigningSecrets & { url: string; nowSeconds: number }

export const signingSecrets = (sql: Sql) => sql`
  w.key_id AS "keyId", w.secret, CASE WHEN w.previous_until > now() THEN w.previous_secret END AS "previousSecret"`

/** What is needed to send a request to the webhook. */
export async function findTarget(sql: Sql, accountId: string, id: string): Promise<WebhookTarget | undefined> {
  const [row] = await sql<WebhookTarget[]>`
    SELECT ${signingSecrets(sql)}, w.url, unix_seconds(now()) AS "nowSeconds" FROM webhooks w
    WHERE w.id = ${id} AND w.account_id = ${accountId} AND w.deleted_at IS NULL`
  return row
}

/** The current secret becomes the previous one. `reseal` gets it, because both must be sealed under the same master key. */
export async function replaceSecret(
  database: Database,
  { accountId, id, actor }: WebhookKey,
  graceSeconds: number,
  reseal: (current: SealedSecret) => SealedSecret & { previousSecret: Buffer },
): Promise<boolean> {
  return database.begin(async (sql) => {
    const [current] = await sql<SealedSecret[]>`
      SELECT key_id AS "keyId", secret FROM webhooks WHERE id = ${id} AND account_id = ${accountId} AND deleted_at IS NULL FOR UPDATE`
    if (!current) return false
    const next = reseal(current)
    await sql`
      UPDATE webhooks SET key_id = ${next.keyId}, secret = ${next.secret}, previous_secret = ${graceSeconds > 0 ? next.previousSecret : null},
        previous_until = now() + ${graceSeconds} * interval '1 second'
      WHERE id = ${id}`
    await sql`INSERT INTO activity (account_id, actor, action, target) VALUES (${accountId}, ${actor}, 'webhook.secret_rotated', ${id})`
    return true
  })
}

export type SealedWebhook = { id: string; accountId: string; secret: Buffer; previousSecret: Buffer | null }

export async function webhooksUnder(sql: Sql, keyId: string, limit: number): Promise<SealedWebhook[]> {
  return sql<SealedWebhook[]>`
    SELECT id, account_id AS "accountId", secret, previous_secret AS "previousSecret" FROM webhooks
    WHERE key_id = ${keyId} AND deleted_at IS NULL ORDER BY id LIMIT ${limit}`
}

/** Replaces only the secret that was read: another replica may have resealed it, or the owner may have rotated it. */
export async function replaceSealed(sql: Sql, before: SealedSecret, webhook: SealedWebhook & { keyId: string }): Promise<void> {
  const { id, keyId, secret, previousSecret } = webhook
  await sql`
    UPDATE webhooks SET key_id = ${keyId}, secret = ${secret}, previous_secret = ${previousSecret}
    WHERE id = ${id} AND key_id = ${before.keyId} AND secret = ${before.secret} AND deleted_at IS NULL`
}
