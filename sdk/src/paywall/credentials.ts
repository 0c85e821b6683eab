import { readInvoice } from '../../../protocol/src/bolt11.ts'
import { isObject } from '../../../protocol/src/bytes.ts'
import { MPP_HEADER, readMpp } from '../../../protocol/src/mpp.ts'
import { paymentIdOf } from '../../../protocol/src/payment-id.ts'
import { Refusal as CodecRefusal } from '../../../protocol/src/refusal.ts'
import { networkOfX402, readX402, type X402Reason, X402Refusal } from '../../../protocol/src/x402.ts'
import type { Protocol } from '../types.ts'
import { INVALID_PAYLOAD, type Refusal, refusalOf } from './answers.ts'
import type { PaymentFields } from './visit.ts'

/** The elements of a header list: text between commas outside quotes. An unterminated quote takes the rest. */
const ELEMENTS = /(?:[^",]|"(?:[^"\\]|\\.)*"?)+/g
const PAYMENT_SCHEME = /^(?:Payment|L402|LSAT) /i
const MPP_SCHEME = /^Payment /i

export type Credential = { protocol: Protocol; text: string }
/** A request whose credential cannot be used as it was sent. It gets no challenge, because the credential may be paid. */
export type Unusable = { unusable: string }

/**
 * The payment credential in an Authorization header; undefined unless there is exactly one. Other credentials are ignored:
 * `Bearer …` is a login, not an invalid payment, and `Digest nc="Payment x"` must not be read as a payment.
 */
export function credentialIn(authorization: string | null | undefined): string | undefined {
  // Fast path: almost every header is a single credential.
  if (authorization && PAYMENT_SCHEME.test(authorization) && !authorization.includes(',')) return authorization.trim()
  const credentials = elementsOf(authorization).filter((element) => PAYMENT_SCHEME.test(element))
  return credentials.length === 1 ? credentials[0] : undefined
}

export const hasOtherFields = ({ paymentAuthorization, paymentSignature }: PaymentFields): boolean =>
  Boolean(paymentAuthorization || paymentSignature)

/** The request's payment credential; undefined if it has none. */
export function findCredential(fields: PaymentFields, requiresAuth: boolean): Credential | Unusable | undefined {
  const { authorization, paymentAuthorization, paymentSignature } = fields
  const usual = elementsOf(authorization).filter((element) => isCredential(element, requiresAuth))
  const own = elementsOf(paymentAuthorization)
  const signatures = elementsOf(paymentSignature)
  if (usual.length + own.length + signatures.length > 1)
    return { unusable: 'The request has more than one payment credential. Send only one of them. None was used up.' }
  const [text] = [...usual, ...own, ...signatures]
  if (text === undefined) return undefined
  if (signatures.length > 0) return { protocol: 'x402', text }
  if (own.length > 0 && !MPP_SCHEME.test(text))
    return { unusable: `${MPP_HEADER} is only for the scheme Payment. Do not pay again: send the credential in Authorization.` }
  if (usual.length > 0 && isForOwnField(text))
    return { unusable: `Do not pay again: send the credential in ${MPP_HEADER}, as its challenge says.` }
  return { protocol: MPP_SCHEME.test(text) ? 'mpp' : 'l402', text }
}

/** The Authorization header without its payment credentials; undefined if nothing is left. */
export function withoutCredentials(authorization: string, requiresAuth: boolean): string | undefined {
  const elements = elementsOf(authorization)
  const others = elements.filter((element) => !isCredential(element, requiresAuth))
  if (others.length === elements.length) return authorization
  return others.length === 0 ? undefined : others.join(', ')
}

/** With `requiresAuth`, the seller's own credentials may use the scheme too. */
const isCredential = (element: string, requiresAuth: boolean): boolean =>
  PAYMENT_SCHEME.test(element) && (!requiresAuth || paymentIdOf(element) !== undefined)

/**
 * The invoice that an x402 credential claims to have paid, or why the credential cannot be valid. This is checked before
 * everything that costs more: otherwise any invented text would make the shop read a body and call the gateway.
 */
export function invoiceIn(credential: string): { invoice: string } | { refusal: Refusal } {
  const read = readX402(credential)
  if (read instanceof X402Refusal) return { refusal: INVALID_PAYLOAD }
  const { scheme, network, extra } = read.accepted
  const invoice = isObject(extra) ? extra.invoice : undefined
  if (typeof invoice !== 'string') return { refusal: INVALID_PAYLOAD }
  if (scheme !== 'exact') return refusedFor('unsupported_scheme')
  if (networkOfX402(network) === undefined) return refusedFor('unsupported_network')
  const decoded = readInvoice(invoice)
  if (!decoded) return refusedFor('invalid_exact_lnbtc_invoice_decode_failed')
  return decoded.network === networkOfX402(network) ? { invoice } : refusedFor('invalid_exact_lnbtc_invoice_currency_mismatch')
}

const refusedFor = (errorReason: X402Reason): { refusal: Refusal } => ({
  refusal: refusalOf('invalid_payment_credential', { errorReason }),
})

function elementsOf(header: string | null | undefined): string[] {
  return (header?.match(ELEMENTS) ?? []).map((element) => element.trim()).filter((element) => element !== '')
}

/** True if the credential's challenge asked for a separate header. It is then not accepted in Authorization. */
function isForOwnField(credential: string): boolean {
  const read = MPP_SCHEME.test(credential) ? readMpp(credential) : undefined
  return read !== undefined && !(read instanceof CodecRefusal) && read.challenge.header !== undefined
}
