import { mppReceipt } from '../../../protocol/src/mpp.ts'
import type { NoteChange } from '../store/changes.ts'
import { settleTopUp } from '../store/credit/top-ups.ts'
import type { Sql } from '../store/db.ts'
import { type Invoices, PAYMENT_INVOICES, TOP_UP_INVOICES } from '../store/payments/invoices.ts'
import { findUnsettled, recordSettlement } from '../store/payments/payments.ts'

export type BookDeps = { sql: Sql; noteChange: NoteChange }

/** Where invoices of one kind are stored. */
export type Book = {
  invoices: Invoices
  /** False: not in this book, or already settled. `atMs` undefined: now, by the database's clock. */
  settle: (deps: BookDeps, nodeId: string, paymentHash: Buffer, atMs: number | undefined) => Promise<boolean>
}

const settlePayment: Book['settle'] = async ({ sql, noteChange }, nodeId, paymentHash, atMs) => {
  const payment = await findUnsettled(sql, nodeId, paymentHash)
  if (!payment) return false
  const { id, protocol, challenge, nowMs } = payment
  const settledAtMs = atMs ?? nowMs
  const receipt = protocol === 'mpp' ? mppReceipt(challenge, paymentHash, settledAtMs) : null
  const accountId = await recordSettlement(sql, id, settledAtMs, receipt)
  if (accountId !== undefined) noteChange(accountId, 'payments', 'activity')
  return true
}

/** A hash is in at most one book; a book that does not contain it does nothing. */
export const BOOKS: readonly Book[] = [
  { invoices: PAYMENT_INVOICES, settle: settlePayment },
  // The credit creates an activity entry, which sends its own notification.
  { invoices: TOP_UP_INVOICES, settle: ({ sql }, ...payment) => settleTopUp(sql, ...payment) },
]
