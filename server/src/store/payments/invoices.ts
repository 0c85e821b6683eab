import type { Sql } from '../db.ts'

/** Invoices whose nodes are asked whether they were paid: those of payments and those of top-ups. */
export type Invoices = {
  table: 'gateway_payments' | 'top_ups'
  key: 'id' | 'payment_hash'
  /** Per node and sweep, so that a node with many invoices does not hold up the others. */
  mostAtOnce: number
  /** Whether to record that the node reported an invoice unpaid. Only needed where unpaid rows are removed later. */
  keepsUnpaid: boolean
}

export const PAYMENT_INVOICES: Invoices = { table: 'gateway_payments', key: 'id', mostAtOnce: 500, keepsUnpaid: true }
export const TOP_UP_INVOICES: Invoices = { table: 'top_ups', key: 'payment_hash', mostAtOnce: 50, keepsUnpaid: false }

export type OpenInvoice = { nodeId: string; paymentHash: Buffer }
export type DueInvoice = OpenInvoice & { createdAtMs: number; isLate: boolean; isListed: boolean }

/** The node is first asked about an invoice this long after its creation, and then at this interval. */
export const ASK_EVERY_SECONDS = 15

/**
 * Invoices to ask the ready nodes of this host about: every 15 s until one minute after their expiry, then as scheduled by `recordAnswers`.
 * Those of a node in `listedNodes` are due only once before that: from then on, its lists of received payments cover them. Invoices of a
 * node that is not ready stay due until it is.
 */
export async function takeDueInvoices(
  sql: Sql,
  { table, key, mostAtOnce }: Invoices,
  host: string,
  { busyNodes, listedNodes }: { busyNodes: string[]; listedNodes: string[] },
): Promise<DueInvoice[]> {
  return sql<DueInvoice[]>`
    UPDATE ${sql(table)} i SET ask_at = CASE
        WHEN i.node_id = ANY (${listedNodes}) AND now() < ${lateAt(sql)} THEN ${lateAt(sql)}
        ELSE now() + ${ASK_EVERY_SECONDS} * interval '1 second' END
    FROM (SELECT due.key FROM nodes n CROSS JOIN LATERAL (
            SELECT ${sql(key)} AS key FROM ${sql(table)}
            WHERE node_id = n.id AND ask_at <= now() ORDER BY ask_at LIMIT ${mostAtOnce}) due
          WHERE n.host = ${host} AND n.status = 'ready' AND n.deleted_at IS NULL AND n.id <> ALL (${busyNodes})) due
    WHERE i.${sql(key)} = due.key AND i.settled_at IS NULL
    RETURNING i.node_id AS "nodeId", i.payment_hash AS "paymentHash", unix_ms(i.created_at) AS "createdAtMs",
              now() >= ${lateAt(sql)} AS "isLate", i.ask_at = ${lateAt(sql)} AS "isListed"`
}

/** When an invoice is asked about for the first time after its expiry. */
const lateAt = (sql: Sql) => sql`(expires_at + interval '1 minute')`

export type ListedNode = { nodeId: string; oldestMs: number }

/** Ready nodes of this host with invoices that are covered only by the node's lists until one minute after their expiry. */
export async function listedNodesOf(sql: Sql, { table }: Invoices, host: string): Promise<ListedNode[]> {
  return sql<ListedNode[]>`
    SELECT n.id AS "nodeId", unix_ms(oldest.created_at) AS "oldestMs" FROM nodes n CROSS JOIN LATERAL (
      SELECT created_at FROM ${sql(table)}
      WHERE node_id = n.id AND settled_at IS NULL AND expires_at > now() - interval '1 minute' AND ask_at = ${lateAt(sql)}
      ORDER BY expires_at LIMIT 1) oldest
    WHERE n.host = ${host} AND n.status = 'ready' AND n.deleted_at IS NULL`
}

/** For a node whose lists turn out to be unusable: each of its invoices is asked about again. */
export async function unlistInvoices(sql: Sql, { table }: Invoices, nodeId: string): Promise<void> {
  await sql`
    UPDATE ${sql(table)} SET ask_at = now()
    WHERE node_id = ${nodeId} AND settled_at IS NULL AND expires_at > now() - interval '1 minute' AND ask_at = ${lateAt(sql)}`
}

/** Which of these invoices of the node are ours and not settled. */
export async function unsettledAmong(sql: Sql, { table }: Invoices, nodeId: string, hashes: string[]): Promise<Buffer[]> {
  const rows = await sql<{ paymentHash: Buffer }[]>`
    SELECT payment_hash AS "paymentHash" FROM ${sql(table)}
    WHERE node_id = ${nodeId} AND payment_hash IN (SELECT decode(hash, 'hex') FROM unnest(${hashes}::text[]) hash) AND settled_at IS NULL`
  return rows.map(({ paymentHash }) => paymentHash)
}

export type AnsweredInvoice = {
  paymentHash: Buffer
  /** The node knows the invoice and reported it unpaid. False if the node does not know the invoice or answered unexpectedly. */
  isUnpaid: boolean
}

/**
 * Expired invoices are checked again ten minutes and one hour after their expiry, then never. The next check is scheduled only once the
 * node has answered: a query without an answer, or one interrupted by a crash, does not count.
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

/** Selects the invoice by its key alone: with other conditions, PostgreSQL might choose the index of all open invoices. */
const keyOf = (sql: Sql, { table, key }: Invoices, { nodeId, paymentHash }: OpenInvoice) => sql`
  ${sql(key)} = (SELECT ${sql(key)} FROM ${sql(table)} WHERE node_id = ${nodeId} AND payment_hash = ${paymentHash})`

export async function isOpenInvoice(sql: Sql, invoices: Invoices, invoice: OpenInvoice): Promise<boolean> {
  const [row] = await sql`
    SELECT 1 FROM ${sql(invoices.table)} WHERE ${keyOf(sql, invoices, invoice)} AND settled_at IS NULL`
  return row !== undefined
}

/** Makes the invoice due now, even if no further check was scheduled. */
export async function hurryInvoice(sql: Sql, invoices: Invoices, invoice: OpenInvoice): Promise<void> {
  await sql`
    UPDATE ${sql(invoices.table)} SET ask_at = now()
    WHERE ${keyOf(sql, invoices, invoice)} AND settled_at IS NULL AND (ask_at <= now()) IS NOT TRUE`
}

/** Invoices that can still be paid come first: a recent payment has had the least time to be noticed. */
export async function listOpenInvoices(sql: Sql, { table }: Invoices, nodeId: string, limit: number): Promise<OpenInvoice[]> {
  return sql<OpenInvoice[]>`
    SELECT node_id AS "nodeId", payment_hash AS "paymentHash" FROM ${sql(table)}
    WHERE node_id = ${nodeId} AND ask_at IS NOT NULL ORDER BY expires_at > now() DESC, created_at DESC LIMIT ${limit}`
}

/** The gateway payments with these invoices of a node, by payment hash. */
export async function paymentIdsOf(sql: Sql, nodeId: string, paymentHashes: string[]): Promise<Map<string, string>> {
  if (paymentHashes.length === 0) return new Map()
  const rows = await sql<{ id: string; paymentHash: string }[]>`
    SELECT id, encode(payment_hash, 'hex') AS "paymentHash" FROM gateway_payments
    WHERE node_id = ${nodeId} AND payment_hash = ANY (${paymentHashes.map((hash) => Buffer.from(hash, 'hex'))}::bytea[])`
  return new Map(rows.map(({ id, paymentHash }) => [paymentHash, id]))
}
