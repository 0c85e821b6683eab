import { invoiceExpiresAtSeconds } from './bolt11.ts'
import { isObject, jsonObjectIn, toBase64, utf8Of } from './bytes.ts'
import type { Offer, Offers } from './offers.ts'
import type { Primitives } from './primitives.ts'
import { satFromMsat } from './units.ts'
import { X402_VERSION, X402Refusal } from './x402.ts'
import { bindHttp, type HttpCall } from './x402-binding.ts'
import { judgeRequirements, type X402Context } from './x402-checks.ts'

/** Bounds the input of the decoder and the parser. */
const MAX_LENGTH = 64 * 1024

/**
 * Reads PAYMENT-REQUIRED for a client. Only offers that are bound to this request and signed by the node they name can be paid,
 * so a payment buys nothing else and goes to nobody else. Without a request, the binding is not checked: it was checked when the
 * offer was first read.
 */
export function readX402Offers(
  primitives: Pick<Primitives, 'sha256'>,
  text: string,
  request: HttpCall | undefined,
  context: X402Context,
): Offers {
  const document = text.length <= MAX_LENGTH ? jsonObjectIn(text) : undefined
  if (!document) return { unusable: 'Its PAYMENT-REQUIRED header is malformed' }
  if (document.x402Version !== X402_VERSION) return { unusable: `It does not use version ${X402_VERSION} of x402` }
  const { accepts, resource } = document
  const judged = (Array.isArray(accepts) ? accepts : [])
    .filter((one) => isObject(one) && String(one.network).startsWith('lnbtc:'))
    .map((one) => offerIn(primitives, one, resource, request, context))
  const [first, ...more] = judged.filter((one) => typeof one !== 'string')
  if (first) return { offers: [first, ...more] }
  return { unusable: judged.find((one) => typeof one === 'string') ?? 'Its x402 offers are not for Lightning' }
}

function offerIn(
  primitives: Pick<Primitives, 'sha256'>,
  required: Record<string, unknown>,
  resource: unknown,
  request: HttpCall | undefined,
  context: X402Context,
): Offer | string {
  const invoice = judgeRequirements(required, context)
  if (invoice instanceof X402Refusal) return `Its x402 offer is invalid: ${invoice.errorReason}`
  const {
    requestHash,
    requestBindingProfile,
    requestBindingParams,
    invoice: invoiceText,
  } = required.extra as Record<string, unknown>
  if (requestBindingProfile !== 'http:1') return 'Its x402 offer is not bound to an HTTP request'
  const { headers } = requestBindingParams as { headers: string[] }
  if (request && bindHttp(primitives, request, headers)?.requestHash !== requestHash)
    return 'Its x402 offer is for another request'
  if (invoiceExpiresAtSeconds(invoice) <= context.nowSeconds) return 'Its invoice has expired'
  return {
    protocol: 'x402',
    header: 'payment-signature',
    invoiceText: String(invoiceText),
    invoice,
    amountSat: satFromMsat(invoice.amountMsat ?? 0),
    credentialFor: (preimage) =>
      toBase64(
        utf8Of(
          JSON.stringify({
            x402Version: X402_VERSION,
            ...(resource ? { resource } : {}),
            accepted: required,
            payload: { preimage },
          }),
        ),
      ),
  }
}
