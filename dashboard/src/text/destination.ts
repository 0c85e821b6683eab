import { type Invoice, normalizedInvoice, readInvoice } from '../../../protocol/src/bolt11.ts'
import { type Bolt12Offer, readOffer } from '../../../protocol/src/bolt12.ts'

/** What someone pasted to pay it. */
export type Destination =
  | { kind: 'invoice'; text: string; invoice: Invoice }
  | { kind: 'offer'; offer: Bolt12Offer }
  | { kind: 'lightning-address'; user: string; domain: string }
  | { kind: 'lnurl' }
  | { kind: 'bitcoin-address' }
  | { kind: 'broken'; what: 'invoice' | 'offer' }
  | { kind: 'unknown' }

const ADDRESS = /^₿?([^\s@]+)@([^\s@]+\.[^\s@]+)$/
const BITCOIN = /^(bitcoin:.+|(bc|tb|bcrt)1[02-9ac-hj-np-z]{20,}|[13mn2][1-9A-HJ-NP-Za-km-z]{25,34})$/i

export function destinationIn(pasted: string): Destination {
  const text = normalizedInvoice(pasted)
  const invoice = readInvoice(text)
  if (invoice) return { kind: 'invoice', text, invoice }
  const offer = readOffer(text)
  if (offer) return { kind: 'offer', offer }
  if (/^lno1/i.test(text)) return { kind: 'broken', what: 'offer' }
  if (/^lnurl1/i.test(text)) return { kind: 'lnurl' }
  if (/^ln(bc|tb)/i.test(text)) return { kind: 'broken', what: 'invoice' }
  const [, user, domain] = ADDRESS.exec(text) ?? []
  if (user !== undefined && domain !== undefined) return { kind: 'lightning-address', user, domain }
  return BITCOIN.test(text) ? { kind: 'bitcoin-address' } : { kind: 'unknown' }
}
