import { mppReceipt } from '../../../protocol/src/mpp.ts'
import { settleTopUp } from '../store/credit/top-ups.ts'
import type { Sql } from '../store/db.ts'
import { type Invoices, PAYMENT_INVOICES, TOP_UP_INVOICES } from '../store/payments/invoices.ts'
import { findUnsettled, recordSettlement } from '../store/payments/payments.ts'

/** Where invoices of one kind are kept. */
export type Book = {
  invoices: Invoices
  /** False: not in this book, or settled before. `atMs` undefined: now, by the database's clock. */
  settle: (sql: Sql, nodeId: string, paymentHash: Buffer, atMs: number | undefined) => Promise<boolean>
}

const settlePayment: Book['settle'] = async (sql, nodeId, paymentHash, atMs) => {
  const payment = await findUnsettled(sql, nodeId, paymentHash)
  if (!payment) return false
  const { id, protocol, challenge, nowMs } = payment
  const settledAtMs = atMs ?? nowMs
  const receipt = protocol === 'mpp' ? mppReceipt(challenge, paymentHash, settledAtMs) : null
  await recordSettlement(sql, id, settledAtMs, receipt)
  return true
}

/** A hash is in at most one of them, and a book that does not have it does nothing. */
export const BOOKS: readonly Book[] = [
  { invoices: PAYMENT_INVOICES, settle: settlePayment },
  { invoices: TOP_UP_INVOICES, settle: settleTopUp },
]
