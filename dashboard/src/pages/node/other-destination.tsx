import type { ReactNode } from 'react'
import type { Bolt12Offer } from '../../../../protocol/src/bolt12.ts'
import { MsatAmount } from '../../components/amount.tsx'
import { TextLink } from '../../components/layout/links.tsx'
import { Time, useNow } from '../../components/time.tsx'
import type { Destination } from '../../text/destination.ts'
import { shortened } from '../../text/format.ts'

/** What was pasted, if it is not an invoice, and what to do with it. */
export function OtherDestination({ to }: { to: Destination }) {
  switch (to.kind) {
    case 'offer':
      return (
        <Note call="payoffer" what="This is a BOLT 12 offer.">
          <OfferFacts offer={to.offer} />
        </Note>
      )
    case 'lightning-address':
      return (
        <Note call="paylnaddress" what="This is a Lightning address.">
          <dl className="facts">
            <dt>To</dt>
            <dd dir="auto">
              {to.user} at {to.domain}
            </dd>
            <dt>Amount, description, expiry</dt>
            <dd>unknown: only {to.domain} can say, and this page does not ask other servers</dd>
          </dl>
        </Note>
      )
    case 'lnurl':
      return <Note call="lnurlpay" what="This is an LNURL. Whom it pays is unknown: only the server behind it can say." />
    case 'bitcoin-address':
      return <Note call="sendtoaddress" what="This is a Bitcoin address. Who owns it is unknown." />
    case 'broken':
      return (
        <p className="note">
          This begins like {to.what === 'offer' ? 'an offer' : 'an invoice'}, but it is incomplete or has a typing error. Copy it
          again.
        </p>
      )
    default:
      return null
  }
}

function Note({ call, what, children }: { call: string; what: string; children?: ReactNode }) {
  return (
    <section className="preview" aria-label="What you pasted">
      <p>
        {what} This page only pays invoices. Ask for an invoice, or call <code>/{call}</code> of the node’s own API; see{' '}
        <TextLink to="." search={{ tab: 'connect' }}>
          Connect
        </TextLink>
        .
      </p>
      {children}
    </section>
  )
}

function OfferFacts({ offer }: { offer: Bolt12Offer }) {
  const now = useNow(60)
  const { amount, currency, description, issuer, issuerKey, expiresAtSeconds } = offer
  return (
    <dl className="facts">
      <dt>To</dt>
      <dd dir="auto">
        {issuer ?? 'unknown: the offer does not say'}
        {issuer !== undefined && <div className="small dim">As the offer says. Nobody has verified it.</div>}
      </dd>
      <dt>Key</dt>
      <dd className={issuerKey && 'mono'} title={issuerKey}>
        {issuerKey ? shortened(issuerKey) : 'hidden by the offer'}
      </dd>
      <dt>Amount</dt>
      <dd>
        {amount === undefined && 'you choose it'}
        {amount !== undefined &&
          (currency === undefined ? <MsatAmount msat={amount} /> : `${amount} (smallest unit of ${currency})`)}
      </dd>
      <dt>Description</dt>
      <dd dir="auto">{description || 'not in the offer'}</dd>
      <dt>Expires</dt>
      <dd>
        {expiresAtSeconds === undefined && 'never'}
        {expiresAtSeconds !== undefined && expiresAtSeconds <= now && 'It has expired: '}
        {expiresAtSeconds !== undefined && <Time at={expiresAtSeconds} />}
      </dd>
    </dl>
  )
}
