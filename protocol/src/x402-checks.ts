import { type Invoice, invoiceExpiresAtSeconds, readInvoice } from './bolt11.ts'
import { hasOnlyDescriptionHash } from './bolt11-signature.ts'
import { fromHex, isObject } from './bytes.ts'
import type { Primitives } from './primitives.ts'
import { networkOfX402, type X402Payment, type X402Reason, X402Refusal } from './x402.ts'
import { isBinding } from './x402-binding.ts'

type Json = Record<string, unknown>

/** How far two clocks may differ. Also how long after its expiry a paid invoice is accepted. */
export const X402_SKEW_SECONDS = 60

/** What the checks cannot find out by themselves. */
export type X402Context = {
  nowSeconds: number
  /** Whether these 66 hex digits are a point on secp256k1. */
  isNodeKey: (payTo: string) => boolean
  /** Whether this node signed the invoice. */
  isSignedBy: (invoice: string, payTo: string) => boolean
}

/**
 * Returns the invoice if the payment proves what is required. The specification fixes the order of the checks, and other implementations
 * compare the reasons. The caller must check the settlement and that the payment was not used: a preimage only proves that someone knew it.
 */
export function judgeX402(
  primitives: Primitives,
  { accepted, payload }: X402Payment,
  required: Json,
  context: X402Context,
): Invoice | X402Refusal {
  const extras: [Json, Json] = [objectIn(accepted.extra), objectIn(required.extra)]
  const reason = difference(accepted, required) ?? termsReason(required, context) ?? extraReason(...extras)
  if (reason) return new X402Refusal(reason)
  const invoice = judgeInvoice(extras[0].invoice, required, context)
  if (invoice instanceof X402Refusal) return invoice
  const late = preimageReason(primitives, payload, invoice) ?? expiryReason(invoice, context)
  return late ? new X402Refusal(late) : invoice
}

/** The same for a client that has not paid yet: whether the requirements are valid, and their invoice asks for exactly this. */
export function judgeRequirements(required: Json, context: X402Context): Invoice | X402Refusal {
  const extra = objectIn(required.extra)
  const reason = termsReason(required, context) ?? extraReason(extra, extra)
  return reason ? new X402Refusal(reason) : judgeInvoice(extra.invoice, required, context)
}

/** Step 1: the fields of the core protocol. */
function difference(accepted: Json, required: Json): X402Reason | undefined {
  if (accepted.scheme !== required.scheme) return 'unsupported_scheme'
  if (accepted.network !== required.network) return 'network_mismatch'
  if (accepted.amount !== required.amount) return 'invalid_exact_lnbtc_amount_mismatch'
  if (accepted.asset !== required.asset) return 'invalid_exact_lnbtc_asset'
  if (accepted.payTo !== required.payTo) return 'invalid_exact_lnbtc_pay_to_mismatch'
  if (accepted.maxTimeoutSeconds !== required.maxTimeoutSeconds) return 'invalid_exact_lnbtc_max_timeout_mismatch'
  return undefined
}

/** Step 2: whether the terms that both sides agree on are valid. */
function termsReason(terms: Json, { isNodeKey }: X402Context): X402Reason | undefined {
  const { amount, maxTimeoutSeconds, payTo } = terms
  if (terms.scheme !== 'exact') return 'unsupported_scheme'
  if (networkOfX402(terms.network) === undefined) return 'unsupported_network'
  if (terms.asset !== 'BTC') return 'invalid_exact_lnbtc_asset'
  if (typeof amount !== 'string' || !/^[1-9][0-9]{0,18}$/.test(amount)) return 'invalid_exact_lnbtc_amount'
  if (!Number.isSafeInteger(maxTimeoutSeconds) || (maxTimeoutSeconds as number) <= 0) return 'invalid_exact_lnbtc_max_timeout'
  const isKey = typeof payTo === 'string' && /^0[23][0-9a-f]{64}$/.test(payTo) && isNodeKey(payTo)
  return isKey ? undefined : 'invalid_exact_lnbtc_pay_to_malformed'
}

const METHOD = 'assetTransferMethod'
const FLOW = 'paymentFlow'
const BINDING = ['requestHash', 'requestBindingProfile', 'requestBindingParams']
/** These fields have separate rules. Everything else that the server has declared must come back unchanged. */
const KNOWN = new Set(['invoice', METHOD, FLOW, ...BINDING])

/** Steps 3 and 4: method, flow, request, other fields of the server, invoices. A client may add fields. */
function extraReason(accepted: Json, required: Json): X402Reason | undefined {
  const sides = [accepted, required]
  if (sides.some((extra) => Object.hasOwn(extra, METHOD) && extra[METHOD] !== 'bolt11'))
    return 'invalid_exact_lnbtc_asset_transfer_method'
  if (sides.some((extra) => extra[FLOW] !== 'upfront')) return 'invalid_exact_lnbtc_payment_flow'
  if (!sides.every(isBinding)) return 'invalid_exact_lnbtc_request_binding'
  if (!BINDING.every((name) => isSame(accepted[name], required[name]))) return 'invalid_exact_lnbtc_request_mismatch'
  const others = Object.keys(required).filter((name) => !KNOWN.has(name))
  if (!others.every((name) => Object.hasOwn(accepted, name) && isSame(accepted[name], required[name])))
    return 'invalid_exact_lnbtc_extra_mismatch'
  return sides.some(({ invoice }) => invoice === undefined || invoice === null || invoice === '')
    ? 'invalid_exact_lnbtc_invoice_missing'
    : undefined
}

/** Step 5, also for an invoice that a node has just made. */
export function judgeInvoice(text: unknown, required: Json, context: X402Context): Invoice | X402Refusal {
  const invoice = typeof text === 'string' ? readInvoice(text) : undefined
  if (!invoice || typeof text !== 'string') {
    const isOther = typeof text === 'string' && hasOnlyDescriptionHash(text) === false
    return new X402Refusal(isOther ? 'invalid_exact_lnbtc_invoice_description' : 'invalid_exact_lnbtc_invoice_decode_failed')
  }
  const reason = invoiceReason(text, invoice, required, context)
  return reason ? new X402Refusal(reason) : invoice
}

function invoiceReason(
  text: string,
  invoice: Invoice,
  required: Json,
  { nowSeconds, isSignedBy }: X402Context,
): X402Reason | undefined {
  if (invoice.descriptionHash === undefined) return 'invalid_exact_lnbtc_invoice_description'
  if (invoice.descriptionHash !== objectIn(required.extra).requestHash) return 'invalid_exact_lnbtc_invoice_request_mismatch'
  if (!isSignedBy(text, String(required.payTo))) return 'invalid_exact_lnbtc_invoice_payee_mismatch'
  if (invoice.network !== networkOfX402(required.network)) return 'invalid_exact_lnbtc_invoice_currency_mismatch'
  if (String(invoice.amountMsat) !== required.amount) return 'invalid_exact_lnbtc_invoice_amount_mismatch'
  if (invoice.expirySeconds !== required.maxTimeoutSeconds) return 'invalid_exact_lnbtc_invoice_expiry_mismatch'
  if (invoice.timestampSeconds > nowSeconds + X402_SKEW_SECONDS) return 'invalid_exact_lnbtc_invoice_created_in_future'
  return undefined
}

/** Step 6. */
function preimageReason({ sha256, isEqual }: Primitives, payload: unknown, invoice: Invoice): X402Reason | undefined {
  const { preimage } = objectIn(payload)
  if (preimage === undefined || preimage === null) return 'invalid_exact_lnbtc_preimage_missing'
  if (typeof preimage !== 'string' || /[^0-9a-f]/.test(preimage)) return 'invalid_exact_lnbtc_preimage_malformed'
  if (preimage.length !== 64) return 'invalid_exact_lnbtc_preimage_length'
  const isRight = isEqual(sha256(fromHex(preimage)), fromHex(invoice.paymentHash))
  return isRight ? undefined : 'invalid_exact_lnbtc_preimage_hash_mismatch'
}

/** Step 7: the last second is included. */
const expiryReason = (invoice: Invoice, { nowSeconds }: X402Context): X402Reason | undefined =>
  nowSeconds > invoiceExpiresAtSeconds(invoice) + X402_SKEW_SECONDS ? 'invalid_exact_lnbtc_invoice_expired' : undefined

const objectIn = (value: unknown): Json => (isObject(value) ? value : {})

/** Nothing a server declares is nested more deeply. Without a limit, a client could make the comparison overflow the stack. */
const MAX_DEPTH = 16

/** Whether two JSON values have the same canonical form. */
function isSame(one: unknown, other: unknown, depth = 0): boolean {
  if (one === other) return true
  if (depth > MAX_DEPTH) return false
  if (Array.isArray(one) && Array.isArray(other))
    return one.length === other.length && one.every((value, at) => isSame(value, other[at], depth + 1))
  if (!isObject(one) || !isObject(other)) return false
  const names = Object.keys(one)
  return (
    names.length === Object.keys(other).length &&
    names.every((name) => Object.hasOwn(other, name) && isSame(one[name], other[name], depth + 1))
  )
}
