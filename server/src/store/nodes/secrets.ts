import type { Sql } from '../db.ts'
import type { Status } from './node-state.ts'

export type AccessRow = {
  accountId: string
  host: string
  lightningId: string
  status: Status
  desiredState: string
  keyId: string
  dashboardAccess: Buffer
  /** Null for nodes created before the gateway existed. */
  webhookSecret: Buffer | null
  isDeleted: boolean
  nowMs: number
}

/** What is needed to talk to a node; nothing here can open its seed. */
export async function findAccess(sql: Sql, nodeId: string): Promise<AccessRow | undefined> {
  const [row] = await sql<AccessRow[]>`
    SELECT n.account_id AS "accountId", n.host, n.lightning_id AS "lightningId", n.status, n.desired_state AS "desiredState", s.key_id AS "keyId",
           s.dashboard_access AS "dashboardAccess", s.webhook_secret AS "webhookSecret",
           n.deleted_at IS NOT NULL AS "isDeleted", unix_ms(now()) AS "nowMs"
    FROM nodes n JOIN node_secrets s ON s.node_id = n.id WHERE n.id = ${nodeId}`
  return row
}

export type MaterialRow = { accountId: string; keyId: string; material: Buffer }

export async function findMaterial(sql: Sql, nodeId: string): Promise<MaterialRow | undefined> {
  const [row] = await sql<MaterialRow[]>`
    SELECT n.account_id AS "accountId", s.key_id AS "keyId", s.material
    FROM node_secrets s JOIN nodes n ON n.id = s.node_id WHERE s.node_id = ${nodeId}`
  return row
}

/** The master keys that are still needed. */
export async function sealingKeyIds(sql: Sql): Promise<{ keyId: string; rows: number }[]> {
  return sql<{ keyId: string; rows: number }[]>`
    SELECT key_id AS "keyId", count(*)::int AS rows
    FROM (SELECT key_id FROM node_secrets UNION ALL SELECT key_id FROM protocol_keys
          UNION ALL SELECT key_id FROM webhooks WHERE deleted_at IS NULL
          UNION ALL SELECT key_id FROM people_two_factor) sealed GROUP BY key_id`
}

export type SealedRow = {
  nodeId: string
  accountId: string
  dashboardAccess: Buffer
  webhookSecret: Buffer | null
  material: Buffer
}

export async function secretsUnder(sql: Sql, keyId: string, limit: number): Promise<SealedRow[]> {
  return sql<SealedRow[]>`
    SELECT s.node_id AS "nodeId", n.account_id AS "accountId", s.dashboard_access AS "dashboardAccess",
           s.webhook_secret AS "webhookSecret", s.material
    FROM node_secrets s JOIN nodes n ON n.id = s.node_id WHERE s.key_id = ${keyId} ORDER BY s.node_id LIMIT ${limit}`
}

/** Only replaces the value that was read: another replica may have resealed it meanwhile. */
export async function replaceSecrets(
  sql: Sql,
  nodeId: string,
  oldKeyId: string,
  next: { keyId: string; dashboardAccess: Buffer; webhookSecret: Buffer | null; material: Buffer },
): Promise<void> {
  await sql`
    UPDATE node_secrets SET key_id = ${next.keyId}, dashboard_access = ${next.dashboardAccess},
      webhook_secret = ${next.webhookSecret}, material = ${next.material}
    WHERE node_id = ${nodeId} AND key_id = ${oldKeyId}`
}
