import { csvLineOf, csvTime } from '../platform/csv.ts'
import type { ShownPayment } from '../store/payments/payments.ts'

const COLUMNS: [name: string, value: (payment: ShownPayment) => string | number | null][] = [
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
]

export const CSV_HEADER = csvLineOf(COLUMNS.map(([name]) => name))

export const csvLine = (payment: ShownPayment): string => csvLineOf(COLUMNS.map(([, value]) => value(payment)))
