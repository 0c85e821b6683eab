import { PATIENCE_SECONDS } from '../../../../contract/src/outcome.ts'
import { idsFrom } from '../../platform/ids.ts'
import type { Sql } from '../db.ts'
import { HOUR_SECONDS, hasFailedDelivery, type Protocol, type ShownPayment, shownColumns } from './payments.ts'

/** Every payment has exactly one of these states, so their totals add up to those of all payments. */
export type PaymentState = 'unpaid' | 'expired' | 'undelivered' | 'delivering' | 'delivered'

/** What a person looks for. */
export type PaymentSelection = {
  /**
   * `received`: the node has the money, whatever happened afterwards. `unfulfilled`: it has, but the customer got nothing for it.
   */
  state?: PaymentState | 'received' | 'unfulfilled'
  /** As in the public API. */
  status?: ShownPayment['status'] | 'settled'
  nodeId?: string
  protocol?: Protocol
  /** The API key that created it. */
  keyId?: string
  minAmountSat?: number
  maxAmountSat?: number
  /** When it was created. Unix seconds. */
  from?: number
  /** Unix seconds; not included. */
  to?: number
  /** The beginning of its id, the hash of its invoice, or a part of its description. */
  sought?: { idBeginning: string } | { paymentHash: Buffer } | { text: string }
}

/** Where a page begins: payments older than `before`, or newer than `after`. */
type Start = { before?: string | undefined; after?: string | undefined }

/** The id character that sorts last. Padding with it gives the upper bound for a search by the beginning of an id. */
const LAST_CHARACTER = 'z'
const ID_LENGTH = 24

/** An id begins with the creation time, by the clock of a process, so ids narrow a search down to the period and an hour around it. */
const firstId = (from: number): string => idsFrom('pay', Math.max(0, from - HOUR_SECONDS))
const lastId = (to: number): string => idsFrom('pay', to + HOUR_SECONDS)

/** For both sides of a join, so that neither side is read outside the range of the page. */
const beyond = (sql: Sql, { before, after }: Start) =>
  sql`${before === undefined ? sql`` : sql`AND id < ${before}`} ${after === undefined ? sql`` : sql`AND id > ${after}`}`

/** Conditions on `gateway_payments`, which its index of listed payments can answer alone. */
function conditions(sql: Sql, accountId: string, selection: PaymentSelection, start: Start) {
  const { state, status, nodeId, protocol, keyId, minAmountSat, maxAmountSat, from, to, sought } = selection
  const isUnsettled = state === 'unpaid' || state === 'expired'
  return sql`
    account_id = ${accountId} ${beyond(sql, start)}
    ${nodeId === undefined ? sql`` : sql`AND node_id = ${nodeId}`}
    ${protocol === undefined ? sql`` : sql`AND protocol = ${protocol}`}
    ${keyId === undefined ? sql`` : sql`AND created_by = ${keyId}`}
    ${minAmountSat === undefined ? sql`` : sql`AND amount_sat >= ${minAmountSat}`}
    ${maxAmountSat === undefined ? sql`` : sql`AND amount_sat <= ${maxAmountSat}`}
    ${from === undefined ? sql`` : sql`AND id >= ${firstId(from)} AND created_at >= to_timestamp(${from})`}
    ${to === undefined ? sql`` : sql`AND id < ${lastId(to)} AND created_at < to_timestamp(${to})`}
    ${state === undefined ? sql`` : isUnsettled ? sql`AND settled_at IS NULL` : sql`AND settled_at IS NOT NULL`}
    ${state === 'unpaid' ? sql`AND expires_at > now()` : state === 'expired' ? sql`AND expires_at <= now()` : sql``}
    ${state === 'unfulfilled' ? sql`AND ${isUnfulfilled(sql, accountId, selection)}` : sql``}
    ${status === undefined ? sql`` : sql`AND ${hasStatus(sql, status)}`}
    ${sought === undefined ? sql`` : sql`AND ${matches(sql, accountId, sought)}`}`
}

export const PATIENCE_MINUTES = PATIENCE_SECONDS / 60

/**
 * A payment that was only validated is fulfilled, as far as the gateway knows. OFFSET 0: one range of an index is read once, not
 * per payment.
 */
function isUnfulfilled(sql: Sql, accountId: string, { from, to }: PaymentSelection) {
  return sql`
    settled_at < now() - ${PATIENCE_MINUTES} * interval '1 minute' AND NOT EXISTS (
      SELECT 1 FROM (
        SELECT id FROM paid_payments WHERE account_id = ${accountId} AND NOT ${hasFailedDelivery(sql)}
          ${from === undefined ? sql`` : sql`AND id >= ${firstId(from)}`} ${to === undefined ? sql`` : sql`AND id < ${lastId(to)}`}
        OFFSET 0) fulfilled
      WHERE fulfilled.id = gateway_payments.id)`
}

function hasStatus(sql: Sql, status: NonNullable<PaymentSelection['status']>) {
  if (status === 'expired') return sql`settled_at IS NULL AND expires_at <= now()`
  if (status === 'payment_required') return sql`settled_at IS NULL AND expires_at > now()`
  const isPaid = sql`EXISTS (SELECT 1 FROM paid_payments paid WHERE paid.account_id = gateway_payments.account_id AND paid.id = gateway_payments.id)`
  return status === 'paid' ? isPaid : sql`settled_at IS NOT NULL AND NOT ${isPaid}`
}

/** A hash is looked up in each node of the account, also deleted ones: there is no index of hashes alone. */
function matches(sql: Sql, accountId: string, sought: NonNullable<PaymentSelection['sought']>) {
  if ('idBeginning' in sought) {
    const { idBeginning } = sought
    return sql`id >= ${idBeginning} AND id <= ${idBeginning.padEnd(ID_LENGTH, LAST_CHARACTER)}`
  }
  if ('paymentHash' in sought)
    return sql`id = (
      SELECT found.id FROM nodes CROSS JOIN LATERAL (
        SELECT p.id FROM gateway_payments p WHERE p.node_id = nodes.id AND p.payment_hash = ${sought.paymentHash} OFFSET 0) found
      WHERE nodes.account_id = ${accountId} LIMIT 1)`
  const pattern = `%${sought.text.replace(/[\\%_]/g, '\\$&')}%`
  // PostgreSQL converts both sides to lower case, because its rules for letters depend on the database.
  return sql`lower(description) LIKE lower(${pattern})`
}

/**
 * Selected payments with the delivery that is claimed now: held, or done if `heldUntil` is null. A FULL JOIN reads each side once. Another
 * join could be planned as a lookup, or a scan of all claims, for each payment, if PostgreSQL expects few payments; but a search for a
 * word may match all of them. The result also has claims without a selected payment.
 */
const withClaims = (sql: Sql, accountId: string, selection: PaymentSelection, start: Start) => {
  const { from, to } = selection
  return sql`
    (SELECT id, amount_sat, settled_at, expires_at FROM gateway_payments WHERE ${conditions(sql, accountId, selection, start)}) payment
    FULL JOIN (
      SELECT id, true AS is_claimed, held_until FROM paid_payments
      WHERE account_id = ${accountId} ${beyond(sql, start)} AND redeemed_at IS NOT NULL AND (held_until IS NULL OR held_until > now())
        ${from === undefined ? sql`` : sql`AND id >= ${firstId(from)}`} ${to === undefined ? sql`` : sql`AND id < ${lastId(to)}`}
    ) claim USING (id)`
}

const hasState = (sql: Sql, state: PaymentState) => {
  if (state === 'unpaid') return sql`settled_at IS NULL AND expires_at > now()`
  if (state === 'expired') return sql`settled_at IS NULL AND expires_at <= now()`
  if (state === 'undelivered') return sql`settled_at IS NOT NULL AND is_claimed IS NULL`
  if (state === 'delivering') return sql`settled_at IS NOT NULL AND is_claimed AND held_until IS NOT NULL`
  return sql`settled_at IS NOT NULL AND is_claimed AND held_until IS NULL`
}

/** The page of a list: payments older than `before`, or the ones just newer than `after`. */
export type Place = { before?: string; after?: string; limit: number }

/**
 * Newest first. The ids are found first, by indexes alone, and then only the rows of one page are read: a row is wide.
 */
export async function searchPayments(
  sql: Sql,
  accountId: string,
  selection: PaymentSelection,
  { before, after, limit }: Place,
): Promise<ShownPayment[]> {
  const isForward = after !== undefined
  return sql<ShownPayment[]>`
    WITH page AS MATERIALIZED (
      ${selected(sql, accountId, selection, { before, after })}
      ORDER BY id ${isForward ? sql`` : sql`DESC`} LIMIT ${limit}
    )
    SELECT ${shownColumns(sql)} FROM (
      SELECT p.* FROM page CROSS JOIN LATERAL (SELECT * FROM gateway_payments one WHERE one.id = page.id OFFSET 0) p) payment
    LEFT JOIN LATERAL (
      SELECT paid_at, redeemed_at, held_until, released_request_ids FROM paid_payments paid
      WHERE paid.account_id = ${accountId} AND paid.id = payment.id OFFSET 0) paid ON true
    ORDER BY id DESC`
}

/** With the time by which the payments were selected, so that what is said of them agrees with why they were. For use in a transaction. */
export async function searchPaymentsAt(
  sql: Sql,
  accountId: string,
  selection: PaymentSelection,
  place: Place,
): Promise<{ payments: ShownPayment[]; now: number }> {
  const [{ now }] = await sql<[{ now: number }]>`SELECT unix_seconds(now()) AS now`
  return { payments: await searchPayments(sql, accountId, selection, place), now }
}

/** OFFSET 0 keeps the condition outside, where it cannot turn the FULL JOIN into a different join. */
function selected(sql: Sql, accountId: string, selection: PaymentSelection, start: Start) {
  const { state } = selection
  if (state === undefined || state === 'received' || state === 'unfulfilled' || state === 'unpaid' || state === 'expired')
    return sql`SELECT id FROM gateway_payments WHERE ${conditions(sql, accountId, selection, start)}`
  return sql`SELECT id FROM (SELECT * FROM ${withClaims(sql, accountId, selection, start)} OFFSET 0) payment WHERE ${hasState(sql, state)}`
}

export type Total = { count: number; sat: number }
/** A total for each state; together, they cover all selected payments. */
export type PaymentTotals = Record<PaymentState, Total>

/** One pass over the index of listed payments, and one over the claims of the account. */
export async function totalPayments(sql: Sql, accountId: string, selection: PaymentSelection): Promise<PaymentTotals> {
  const { state: wanted } = selection
  const total = (state: PaymentState) => {
    const isAny = wanted === undefined || wanted === 'received' || wanted === 'unfulfilled'
    const is = isAny || wanted === state ? hasState(sql, state) : sql`false`
    return sql`jsonb_build_object('count', count(*) FILTER (WHERE ${is}), 'sat', coalesce(sum(amount_sat) FILTER (WHERE ${is}), 0))`
  }
  const [row] = await sql<PaymentTotals[]>`
    SELECT ${total('unpaid')} AS unpaid, ${total('expired')} AS expired, ${total('undelivered')} AS undelivered,
           ${total('delivering')} AS delivering, ${total('delivered')} AS delivered
    FROM ${withClaims(sql, accountId, selection, {})}`
  if (!row) throw new Error('a sum returned no row')
  return row
}
