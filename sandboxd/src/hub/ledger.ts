import type { Target } from '../json-client.ts'

/** The hub's state, as a pure function of its journal. */
export type NodeRecord = { t: 'node'; nodeId: string } & Target
export type GrantRecord = { t: 'grant'; fundId: string; nodeId: string; amountSat: number }
export type GrantEndRecord = { t: 'granted' | 'ungranted'; fundId: string }
export type PayingRecord = {
  t: 'paying'
  paymentId: string
  recipient: string
  paymentHash: string
  paymentSecret: string
  amountMsat: number
  /** Who requested the payment. Only this payer can get the result again. Absent if the operator of the hub requested it. */
  payer?: string
}
export type PaidRecord = { t: 'paid'; paymentId: string; preimage: string }
export type UnpaidRecord = { t: 'unpaid'; paymentId: string }
/** The compact form of all completed grants and payments. */
export type TotalsRecord = {
  t: 'totals'
  grantedMsat: number
  paidMsat: number
  paid: [paymentHash: string, preimage: string, payer?: string][]
}

export type HubRecord = NodeRecord | GrantRecord | GrantEndRecord | PayingRecord | PaidRecord | UnpaidRecord | TotalsRecord

export class HubLedger {
  readonly nodes = new Map<string, NodeRecord>()
  readonly pendingGrants = new Map<string, GrantRecord>()
  readonly pendingPayments = new Map<string, PayingRecord>()
  readonly paidByHash = new Map<string, { preimage: string; payer: string | undefined }>()
  grantedMsat = 0
  paidMsat = 0

  apply(record: HubRecord): void {
    switch (record.t) {
      case 'node':
        this.nodes.set(record.nodeId, record)
        return
      case 'grant':
        this.pendingGrants.set(record.fundId, record)
        return
      case 'granted':
      case 'ungranted': {
        const grant = this.pendingGrants.get(record.fundId)
        this.pendingGrants.delete(record.fundId)
        if (record.t === 'granted') this.grantedMsat += (grant?.amountSat ?? 0) * 1000
        return
      }
      case 'paying':
        this.pendingPayments.set(record.paymentId, record)
        return
      case 'paid':
      case 'unpaid': {
        const payment = this.pendingPayments.get(record.paymentId)
        this.pendingPayments.delete(record.paymentId)
        if (record.t === 'unpaid' || !payment) return
        this.paidMsat += payment.amountMsat
        this.paidByHash.set(payment.paymentHash, { preimage: record.preimage, payer: payment.payer })
        return
      }
      case 'totals':
        this.grantedMsat = record.grantedMsat
        this.paidMsat = record.paidMsat
        for (const [paymentHash, preimage, payer] of record.paid) this.paidByHash.set(paymentHash, { preimage, payer })
        return
      default:
        throw new Error(`a record of an unknown kind, written by a newer version: ${(record as { t: unknown }).t}`)
    }
  }

  compact(): HubRecord[] {
    const { grantedMsat, paidMsat } = this
    const paid = [...this.paidByHash].map(([paymentHash, { preimage, payer }]): TotalsRecord['paid'][number] =>
      payer === undefined ? [paymentHash, preimage] : [paymentHash, preimage, payer],
    )
    return [
      { t: 'totals', grantedMsat, paidMsat, paid },
      ...this.nodes.values(),
      ...this.pendingGrants.values(),
      ...this.pendingPayments.values(),
    ]
  }
}
