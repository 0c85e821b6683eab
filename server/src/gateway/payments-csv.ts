import { gotNothingAt, outcomeOf } from '../../../contract/src/outcome.ts'
import { csvLineOf, csvTime } from '../platform/csv.ts'
import type { ShownPayment } from '../store/payments/payments.ts'

/** Spreadsheets refer to columns by position, so a new one must be added at the end. `now` is in Unix seconds, by the database's clock. */
const COLUMNS: [name: string, value: (payment: ShownPayment, now: number) => string | number | null][] = [
  ['id', ({ id }) => id],
  ['created_at', ({ createdAt }) => csvTime(createdAt)],
  ['settled_at', ({ settledAt }) => csvTime(settledAt)],
  ['paid_at', ({ paidAt }) => csvTime(paidAt)],
  ['redeemed_at', ({ redeemedAt }) => csvTime(redeemedAt)],
  ['status', ({ status }) => status],
  ['delivery', ({ delivery }) => delivery],
  ['protocol', ({ protocol }) => protocol],
  ['amount_sat', ({ amountSat }) => amountSat],
  ['node_id', ({ nodeId }) => nodeId],
  ['description', ({ description }) => description],
  ['resource', ({ resource }) => resource],
  ['outcome', (payment, now) => outcomeOf(payment, now >= (gotNothingAt(payment) ?? Number.POSITIVE_INFINITY))],
]

export const CSV_HEADER = csvLineOf(COLUMNS.map(([name]) => name))

export const csvLine = (payment: ShownPayment, now: number): string => csvLineOf(COLUMNS.map(([, value]) => value(payment, now)))
