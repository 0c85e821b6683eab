import { type Invoice, invoiceExpiresAtSeconds, normalizedInvoice, readInvoice } from '../../../../protocol/src/bolt11.ts'
import type { Note } from '../findings.ts'
import { signerOf } from '../signer.ts'

export type Protocol = 'mpp' | 'l402' | 'x402'

/** An offer with a readable invoice and an amount, whatever else may be wrong with it. */
export type LiveOffer = {
  protocol: Protocol
  invoiceText: string
  invoice: Invoice
  amountMsat: number
  /** The key of the node that signed the invoice. */
  signer: string | undefined
  /** MPP's id of the challenge, which its receipt names. */
  challengeId?: string
  /** The header that proves the payment. */
  present: (preimage: string) => Record<string, string>
}

export type PricedInvoice = Pick<LiveOffer, 'invoiceText' | 'invoice' | 'amountMsat' | 'signer'>

const MIN_LIFETIME_SECONDS = 60
const MAX_SKEW_SECONDS = 60

export const nowSeconds = (): number => Math.floor(Date.now() / 1000)

/** Undefined if the invoice cannot be read or has no amount. */
export function checkInvoice(given: unknown, protocol: Protocol, note: Note): PricedInvoice | undefined {
  const invoiceText = normalizedInvoice(typeof given === 'string' ? given : '')
  const invoice = readInvoice(invoiceText)
  if (!invoice) {
    note('invoice-malformed', `${protocol}: ${invoiceText === '' ? 'no invoice' : invoiceText.slice(0, 40)}`)
    return undefined
  }
  const signer = signerOf(invoiceText)
  if (signer === undefined) note('invoice-signature', `${protocol}: no valid signature`)
  if (invoice.amountMsat === undefined) {
    note('invoice-no-amount', `${protocol}: an invoice without an amount`)
    return undefined
  }
  const remaining = invoiceExpiresAtSeconds(invoice) - nowSeconds()
  if (remaining <= 0) note('invoice-expired', `${protocol}: expired ${-remaining} s ago`)
  else if (remaining < MIN_LIFETIME_SECONDS) note('invoice-short-lived', `${protocol}: expires in ${remaining} s`)
  const ahead = invoice.timestampSeconds - nowSeconds()
  if (ahead > MAX_SKEW_SECONDS) note('clock-skew', `${protocol}: an invoice that was created ${ahead} s in the future`)
  return { invoiceText, invoice, amountMsat: invoice.amountMsat, signer }
}

/** Millisatoshis for people. */
export const price = (amountMsat: number): string => `${amountMsat / 1000} sat`
