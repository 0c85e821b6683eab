import { type Invoice, invoiceExpiresAtSeconds } from '../../../../protocol/src/bolt11.ts'
import { satFromMsat } from '../../../../protocol/src/units.ts'
import { MsatAmount } from '../../components/amount.tsx'
import { Time, useNow } from '../../components/time.tsx'
import { shortened } from '../../text/format.ts'

/** What a pasted invoice asks for. */
export function InvoicePreview({ invoice, balanceSat }: { invoice: Invoice; balanceSat: number | null }) {
  const now = useNow()
  const expiresAt = invoiceExpiresAtSeconds(invoice)
  const { amountMsat, description, paymentHash, network } = invoice
  const isTooMuch = amountMsat !== undefined && balanceSat !== null && satFromMsat(amountMsat) > balanceSat
  return (
    <section className="preview" aria-label="The invoice">
      <dl className="facts">
        <dt>Amount</dt>
        <dd>
          {amountMsat === undefined ? 'you choose it' : <MsatAmount msat={amountMsat} />}
          {isTooMuch && ' (more than the node has)'}
        </dd>
        <dt>Description</dt>
        <dd dir="auto">{description === undefined ? 'not in the invoice, only its hash' : description || 'empty'}</dd>
        <dt>Expires</dt>
        <dd>
          {expiresAt <= now && 'It has expired: '}
          <Time at={expiresAt} />
        </dd>
        <dt>Payment hash</dt>
        <dd className="mono" title={paymentHash}>
          {shortened(paymentHash)}
        </dd>
        <dt>Network</dt>
        <dd>{NETWORKS[network]}</dd>
      </dl>
    </section>
  )
}

const NETWORKS: Record<Invoice['network'], string> = {
  mainnet: 'Bitcoin',
  testnet: 'test network',
  signet: 'signet (a test network)',
  regtest: 'play money (regtest)',
}
