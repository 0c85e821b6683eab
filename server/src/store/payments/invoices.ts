import type { Sql } from '../db.ts'

/** Invoices whose nodes are asked whether they were paid: those of the gateway, and those of top-ups. */
export type Invoices = {
  table: 'gateway_payments' | 'top_ups'
  key: 'id' | 'payment_hash'
  /** Of one node in one sweep, so that one with many does not hold up the others. */
  mostAtOnce: number
  /** Remembers that the node said unpaid; only what is removed later has to. */
  keepsUnpaid: boolean
}

export const PAYMENT_INVOICES: Invoices = { table: 'gateway_payments', key: 'id', mostAtOnce: 500, keepsUnpaid: true }
export const TOP_UP_INVOICES: Invoices = { table: 'top_ups', key: 'payment_hash', mostAtOnce: 50, keepsUnpaid: false }

export type OpenInvoice = { nodeId: string; paymentHash: Buffer }
export type DueInvoice = OpenInvoice & { isLate: boolean }

/** How long after its creation the node is asked about an invoice for the first time, and how often then. */
export const ASK_EVERY_SECONDS = 15

/**
 * Invoices to ask the ready nodes of this host about: every 15 s until a minute after their expiry, and then when `recordAnswers` says.
 * Those of a node that is not ready stay due until it is.
 */
export async function takeDueInvoices(
  sql: Sql,
  { table, key, mostAtOnce }: Invoices,
  host: string,
  busyNodes: string[],
): Promise<DueInvoice[]> {
  return sql<DueInvoice[]>`
    UPDATE ${sql(table)} i SET ask_at = now() + ${ASK_EVERY_SECONDS} * interval '1 second'
    FROM (SELECT due.key FROM nodes n CROSS JOIN LATERAL (
            SELECT ${sql(key)} AS key FROM ${sql(table)}
            WHERE node_id = n.id AND ask_at <= now() ORDER BY ask_at LIMIT ${mostAtOnce}) due
          WHERE n.host = ${host} AND n.status = 'ready' AND n.deleted_at IS NULL AND n.id <> ALL (${busyNodes})) due
    WHERE i.${sql(key)} = due.key AND i.settled_at IS NULL
    RETURNING i.node_id AS "nodeId", i.payment_hash AS "paymentHash", now() >= i.expires_at + interval '1 minute' AS "isLate"`
}

export type AnsweredInvoice = {
  paymentHash: Buffer
  /** The node has it and says so; one that does not know it, or answers oddly, has not said that nobody paid. */
  isUnpaid: boolean
}

/**
 * Late ones are asked about ten minutes and an hour after their expiry, then never. Only now that the node has answered: an ask that
 * nobody answered, or whose asker died, told nothing and does not count.
 */
export async function recordAnswers(
  sql: Sql,
  { table, keepsUnpaid }: Invoices,
  nodeId: string,
  late: AnsweredInvoice[],
): Promise<void> {
  const unpaid = late.filter(({ isUnpaid }) => isUnpaid)
  await sql`
    UPDATE ${sql(table)} SET
      ask_at = CASE
        WHEN now() < expires_at + interval '10 minutes' THEN expires_at + interval '10 minutes'
        WHEN now() < expires_at + interval '1 hour' THEN expires_at + interval '1 hour' END
      ${keepsUnpaid ? sql`, unpaid_at = CASE WHEN payment_hash IN (${hashesOf(sql, unpaid)}) THEN now() END` : sql``}
    WHERE node_id = ${nodeId} AND payment_hash IN (${hashesOf(sql, late)}) AND settled_at IS NULL`
}

const hashesOf = (sql: Sql, invoices: AnsweredInvoice[]) => sql`
  SELECT decode(hash, 'hex') FROM unnest(${invoices.map(({ paymentHash }) => paymentHash.toString('hex'))}::text[]) hash`

/** By its key alone: together with other conditions it would also fit the index of all open ones. */
const keyOf = (sql: Sql, { table, key }: Invoices, { nodeId, paymentHash }: OpenInvoice) => sql`
  ${sql(key)} = (SELECT ${sql(key)} FROM ${sql(table)} WHERE node_id = ${nodeId} AND payment_hash = ${paymentHash})`

export async function isOpenInvoice(sql: Sql, invoices: Invoices, invoice: OpenInvoice): Promise<boolean> {
  const [row] = await sql`
    SELECT 1 FROM ${sql(invoices.table)} WHERE ${keyOf(sql, invoices, invoice)} AND settled_at IS NULL`
  return row !== undefined
}

/** It is asked about next, also when there was nothing left to ask. */
export async function hurryInvoice(sql: Sql, invoices: Invoices, invoice: OpenInvoice): Promise<void> {
  await sql`
    UPDATE ${sql(invoices.table)} SET ask_at = now()
    WHERE ${keyOf(sql, invoices, invoice)} AND settled_at IS NULL AND (ask_at <= now()) IS NOT TRUE`
}

/** First those that can still be paid: who paid just now has had the least time to be heard of. */
export async function listOpenInvoices(sql: Sql, { table }: Invoices, nodeId: string, limit: number): Promise<OpenInvoice[]> {
  return sql<OpenInvoice[]>`
    SELECT node_id AS "nodeId", payment_hash AS "paymentHash" FROM ${sql(table)}
    WHERE node_id = ${nodeId} AND ask_at IS NOT NULL ORDER BY expires_at > now() DESC, created_at DESC LIMIT ${limit}`
}
