import { readInvoice } from '../../../protocol/src/bolt11.ts'
import { isId } from '../platform/ids.ts'
import { badCursor } from '../problems.ts'
import type { Sql } from '../store/db.ts'
import { creatorName, eventsOfPayment, type PaymentEvent } from '../store/payments/history.ts'
import { findShownPayment, type PaymentDetails, type ShownPayment } from '../store/payments/payments.ts'
import {
  type PaymentSelection,
  type PaymentTotals,
  type Place,
  searchPayments,
  searchPaymentsAt,
  totalPayments,
} from '../store/payments/search.ts'
import type { SlowReads } from '../store/slow-reads.ts'
import { type Call, notFound } from './payments.ts'
import { CSV_HEADER, csvLine } from './payments-csv.ts'

export type SelectionParams = Omit<PaymentSelection, 'sought'> & {
  /** An id or its beginning, a payment hash, an invoice, or a part of the description. */
  search?: string
}
export type SearchParams = SelectionParams & {
  limit?: number
  /** The `nextCursor` of the previous page. */
  cursor?: string
  /** The `previousCursor` of the next page. */
  after?: string
}
export type SearchPage = { payments: ShownPayment[]; nextCursor: string | null; previousCursor: string | null }

export type Creator = { id: string; kind: 'key' | 'person'; name: string | null }

const PAGE_SIZE = 50
const EXPORTED_AT_ONCE = 1_000
/**
 * Descriptions are not longer, so longer text matches none and need not be compared with all of them. An invoice may be longer.
 */
const LONGEST_DESCRIPTION = 500
const NOTHING = { count: 0, sat: 0 }

/** What the dashboard asks about payments: search, totals, export, and one payment with its history. `/v1` has the same export. */
export class PaymentSearch {
  readonly #sql: Sql
  readonly #slowReads: SlowReads

  constructor(sql: Sql, slowReads: SlowReads) {
    this.#sql = sql
    this.#slowReads = slowReads
  }

  async list(call: Call, { limit = PAGE_SIZE, cursor, after, ...params }: SearchParams): Promise<SearchPage> {
    if (cursor !== undefined && !isId('pay', cursor)) throw badCursor()
    if (after !== undefined && !isId('pay', after)) throw badCursor('after')
    const selection = selectionOf(params)
    if (!selection) return { payments: [], nextCursor: null, previousCursor: null }
    // One extra row shows whether there is another page.
    const read = (place: { before?: string; after?: string }) => this.#search(call, selection, { ...place, limit: limit + 1 })

    if (after !== undefined) {
      const rows = await read({ after })
      // With fewer rows, there is no newer page. The first page has room for more, so it is read from the start.
      if (rows.length > limit) {
        const payments = rows.slice(1)
        return { payments, nextCursor: payments.at(-1)?.id ?? null, previousCursor: payments[0]?.id ?? null }
      }
    }
    const rows = await read(cursor === undefined ? {} : { before: cursor })
    const payments = rows.slice(0, limit)
    return {
      payments,
      nextCursor: rows.length > limit ? (payments.at(-1)?.id ?? null) : null,
      previousCursor: cursor === undefined ? null : (payments[0]?.id ?? null),
    }
  }

  async totals(call: Call, params: SelectionParams): Promise<PaymentTotals> {
    const selection = selectionOf(params)
    if (selection) return this.#slowReads.run(call.accountId, (sql) => totalPayments(sql, call.accountId, selection))
    return { unpaid: NOTHING, expired: NOTHING, undelivered: NOTHING, delivering: NOTHING, delivered: NOTHING }
  }

  /** Lines of CSV, oldest first, read from the store while they are sent. */
  async *csv(call: Call, params: SelectionParams): AsyncGenerator<string> {
    const selection = selectionOf(params)
    if (!selection) return void (yield CSV_HEADER)
    for (let after = ''; ; ) {
      const place = { after, limit: EXPORTED_AT_ONCE }
      const { payments: newestFirst, now } = await this.#slowReads.run(call.accountId, (sql) =>
        searchPaymentsAt(sql, call.accountId, selection, place),
      )
      const lines = newestFirst
        .toReversed()
        .map((payment) => csvLine(payment, now))
        .join('')
      // Sent only after the first read: if that fails, the response must be an error instead of an empty file.
      if (after === '') yield CSV_HEADER + lines
      else if (lines !== '') yield lines
      after = newestFirst.at(0)?.id ?? after
      if (newestFirst.length < EXPORTED_AT_ONCE) return
    }
  }

  #search(call: Call, selection: PaymentSelection, place: Place): Promise<ShownPayment[]> {
    return this.#slowReads.run(call.accountId, (sql) => searchPayments(sql, call.accountId, selection, place))
  }

  async get(call: Call, id: string): Promise<Omit<PaymentDetails, 'createdBy'> & { createdBy: Creator | null }> {
    const payment = await this.#find(call, id)
    const { createdBy } = payment
    if (createdBy === null) return { ...payment, createdBy }
    const name = (await creatorName(this.#sql, call.accountId, createdBy)) ?? null
    return { ...payment, createdBy: { id: createdBy, kind: isId('key', createdBy) ? 'key' : 'person', name } }
  }

  async events(call: Call, id: string): Promise<PaymentEvent[]> {
    await this.#find(call, id)
    return eventsOfPayment(this.#sql, call.accountId, id)
  }

  async #find(call: Call, id: string): Promise<PaymentDetails> {
    const payment = isId('pay', id) && (await findShownPayment(this.#sql, call.accountId, id))
    if (!payment) throw notFound()
    return payment
  }
}

/** Undefined: nothing can match. An invalid id may also contain bytes that PostgreSQL rejects. */
function selectionOf({ search, ...rest }: SelectionParams): PaymentSelection | undefined {
  const { nodeId, keyId } = rest
  if ((nodeId !== undefined && !isId('node', nodeId)) || (keyId !== undefined && !isId('key', keyId))) return undefined
  const words = search?.trim() ?? ''
  if (words === '') return rest
  const sought = soughtBy(words)
  return 'text' in sought && words.length > LONGEST_DESCRIPTION ? undefined : { ...rest, sought }
}

function soughtBy(words: string): NonNullable<PaymentSelection['sought']> {
  const lower = words.toLowerCase()
  if (/^pay_[0-9a-z]{1,20}$/.test(lower)) return { idBeginning: lower }
  if (/^[0-9a-f]{64}$/.test(lower)) return { paymentHash: Buffer.from(lower, 'hex') }
  const invoice = /^(lightning:)?ln/.test(lower) ? readInvoice(lower.replace(/^lightning:/, '')) : undefined
  return invoice ? { paymentHash: Buffer.from(invoice.paymentHash, 'hex') } : { text: words }
}
