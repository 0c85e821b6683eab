import { normalizedInvoice, readInvoice } from '../../../../protocol/src/bolt11.ts'
import { isObject, jsonObjectIn, toBase64, utf8Of } from '../../../../protocol/src/bytes.ts'
import { X402_VERSION, X402Refusal } from '../../../../protocol/src/x402.ts'
import { bindHttp } from '../../../../protocol/src/x402-binding.ts'
import { judgeX402 } from '../../../../protocol/src/x402-checks.ts'
import { type Note, type RuleId, shown, textIn } from '../findings.ts'
import { isNodeKey, primitives, signerOf } from '../signer.ts'
import { sentHeaders, type Visit } from '../visit.ts'
import { checkInvoice, type LiveOffer, nowSeconds } from './offer.ts'

type Json = Record<string, unknown>

/** Reported by `checkInvoice`, which checks the invoices of all protocols, or by `checkSpelling`. */
const REPORTED_ELSEWHERE = ['invoice_decode_failed', 'invoice_missing', 'invoice_created_in_future']
const RULE_OF_REASON: Record<string, RuleId> = {
  invoice_description: 'x402-description',
  invoice_request_mismatch: 'x402-description',
  invoice_payee_mismatch: 'x402-pay-to',
  pay_to_malformed: 'x402-pay-to',
  invoice_currency_mismatch: 'x402-network',
  invoice_amount_mismatch: 'x402-amount',
  amount: 'x402-amount',
  invoice_expiry_mismatch: 'x402-expiry',
  max_timeout: 'x402-expiry',
}

/** Ignores offers on networks other than Lightning. */
export function checkX402(header: string, visit: Visit, note: Note): LiveOffer[] {
  const document = jsonObjectIn(header)
  if (!document || document.x402Version !== X402_VERSION || !Array.isArray(document.accepts)) {
    note('x402-malformed', document ? `x402Version ${shown(document.x402Version)}` : header)
    return []
  }
  if (!isShallow(document)) {
    note('x402-malformed', 'nested too deeply')
    return []
  }
  const url = isObject(document.resource) ? document.resource.url : undefined
  const entries = document.accepts.filter((one): one is Json => isObject(one) && textIn(one.network).startsWith('lnbtc:'))
  if (entries.length > 0 && url !== urlOf(visit)) note('x402-url', `resource.url ${shown(url)}`, urlOf(visit))
  return entries.map((entry) => checkEntry(entry, document.resource, visit, note)).filter((one) => one !== undefined)
}

const MAX_DEPTH = 32

/** Writing a deeply nested document back as JSON would overflow the stack. */
const isShallow = (value: unknown, depth = 0): boolean =>
  typeof value !== 'object' ||
  value === null ||
  (depth < MAX_DEPTH && Object.values(value).every((one) => isShallow(one, depth + 1)))

const urlOf = ({ url }: Visit): string => url.origin + url.pathname + url.search

function checkEntry(required: Json, resource: unknown, visit: Visit, note: Note): LiveOffer | undefined {
  const extra = isObject(required.extra) ? required.extra : {}
  checkRequestHash(extra, visit, note)
  const reason = reasonOf(required)
  if (reason !== undefined && !REPORTED_ELSEWHERE.includes(reason))
    note(RULE_OF_REASON[reason] ?? 'x402-terms', seenOf(reason, required))
  // An invoice with the wrong kind of description may be unreadable for that reason, which was reported above.
  const priced = checkInvoice(extra.invoice, 'x402', reason === 'invoice_description' ? () => undefined : note)
  if (reason === 'invoice_decode_failed') checkSpelling(textIn(extra.invoice), note)
  if (!priced) return undefined
  return {
    protocol: 'x402',
    ...priced,
    present: (preimage) => {
      const payment = { x402Version: X402_VERSION, resource, accepted: required, payload: { preimage } }
      return { 'payment-signature': toBase64(utf8Of(JSON.stringify(payment))) }
    },
  }
}

/** `checkInvoice` also reads an invoice that is written as in a QR code or a link, but x402 clients refuse it. */
function checkSpelling(invoice: string, note: Note): void {
  if (!readInvoice(normalizedInvoice(invoice))) return
  // Only the beginning, which is the same in all visits, so that there is one finding.
  note(
    'invoice-malformed',
    `x402: ${shown(`${invoice.slice(0, 10)}…`)}`,
    'an invoice in lowercase, without "lightning:" or spaces',
  )
}

/** Judges the requirements as if they had been paid with a wrong preimage: every check before that of the preimage is about the seller. */
function reasonOf(required: Json): string | undefined {
  const isSignedBy = (invoice: string, payTo: string): boolean => signerOf(invoice) === payTo
  const payment = { accepted: required, payload: { preimage: '0'.repeat(64) } }
  const judged = judgeX402(primitives, payment, required, { nowSeconds: nowSeconds(), isNodeKey, isSignedBy })
  const reason = judged instanceof X402Refusal ? judged.errorReason.replace('invalid_exact_lnbtc_', '') : undefined
  return reason === 'preimage_hash_mismatch' ? undefined : reason
}

function seenOf(reason: string, { network, amount, payTo, maxTimeoutSeconds }: Json): string {
  const said: Record<string, unknown> = {
    'x402-pay-to': payTo,
    'x402-amount': amount,
    'x402-expiry': maxTimeoutSeconds,
    'x402-network': network,
  }
  const value = said[RULE_OF_REASON[reason] ?? '']
  return value === undefined ? reason : `${reason}: ${shown(value)}`
}

/** Only for the binding `http:1`: the hash of a request to an MCP server cannot be computed here. */
function checkRequestHash({ requestHash, requestBindingProfile, requestBindingParams }: Json, visit: Visit, note: Note): void {
  const names = isObject(requestBindingParams) ? requestBindingParams.headers : undefined
  if (requestBindingProfile !== 'http:1' || !Array.isArray(names) || !names.every((one) => typeof one === 'string')) return
  const headers = sentHeaders(visit)
  const bound = bindHttp(primitives, { method: visit.method, url: urlOf(visit), header: (name) => headers[name] }, names)
  if (bound && bound.requestHash !== requestHash) note('x402-request-hash', shown(requestHash), bound.requestHash)
}
