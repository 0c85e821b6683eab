import { mppReceipt } from '../../../protocol/src/mpp.ts'
import { hurryTopUp, isOpenTopUp, openTopUpsOf, settleTopUp, takeDueTopUps, topUpsAnswered } from '../store/credit/top-ups.ts'
import type { Sql } from '../store/db.ts'
import {
  type AnsweredInvoice,
  answered,
  type DueInvoice,
  findUnsettled,
  hurryInvoice,
  type OpenInvoice,
  openInvoicesOf,
  recordSettlement,
  takeDueInvoices,
} from '../store/payments/payments.ts'

/** Where invoices of one kind are kept. */
export type Book = {
  /** False: not in this book, or settled before. `atMs` undefined: now, by the database's clock. */
  settle: (sql: Sql, nodeId: string, paymentHash: Buffer, atMs: number | undefined) => Promise<boolean>
  isOpen: (sql: Sql, nodeId: string, paymentHash: Buffer) => Promise<boolean>
  /** The next sweep asks about it. */
  hurry: (sql: Sql, nodeId: string, paymentHash: Buffer) => Promise<void>
  takeDue: (sql: Sql, host: string, busyNodes: string[]) => Promise<DueInvoice[]>
  answered: (sql: Sql, nodeId: string, late: AnsweredInvoice[]) => Promise<void>
  openOf: (sql: Sql, nodeId: string, limit: number) => Promise<OpenInvoice[]>
}

const payments: Book = {
  settle: async (sql, nodeId, paymentHash, atMs) => {
    const payment = await findUnsettled(sql, nodeId, paymentHash)
    if (!payment) return false
    const { id, protocol, challenge, nowMs } = payment
    const settledAtMs = atMs ?? nowMs
    const receipt = protocol === 'mpp' ? mppReceipt(challenge, paymentHash, settledAtMs) : null
    await recordSettlement(sql, id, settledAtMs, receipt)
    return true
  },
  isOpen: async (sql, nodeId, paymentHash) => (await findUnsettled(sql, nodeId, paymentHash)) !== undefined,
  hurry: hurryInvoice,
  takeDue: takeDueInvoices,
  answered,
  openOf: openInvoicesOf,
}

const topUps: Book = {
  settle: settleTopUp,
  isOpen: isOpenTopUp,
  hurry: hurryTopUp,
  takeDue: takeDueTopUps,
  answered: topUpsAnswered,
  openOf: openTopUpsOf,
}

/** A hash is in at most one of them, and a book that does not have it does nothing. */
export const BOOKS: readonly Book[] = [payments, topUps]
