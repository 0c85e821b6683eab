import { type Invoice, invoiceExpiresAtSeconds } from '../../../../protocol/src/bolt11.ts'
import { satFromMsat } from '../../../../protocol/src/units.ts'
import { MsatAmount } from '../../components/amount.tsx'
import { CopyButton } from '../../components/copy-button.tsx'
import { Time, useNow } from '../../components/time.tsx'
import { shortened } from '../../text/format.ts'
import type { Payee } from './use-payee.ts'

type Props = { invoice: Invoice; payee: Payee; balanceSat: number | null }

/** Whom a pasted invoice pays, and what it asks for. */
export function InvoicePreview({ invoice, payee, balanceSat }: Props) {
  const now = useNow()
  const expiresAt = invoiceExpiresAtSeconds(invoice)
  const { amountMsat, description, paymentHash, network } = invoice
  const isTooMuch = amountMsat !== undefined && balanceSat !== null && satFromMsat(amountMsat) > balanceSat
  return (
    <section className="preview" aria-label="The invoice">
      <dl className="facts">
        <dt>To</dt>
        <dd>
          {payee === 'loading' && 'reading the signature…'}
          {payee === 'invalid' && 'unknown: the signature of the invoice is invalid, so no wallet will pay it'}
          {payee === 'not-loaded' && 'unknown: the code that reads it could not be loaded'}
          {typeof payee === 'object' && (
            <div>
              node{' '}
              <span className="mono" title={payee.key}>
                {shortened(payee.key)}
              </span>{' '}
              <CopyButton text={payee.key} label="Copy key of the payee" />
              <div className="small dim">The key that signed the invoice. It does not say which person or company that is.</div>
            </div>
          )}
        </dd>
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
