import type { Fragment, Sql } from '../db.ts'
import { unpostedMsat } from './usage.ts'

const balanceMsat = (sql: Sql, accountId: Fragment | string) => sql`
  (SELECT coalesce(sum(e.amount_msat), 0) FROM credit_entries e WHERE e.account_id = ${accountId})::bigint`

/** The ledger's balance minus unposted usage, in one statement, so that usage being posted at this moment counts exactly once. */
const leftMsat = (sql: Sql, accountId: Fragment | string, priceMsatPerDay: number) => sql`
  (${balanceMsat(sql, accountId)} - ${unpostedMsat(sql, accountId, priceMsatPerDay)})`

/**
 * The credit missing for one day of the nodes that are charged now and of `more` nodes; 0 if none is missing. `nodes` is their
 * number. Call it in the transaction that adds or starts a node: the account's row lock admits one caller at a time, and a
 * starting node already counts, so two nodes cannot start on the credit for one.
 */
export async function missingCredit(
  sql: Sql,
  accountId: string,
  priceMsatPerDay: number,
  more: number,
): Promise<{ missingMsat: number; nodes: number }> {
  const nothing = { missingMsat: 0, nodes: 0 }
  if (priceMsatPerDay === 0) return nothing
  const [account] = await sql<{ isTreasury: boolean }[]>`
    SELECT is_treasury AS "isTreasury" FROM accounts WHERE id = ${accountId} FOR NO KEY UPDATE`
  // The treasury's nodes are free, and a stopped one must be able to receive payments again.
  if (account?.isTreasury) return nothing
  const [row] = await sql<{ leftMsat: number; costing: number }[]>`
    SELECT ${leftMsat(sql, accountId, priceMsatPerDay)} AS "leftMsat",
           (SELECT count(*) FROM nodes n JOIN accounts a ON a.id = n.account_id
            WHERE n.account_id = ${accountId} AND n.deleted_at IS NULL AND n.desired_state = 'running'
              AND (node_costs(n, a) OR n.operation = 'start'))::int AS costing`
  if (!row) throw new Error('the credit of an account cannot be read')
  const nodes = row.costing + more
  return { missingMsat: Math.max(0, priceMsatPerDay * nodes - row.leftMsat), nodes }
}

export type NewEntry = { accountId: string; amountMsat: number; kind: string; reason: string; actor: string }
export type EntryRow = {
  id: number
  amountMsat: number
  kind: string
  reason: string
  reference: string | null
  createdAt: number
}

const entryFields = (sql: Sql) => sql`
  id, amount_msat AS "amountMsat", kind, reason, reference, unix_seconds(created_at) AS "createdAt"`

/**
 * Undefined: no such account, or it was deleted. A number: the balance, which is too low for the deduction. Call it in a transaction: the
 * account's row lock keeps two callers from deducting the same credit.
 */
export async function insertCredit(sql: Sql, entry: NewEntry): Promise<LedgerRow | number | undefined> {
  const [account] = await sql`SELECT 1 FROM accounts WHERE id = ${entry.accountId} AND closed_at IS NULL FOR NO KEY UPDATE`
  if (!account) return undefined
  const [row] = await sql<{ balance: number }[]>`SELECT ${balanceMsat(sql, entry.accountId)} AS balance`
  const balance = row?.balance ?? 0
  if (entry.amountMsat < 0 && balance + entry.amountMsat < 0) return balance
  const [inserted] = await sql<EntryRow[]>`
    INSERT INTO credit_entries (account_id, amount_msat, kind, reason)
    VALUES (${entry.accountId}, ${entry.amountMsat}, ${entry.kind}, ${entry.reason}) RETURNING ${entryFields(sql)}`
  await sql`
    INSERT INTO activity (account_id, actor, action, detail) VALUES (${entry.accountId}, ${entry.actor}, 'credit.added',
      ${sql.json({ amountMsat: entry.amountMsat, reason: entry.reason })})`
  return inserted && { ...inserted, balanceAfterMsat: balance + entry.amountMsat }
}

export type LedgerRow = EntryRow & { balanceAfterMsat: number }

/** Newest first, each with the balance after it, so that a page adds up without the pages before it. */
export async function listEntries(sql: Sql, accountId: string, before: number | undefined, limit: number): Promise<LedgerRow[]> {
  const wanted = sql`account_id = ${accountId} ${before === undefined ? sql`` : sql`AND id < ${before}`}`
  return sql<LedgerRow[]>`
    SELECT ${entryFields(sql)},
           (total.msat - coalesce(sum(amount_msat) OVER (ORDER BY id DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0))::bigint
             AS "balanceAfterMsat"
    FROM (SELECT * FROM credit_entries WHERE ${wanted} ORDER BY id DESC LIMIT ${limit}) page,
         (SELECT sum(amount_msat) AS msat FROM credit_entries WHERE ${wanted}) total
    ORDER BY id DESC`
}

export type WarningLevel = 'none' | 'week' | 'day' | 'empty'

export type CreditRow = {
  accountId: string
  balanceMsat: number
  unpostedMsat: number
  /** `costing`: nodes charged now. `running`: all that should run, including failed ones, which cost nothing until they recover. */
  costing: number
  running: number
  level: WarningLevel
  creditId: number
  newestCreditId: number
  /** By the database's clock; null while there is credit. */
  emptyForSeconds: number | null
  emptySince: number | null
  now: number
}

const creditColumns = (sql: Sql, priceMsatPerDay: number) => sql`
  a.id AS "accountId", ${balanceMsat(sql, sql`a.id`)} AS "balanceMsat",
  ${unpostedMsat(sql, sql`a.id`, priceMsatPerDay)} AS "unpostedMsat", n.costing, n.running, coalesce(w.level, 'none') AS level,
  coalesce(w.credit_id, 0)::bigint AS "creditId",
  (SELECT coalesce(max(e.id), 0) FROM credit_entries e WHERE e.account_id = a.id AND e.amount_msat > 0)::bigint AS "newestCreditId",
  extract(epoch FROM now() - w.empty_since)::float8 AS "emptyForSeconds",
  unix_seconds(w.empty_since) AS "emptySince", unix_seconds(now()) AS now`
const creditTables = (sql: Sql) => sql`
  accounts a LEFT JOIN credit_warnings w ON w.account_id = a.id CROSS JOIN LATERAL (
    SELECT (count(*) FILTER (WHERE node_costs(n, a)))::int AS costing, count(*)::int AS running FROM nodes n
    WHERE n.account_id = a.id AND n.deleted_at IS NULL AND n.desired_state = 'running' AND NOT a.is_treasury) n`

export async function findCredit(sql: Sql, accountId: string, priceMsatPerDay: number): Promise<CreditRow | undefined> {
  const [row] = await sql<CreditRow[]>`
    SELECT ${creditColumns(sql, priceMsatPerDay)} FROM ${creditTables(sql)} WHERE a.id = ${accountId}`
  return row
}

/** Accounts whose warning may change: those with nodes that should run, and those that were warned or have run out of credit. */
export async function listWatchedCredit(sql: Sql, priceMsatPerDay: number): Promise<CreditRow[]> {
  return sql<CreditRow[]>`
    SELECT ${creditColumns(sql, priceMsatPerDay)} FROM ${creditTables(sql)}
    WHERE NOT a.is_treasury AND (n.running > 0 OR w.level <> 'none' OR w.empty_since IS NOT NULL) ORDER BY a.id`
}

export type WarningChange = {
  level: WarningLevel
  isEmpty: boolean
  /** The warning to send; undefined if it was already sent. */
  tells: { level: WarningLevel; runwaySeconds: number | null } | undefined
}

/** If several processes see the same change, exactly one records it and warns. */
export async function recordWarning(sql: Sql, before: CreditRow, { level, isEmpty, tells }: WarningChange): Promise<void> {
  await sql`
    WITH recorded AS (
      INSERT INTO credit_warnings AS w (account_id, level, credit_id, empty_since)
      VALUES (${before.accountId}, ${level}, ${before.newestCreditId}, ${isEmpty ? sql`now()` : null})
      ON CONFLICT (account_id) DO UPDATE SET level = excluded.level, credit_id = excluded.credit_id,
        empty_since = CASE WHEN ${isEmpty} THEN coalesce(w.empty_since, now()) END,
        exhausted_at = CASE WHEN ${isEmpty} THEN w.exhausted_at END
      WHERE w.level = ${before.level} AND w.credit_id = ${before.creditId}
      RETURNING account_id
    )
    INSERT INTO activity (account_id, actor, action, detail)
    SELECT account_id, 'credit', 'credit.warning', ${sql.json(tells ?? {})} FROM recorded WHERE ${tells !== undefined}`
}

const outOfGrace = (sql: Sql, accountId: string, priceMsatPerDay: number, graceSeconds: number) => sql`
  w.account_id = ${accountId} AND w.empty_since <= now() - ${graceSeconds} * interval '1 second'
    AND ${leftMsat(sql, sql`w.account_id`, priceMsatPerDay)} <= 0`

/** Checked again in the deciding transaction, because the account may have been topped up meanwhile. */
export async function isOutOfGrace(sql: Sql, accountId: string, priceMsatPerDay: number, graceSeconds: number): Promise<boolean> {
  const [row] = await sql`
    SELECT 1 FROM credit_warnings w WHERE ${outOfGrace(sql, accountId, priceMsatPerDay, graceSeconds)}`
  return row !== undefined
}

/** Records, once, that the nodes of an account out of grace are being stopped. */
export async function recordExhaustion(
  sql: Sql,
  accountId: string,
  priceMsatPerDay: number,
  graceSeconds: number,
): Promise<void> {
  await sql`
    WITH exhausted AS (
      UPDATE credit_warnings w SET exhausted_at = now()
      WHERE w.exhausted_at IS NULL AND ${outOfGrace(sql, accountId, priceMsatPerDay, graceSeconds)} RETURNING account_id
    )
    INSERT INTO activity (account_id, actor, action) SELECT account_id, 'credit', 'credit.exhausted' FROM exhausted`
}

/** Nodes of these accounts that can be stopped now: ready or failed, with no operation in progress. */
export async function listStoppableNodes(sql: Sql, accountIds: string[]): Promise<{ id: string; accountId: string }[]> {
  return sql<{ id: string; accountId: string }[]>`
    SELECT id, account_id AS "accountId" FROM nodes
    WHERE account_id = ANY (${accountIds}) AND deleted_at IS NULL AND desired_state = 'running' AND status IN ('ready', 'failed')
      AND operation IS NULL ORDER BY id`
}
