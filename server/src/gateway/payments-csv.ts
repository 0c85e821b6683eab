import type { ShownPayment } from '../store/payments/payments.ts'

const COLUMNS: [name: string, value: (payment: ShownPayment) => string | number | null][] = [
  ['id', ({ id }) => id],
  ['created_at', ({ createdAt }) => isoTime(createdAt)],
  ['settled_at', ({ settledAt }) => isoTime(settledAt)],
  ['paid_at', ({ paidAt }) => isoTime(paidAt)],
  ['redeemed_at', ({ redeemedAt }) => isoTime(redeemedAt)],
  ['status', ({ status }) => status],
  ['delivery', ({ delivery }) => delivery],
  ['protocol', ({ protocol }) => protocol],
  ['amount_sat', ({ amountSat }) => amountSat],
  ['node_id', ({ nodeId }) => nodeId],
  ['description', ({ description }) => description],
  ['resource', ({ resource }) => resource],
]

export const CSV_HEADER = lineOf(COLUMNS.map(([name]) => name))

export const csvLine = (payment: ShownPayment): string => lineOf(COLUMNS.map(([, value]) => value(payment)))

const isoTime = (seconds: number | null): string | null => (seconds === null ? null : new Date(seconds * 1000).toISOString())

/** RFC 4180. */
function lineOf(values: (string | number | null)[]): string {
  return `${values.map((value) => (typeof value === 'string' ? quoted(value) : (value ?? ''))).join(',')}\r\n`
}

/**
 * A spreadsheet runs text that begins like a formula, and customers can influence a description. The apostrophe makes it text. In many
 * countries, spreadsheets split lines at semicolons, so a cell may begin after one.
 */
function quoted(text: string): string {
  const safe = text.replace(/(^|[;\t])(?=[=+\-@])/g, "$1'").replace(/^[\t\r]/, "'$&")
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
