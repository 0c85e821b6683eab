import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { deductedMsat, type Ledger } from '../node/ledger.ts'

const HEADER = 'date,id,type,amount_msat,fee_credit_msat,mining_fee_sat,service_fee_msat,payment_hash,tx_id'

/** The sums of amount_msat and fee_credit_msat over all rows are the effect of payments on the balance and the fee credit. */
export async function exportPayments(ledger: Ledger, dataDir: string, from: number, to: number, nowMs: number): Promise<string> {
  const rows: { atMs: number; cells: (string | number)[] }[] = []
  for (const { invoice, received } of ledger.incomingByReceipt) {
    if (!received) continue
    const amountMsat = received.amountMsat - received.toFeeCreditMsat - deductedMsat(received)
    const creditMsat = received.toFeeCreditMsat - received.feeCreditUsedMsat
    const cells = ['lightning_received', amountMsat, creditMsat, 0, received.liquidityFeeMsat, invoice.paymentHash, '']
    rows.push({ atMs: received.atMs, cells: [received.paymentId, ...cells] })
  }
  for (const { payment, end } of ledger.outgoing.values()) {
    if (end?.t !== 'sent') continue
    const cells = ['lightning_sent', -(payment.amountMsat + payment.feeMsat), 0, 0, payment.feeMsat, payment.paymentHash, '']
    rows.push({ atMs: end.atMs, cells: [payment.paymentId, ...cells] })
  }
  const lines = rows
    .filter(({ atMs }) => atMs >= from && atMs <= to)
    .sort((a, b) => a.atMs - b.atMs)
    .map(({ atMs, cells }) => [new Date(atMs).toISOString(), ...cells].join(','))
  const directory = join(dataDir, 'exports')
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const path = join(directory, `export-${Math.floor(nowMs / 1000)}.csv`)
  await writeFile(path, `${[HEADER, ...lines].join('\n')}\n`, { mode: 0o600 })
  return path
}
