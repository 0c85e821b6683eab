/** A node's balance and history, as a pure function of its journal. */

export type InvoiceRecord = {
  t: 'invoice'
  paymentHash: string
  preimage: string
  paymentSecret: string
  serialized: string
  amountMsat?: number
  description?: string
  expirySeconds: number
  createdAtMs: number
  externalId?: string
  webhookUrl?: string
}
export type ReceivedRecord = {
  t: 'received'
  paymentHash: string
  paymentId: string
  /** The amount the payer's node sent. */
  amountMsat: number
  /** The whole fee for liquidity. `feeCreditUsedMsat` of it was paid from fee credit, the rest from the amount. */
  liquidityFeeMsat: number
  /** The part of the amount that became fee credit. */
  toFeeCreditMsat: number
  feeCreditUsedMsat: number
  capacitySat: number | null
  atMs: number
}
/**
 * This payment or grant was refused, but an earlier copy of the same delivery may still arrive. It must be refused, too. `paymentId` is
 * also used for a grant's id, so that older versions can read the journal.
 */
export type RefusedRecord = { t: 'refused'; paymentId: string }
export type FundedRecord = { t: 'funded'; fundId: string; amountMsat: number; capacitySat: number }
export type SendingRecord = {
  t: 'sending'
  paymentId: string
  paymentHash: string
  paymentSecret: string
  recipient: string
  invoice: string
  amountMsat: number
  feeMsat: number
  createdAtMs: number
}
export type SentRecord = { t: 'sent'; paymentId: string; preimage: string; atMs: number }
export type UnsentRecord = { t: 'unsent'; paymentId: string; reason: string; atMs: number }
/** Simulated network conditions. Persistent, because a restart must not end a peer outage or turn back time. */
export type ConditionsRecord = { t: 'conditions'; peerUp: boolean; feeCredit: boolean; clockAheadMs: number }

/** The compact form: the current state, with the totals of the records it replaces. */
export type TotalsRecord = {
  t: 'totals'
  balanceMsat: number
  feeCreditMsat: number
  capacitySat: number | null
  refused: string[]
  funded: string[]
}
export type HistoryRecord = { t: 'history'; incoming: Incoming[]; outgoing: Outgoing[] }
/** The order of arrival, because several payments may share a millisecond. */
export type ReceiptsRecord = { t: 'receipts'; paymentHashes: string[] }

export type LedgerRecord =
  | InvoiceRecord
  | ReceivedRecord
  | RefusedRecord
  | FundedRecord
  | SendingRecord
  | SentRecord
  | UnsentRecord
  | ConditionsRecord
  | TotalsRecord
  | HistoryRecord
  | ReceiptsRecord

/** The part of the liquidity fee paid from the received amount; the fee credit paid the rest. */
export function deductedMsat(received: ReceivedRecord): number {
  return received.liquidityFeeMsat - received.feeCreditUsedMsat
}

export type Incoming = { invoice: InvoiceRecord; received?: ReceivedRecord }
export type Outgoing = { payment: SendingRecord; end?: SentRecord | UnsentRecord }

/** Small enough that a line of the compact form never exceeds the maximum string length. */
const HISTORY_CHUNK = 1000

export class Ledger {
  readonly incoming = new Map<string, Incoming>()
  readonly incomingByCreation: Incoming[] = []
  readonly incomingByReceipt: Incoming[] = []
  readonly outgoing = new Map<string, Outgoing>()
  readonly outgoingByHash = new Map<string, Outgoing[]>()
  readonly refused = new Set<string>()
  readonly funded = new Set<string>()
  conditions: ConditionsRecord
  balanceMsat = 0
  feeCreditMsat = 0
  /** Deducted from the balance for payments that are still pending. */
  pendingMsat = 0
  capacitySat: number | null = null
  latestMs = 0

  constructor(conditions: Omit<ConditionsRecord, 't'>) {
    this.conditions = { t: 'conditions', ...conditions }
  }

  apply(record: LedgerRecord): void {
    switch (record.t) {
      case 'invoice': {
        this.#addIncoming({ invoice: record })
        return
      }
      case 'received': {
        const incoming = required(this.incoming.get(record.paymentHash), record.paymentHash)
        incoming.received = record
        this.incomingByReceipt.push(incoming)
        this.balanceMsat += record.amountMsat - record.toFeeCreditMsat - deductedMsat(record)
        this.feeCreditMsat += record.toFeeCreditMsat - record.feeCreditUsedMsat
        this.#enlarge(record.capacitySat)
        this.#saw(record.atMs)
        return
      }
      case 'refused':
        this.refused.add(record.paymentId)
        return
      case 'funded':
        this.funded.add(record.fundId)
        this.balanceMsat += record.amountMsat
        this.#enlarge(record.capacitySat)
        return
      case 'sending': {
        this.#addOutgoing({ payment: record })
        this.balanceMsat -= costMsat(record)
        return
      }
      case 'sent':
      case 'unsent': {
        const outgoing = required(this.outgoing.get(record.paymentId), record.paymentId)
        outgoing.end = record
        this.pendingMsat -= costMsat(outgoing.payment)
        if (record.t === 'unsent') this.balanceMsat += costMsat(outgoing.payment)
        this.#saw(record.atMs)
        return
      }
      case 'conditions':
        this.conditions = record
        return
      case 'totals':
        this.balanceMsat = record.balanceMsat
        this.feeCreditMsat = record.feeCreditMsat
        this.capacitySat = record.capacitySat
        for (const paymentId of record.refused) this.refused.add(paymentId)
        for (const fundId of record.funded) this.funded.add(fundId)
        return
      case 'history':
        for (const incoming of record.incoming) this.#addIncoming(incoming)
        for (const outgoing of record.outgoing) this.#addOutgoing(outgoing)
        return
      case 'receipts':
        for (const paymentHash of record.paymentHashes)
          this.incomingByReceipt.push(required(this.incoming.get(paymentHash), paymentHash))
        return
      default:
        throw new Error(`a record of an unknown kind, written by a newer version: ${(record as { t: unknown }).t}`)
    }
  }

  compact(): LedgerRecord[] {
    const { balanceMsat, feeCreditMsat, capacitySat } = this
    const totals: TotalsRecord = {
      t: 'totals',
      balanceMsat,
      feeCreditMsat,
      capacitySat,
      refused: [...this.refused],
      funded: [...this.funded],
    }
    const outgoing = [...this.outgoing.values()]
    const history: HistoryRecord[] = []
    const receipts: ReceiptsRecord[] = []
    for (let at = 0; at < Math.max(this.incomingByCreation.length, outgoing.length); at += HISTORY_CHUNK) {
      const chunk = <T>(all: T[]): T[] => all.slice(at, at + HISTORY_CHUNK)
      history.push({ t: 'history', incoming: chunk(this.incomingByCreation), outgoing: chunk(outgoing) })
      receipts.push({ t: 'receipts', paymentHashes: chunk(this.incomingByReceipt).map(({ invoice }) => invoice.paymentHash) })
    }
    return [this.conditions, totals, ...history, ...receipts]
  }

  #addIncoming(incoming: Incoming): void {
    this.incoming.set(incoming.invoice.paymentHash, incoming)
    this.incomingByCreation.push(incoming)
    this.#saw(incoming.received?.atMs ?? incoming.invoice.createdAtMs)
  }

  #addOutgoing(outgoing: Outgoing): void {
    const { paymentId, paymentHash, createdAtMs } = outgoing.payment
    this.outgoing.set(paymentId, outgoing)
    this.outgoingByHash.set(paymentHash, [...(this.outgoingByHash.get(paymentHash) ?? []), outgoing])
    if (!outgoing.end) this.pendingMsat += costMsat(outgoing.payment)
    this.#saw(outgoing.end?.atMs ?? createdAtMs)
  }

  /** Concurrent payments were each measured against the previous channel size, so the largest size covers them all. */
  #enlarge(capacitySat: number | null): void {
    if (capacitySat !== null) this.capacitySat = Math.max(capacitySat, this.capacitySat ?? 0)
  }

  #saw(atMs: number): void {
    if (atMs > this.latestMs) this.latestMs = atMs
  }
}

function costMsat(payment: SendingRecord): number {
  return payment.amountMsat + payment.feeMsat
}

function required<T>(value: T | undefined, name: string): T {
  if (value === undefined) throw new Error(`the journal refers to ${name} before it was written`)
  return value
}
