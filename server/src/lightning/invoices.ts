import { createHash } from 'node:crypto'
import { type Invoice, invoiceExpiresAtSeconds, readInvoice } from '../../../protocol/src/bolt11.ts'
import type { NodeAddress } from '../platform/node-agent.ts'
import { Problem } from '../problems.ts'
import { createInvoice, type InvoiceParams } from './phoenixd/client.ts'

export type Payee = { address: NodeAddress; password: string; network: Invoice['network'] }
export type CheckedInvoice = Invoice & { serialized: string }

/** For descriptions longer than this many UTF-16 code units, a node accepts only their hash. */
const LONGEST_INVOICE_DESCRIPTION = 128

/** Creates an invoice and checks that it is the one requested, because the customer pays whatever it says. */
export async function invoiceFrom(payee: Payee, params: InvoiceParams, timeoutMs: number): Promise<CheckedInvoice> {
  const made = await createInvoice(payee.address, payee.password, params, timeoutMs)
  if (made.answer !== 'invoice') {
    const why = made.answer === 'refused' ? made.why : 'no answer in time'
    throw new Problem('payment_service_unavailable', 'The node did not return an invoice. Try again shortly.', {
      cause: new Error(`createinvoice: ${why}`),
    })
  }
  const invoice = readInvoice(made.serialized)
  if (!invoice) throw oddInvoice('it cannot be decoded')
  if (invoice.network !== payee.network) throw oddInvoice('its network differs')
  if (invoice.amountMsat !== (params.amountSat === undefined ? undefined : params.amountSat * 1000))
    throw oddInvoice('its amount differs')
  if (invoice.paymentHash !== made.paymentHash) throw oddInvoice('its payment hash differs')
  if (!isDescribedAs(invoice, params)) throw oddInvoice('its description differs')
  return { ...invoice, serialized: made.serialized }
}

function isDescribedAs(invoice: Invoice, { description, descriptionHash }: InvoiceParams): boolean {
  if (descriptionHash !== undefined) return invoice.descriptionHash === descriptionHash
  if (description.length <= LONGEST_INVOICE_DESCRIPTION) return invoice.description === description
  return invoice.descriptionHash === createHash('sha256').update(description).digest('hex')
}

/** When the invoice can no longer be paid: after the given lifetime, or at the invoice's own expiry if that is earlier. */
export function expiryOf(invoice: Invoice, nowSeconds: number, lifetimeSeconds: number): number {
  const expiresAtSeconds = Math.min(nowSeconds + lifetimeSeconds, invoiceExpiresAtSeconds(invoice))
  if (expiresAtSeconds <= nowSeconds) throw oddInvoice('it has already expired')
  return expiresAtSeconds
}

/** The cause goes to the log and contains no part of the invoice. */
export const oddInvoice = (why: string): Problem =>
  new Problem('payment_service_unavailable', 'The node returned an invoice that does not match the request.', {
    cause: new Error(`the node’s invoice: ${why}`),
  })
