import { createHash } from 'node:crypto'
import { type Invoice, invoiceExpiresAtSeconds, readInvoice } from '../../../protocol/src/bolt11.ts'
import type { NodeAddress } from '../platform/node-agent.ts'
import { Problem } from '../problems.ts'
import { createInvoice, type InvoiceWish } from './phoenixd/client.ts'

export type Payee = { address: NodeAddress; password: string; network: Invoice['network'] }
export type CheckedInvoice = Invoice & { serialized: string }

/** Beyond this many UTF-16 units a node takes only a description's hash. */
const LONGEST_INVOICE_DESCRIPTION = 128

/** An invoice of a node, the one that was asked for: whoever pays pays what it says. */
export async function invoiceFrom(payee: Payee, wish: InvoiceWish, timeoutMs: number): Promise<CheckedInvoice> {
  const made = await createInvoice(payee.address, payee.password, wish, timeoutMs)
  if (made.answer !== 'invoice') {
    const why = made.answer === 'refused' ? made.why : 'no answer in time'
    throw new Problem('payment_service_unavailable', 'The node did not create an invoice. Try again shortly.', {
      cause: new Error(`createinvoice: ${why}`),
    })
  }
  const invoice = readInvoice(made.serialized)
  if (!invoice) throw oddInvoice('it cannot be read')
  if (invoice.network !== payee.network) throw oddInvoice('it is of another network')
  if (invoice.amountMsat !== (wish.amountSat === undefined ? undefined : wish.amountSat * 1000))
    throw oddInvoice('its amount is another')
  if (invoice.paymentHash !== made.paymentHash) throw oddInvoice('its payment hash is another')
  const isLong = wish.description.length > LONGEST_INVOICE_DESCRIPTION
  const isDescribed = isLong
    ? invoice.descriptionHash === createHash('sha256').update(wish.description).digest('hex')
    : invoice.description === wish.description
  if (!isDescribed) throw oddInvoice('its description is another')
  return { ...invoice, serialized: made.serialized }
}

/** When it can no longer be paid: our own time, or the invoice's if that is sooner. */
export function expiryOf(invoice: Invoice, nowSeconds: number, lifetimeSeconds: number): number {
  const expiresAtSeconds = Math.min(nowSeconds + lifetimeSeconds, invoiceExpiresAtSeconds(invoice))
  if (expiresAtSeconds <= nowSeconds) throw oddInvoice('it has expired already')
  return expiresAtSeconds
}

/** The cause goes to the log, without a word of the invoice. */
export const oddInvoice = (why: string): Problem =>
  new Problem('payment_service_unavailable', 'The node returned an invoice that does not match the request.', {
    cause: new Error(`the node’s invoice: ${why}`),
  })
