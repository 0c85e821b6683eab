import { unauthorized } from '../../problems.ts'
import { logActivity } from '../activity.ts'
import type { Sql } from '../db.ts'
import type { DesiredState, History, Status } from './node-state.ts'
import { columns, type NodeRow } from './nodes.ts'

/** Held until the end of the transaction: concurrent creations are counted, numbered and charged one after the other. */
export async function lockCreations(sql: Sql, accountId: string, host: string): Promise<void> {
  const [account] = await sql`SELECT 1 FROM accounts WHERE id = ${accountId} AND closed_at IS NULL FOR NO KEY UPDATE`
  // The account was deleted after the caller’s key or session was checked.
  if (!account) throw unauthorized()
  // Other accounts use the same host, and the account's row lock does not block them.
  await sql`SELECT pg_advisory_xact_lock(hashtextextended(${`nodes of ${host}`}, 0))`
}

export type NodeCounts = {
  ofAccount: number
  /** Excludes the treasury's nodes. */
  onHost: number
  /** The account signed up on its own, and has neither topped up nor received credit from the operator. */
  isNewcomer: boolean
}

/** After `lockCreations`, no other transaction changes these counts. */
export async function countNodes(sql: Sql, accountId: string, host: string): Promise<NodeCounts> {
  const [counts] = await sql<NodeCounts[]>`
    SELECT (SELECT count(*) FROM nodes WHERE account_id = ${accountId} AND deleted_at IS NULL)::int AS "ofAccount",
           (SELECT count(*) FROM nodes n JOIN accounts a ON a.id = n.account_id
              WHERE n.host = ${host} AND n.deleted_at IS NULL AND NOT a.is_treasury)::int AS "onHost",
           (SELECT is_self_registered AND NOT EXISTS (
              SELECT 1 FROM credit_entries e WHERE e.account_id = ${accountId} AND e.kind IN ('top_up', 'operator') AND e.amount_msat > 0)
            FROM accounts WHERE id = ${accountId}) AS "isNewcomer"`
  if (!counts) throw new Error('a count returned no row')
  return counts
}

/** The number of nodes the account has ever created, including this one. Numbers are not reused. */
export async function takeNodeNumber(sql: Sql, accountId: string): Promise<number> {
  const [row] = await sql<{ number: number }[]>`
    UPDATE accounts SET nodes_made = nodes_made + 1 WHERE id = ${accountId} RETURNING nodes_made AS number`
  if (!row) throw new Error('the account no longer exists')
  return row.number
}

export type NewNode = {
  id: string
  accountId: string
  host: string
  lightningId: string
  name: string
  autoLiquidity: string
  accessMode: string
  status: Status
  desired: { state: DesiredState; version: string; run: number }
  /** `wantedSinceMs` is set by the database's clock. */
  history: Omit<History, 'wantedSinceMs'>
  secrets: { keyId: string; dashboardAccess: Buffer; webhookSecret: Buffer; material: Buffer }
  actor: string
  /** Its wallet existed before. */
  adopted?: { releases: string[] }
}

/**
 * Once the transaction commits, the node, its desired state and its credentials are durable. What an adopted wallet holds is unknown until
 * its channels are online, so it counts as funds.
 */
export async function insertNode(sql: Sql, node: NewNode): Promise<NodeRow> {
  const { desired, secrets, adopted } = node
  const [row] = await sql<NodeRow[]>`
    INSERT INTO nodes (id, account_id, host, lightning_id, name, auto_liquidity, access_mode, status, desired_state, desired_version,
                       desired_run, history, has_funds, adopted_at, releases)
    VALUES (${node.id}, ${node.accountId}, ${node.host}, ${node.lightningId}, ${node.name}, ${node.autoLiquidity}, ${node.accessMode},
            ${node.status}, ${desired.state}, ${desired.version}, ${desired.run},
            ${sql.json(node.history)}::jsonb || jsonb_build_object('wantedSinceMs', unix_ms(clock_timestamp())),
            ${adopted !== undefined}, ${adopted ? sql`now()` : null}, ${adopted?.releases ?? []})
    RETURNING ${columns(sql)}`
  if (!row) throw new Error('an INSERT returned no row')
  await sql`
    INSERT INTO node_secrets (node_id, key_id, dashboard_access, webhook_secret, material)
    VALUES (${node.id}, ${secrets.keyId}, ${secrets.dashboardAccess}, ${secrets.webhookSecret}, ${secrets.material})`
  await logActivity(sql, node.accountId, node.actor, adopted ? 'node.adopted' : 'node.created', node.id)
  return row
}
