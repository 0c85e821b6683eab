import type { ActivityRow } from './activity.ts'
import type { Fragment, Sql } from './db.ts'

export type ActivityKind = 'nodes' | 'payments' | 'keys' | 'credit' | 'people' | 'webhooks'
export type ActivityFilter = {
  kind?: ActivityKind
  nodeId?: string
  keyId?: string
  actor?: string
  from?: number
  to?: number
}
/** `nodeId`: the node of a payment. */
export type FoundActivity = ActivityRow & { nodeId: string | null }

const ACTIONS: Record<Exclude<ActivityKind, 'payments'>, string[]> = {
  nodes: ['node.%'],
  keys: ['key.%'],
  credit: ['credit.%'],
  people: ['person.%', 'link.%', 'account.%'],
  webhooks: ['webhook.%'],
}

/**
 * Newest first; with `before`, only older entries. Payments are searched separately: they are most of the log, and all other entries have
 * their own index. Without a filter by node, the nodes of payments are looked up only for the rows that are returned.
 */
export async function searchActivity(
  sql: Sql,
  accountId: string,
  filter: ActivityFilter,
  before: number | undefined,
  limit: number,
): Promise<FoundActivity[]> {
  const { kind, nodeId, keyId, actor, from, to } = filter
  const none = sql``
  const common = (id: Fragment, at: Fragment) => sql`
    account_id = ${accountId} AND ${id} > 0 ${before === undefined ? none : sql`AND ${id} < ${before}`}
      ${from === undefined ? none : sql`AND ${at} >= to_timestamp(${from}::bigint)`}
      ${to === undefined ? none : sql`AND ${at} < to_timestamp(${to}::bigint)`} ${actor === undefined ? none : byActor(sql, actor)}`
  const others = sql`
    SELECT id, at, actor, action, target, detail FROM activity
    WHERE ${common(sql`id`, sql`at`)} AND action NOT LIKE 'payment.%'
      ${kind === undefined || kind === 'payments' ? none : sql`AND action LIKE ANY (${ACTIONS[kind]})`}
      ${nodeId === undefined ? none : sql`AND (target = ${nodeId} OR actor = ${nodeId})`}
      ${keyId === undefined ? none : sql`AND (target = ${keyId} OR actor = ${keyId})`}
    ORDER BY id DESC LIMIT ${limit}`
  const ofNode = (payment: Fragment) =>
    nodeId === undefined
      ? none
      : sql`AND EXISTS (SELECT 1 FROM gateway_payments p WHERE p.id = ${payment} AND p.account_id = ${accountId} AND p.node_id = ${nodeId})`
  const byKey = keyId === undefined ? none : sql`AND actor = ${keyId}`
  const received = sql`
    SELECT id, at, actor, action, target, detail FROM activity
    WHERE ${common(sql`id`, sql`at`)} AND action LIKE 'payment.%' ${byKey} ${ofNode(sql`activity.target`)}
    ORDER BY id DESC LIMIT ${limit}`
  const validated = sql`
    SELECT log_id, paid_at, actor, 'payment.paid', id, '{}'::jsonb FROM paid_payments
    WHERE ${common(sql`log_id`, sql`paid_at`)} ${byKey} ${ofNode(sql`paid_payments.id`)}
    ORDER BY log_id DESC LIMIT ${limit}`
  const payments = sql`(${received}) UNION ALL (${validated})`
  const found = kind === 'payments' ? payments : kind === undefined ? sql`(${others}) UNION ALL ${payments}` : sql`${others}`
  return sql<FoundActivity[]>`
    SELECT found.id, unix_seconds(found.at) AS at, found.actor, found.action, found.target, found.detail, p.node_id AS "nodeId"
    FROM (SELECT * FROM (${found}) every ORDER BY id DESC LIMIT ${limit}) found LEFT JOIN LATERAL (
      SELECT node_id FROM gateway_payments
      WHERE found.action LIKE 'payment.%' AND id = found.target AND account_id = ${accountId} LIMIT 1) p ON true
    ORDER BY found.id DESC`
}

/** 'service' stands for the service itself and for nodes, which are the actor of what they report. */
const byActor = (sql: Sql, actor: string) =>
  actor === 'service'
    ? sql`AND (starts_with(actor, 'node_') OR actor IN ('credit', 'system', 'first run'))`
    : sql`AND actor = ${actor}`

export type Named = { id: string; name: string; isGone: boolean }
export type NamedKey = Named & { prefix: string }

const namedNodes = (sql: Sql, accountId: string) => sql`
  SELECT id, name, deleted_at IS NOT NULL AS "isGone" FROM nodes WHERE account_id = ${accountId}`
const namedKeys = (sql: Sql, accountId: string) => sql`
  SELECT id, name, revoked_at IS NOT NULL AS "isGone" FROM api_keys WHERE account_id = ${accountId}`
const namedPeople = (sql: Sql, accountId: string) => sql`
  SELECT id, email AS name, false AS "isGone" FROM people WHERE account_id = ${accountId}`

/**
 * Current names, or the last name of something deleted. Only of this account: the actor of a top-up is the treasury's node, which
 * belongs to another account.
 */
export async function findNames(sql: Sql, accountId: string, ids: string[]): Promise<Named[]> {
  return sql<Named[]>`
    ${namedNodes(sql, accountId)} AND id = ANY (${ids})
    UNION ALL ${namedKeys(sql, accountId)} AND id = ANY (${ids})
    UNION ALL ${namedPeople(sql, accountId)} AND id = ANY (${ids})
    UNION ALL SELECT id, url, deleted_at IS NOT NULL FROM webhooks WHERE account_id = ${accountId} AND id = ANY (${ids})`
}

export async function listSubjects(
  sql: Sql,
  accountId: string,
  limit: number,
): Promise<{ nodes: Named[]; keys: NamedKey[]; people: Named[] }> {
  const [nodes, keys, people] = await Promise.all([
    sql<Named[]>`${namedNodes(sql, accountId)} ORDER BY id DESC LIMIT ${limit}`,
    sql<NamedKey[]>`
      SELECT id, name, revoked_at IS NOT NULL AS "isGone", prefix FROM api_keys
      WHERE account_id = ${accountId} ORDER BY id DESC LIMIT ${limit}`,
    sql<Named[]>`${namedPeople(sql, accountId)} ORDER BY id LIMIT ${limit}`,
  ])
  return { nodes, keys, people }
}
