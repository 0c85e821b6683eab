import type { Network } from './bolt11.ts'
import { isObject, jsonObjectIn, toBase64, utf8Of } from './bytes.ts'
import { Refusal } from './refusal.ts'

/**
 * x402 version 2 with the scheme `exact` on `lnbtc`: what a client must pay (PAYMENT-REQUIRED), what it presents (PAYMENT-SIGNATURE) and
 * the answer (PAYMENT-RESPONSE), each as base64 of JSON. `x402-checks.ts` compares them.
 */
export const X402_VERSION = 2

/** `lnbtc:` and the beginning of the genesis block's hash. The specification has no regtest; the sandbox needs it. */
const NETWORKS = new Map<unknown, Network>([
  ['lnbtc:000000000019d6689c085ae165831e93', 'mainnet'],
  ['lnbtc:000000000933ea01ad0ee984209779ba', 'testnet'],
  ['lnbtc:0f9188f13cb7b2c71f2a335e3a4fc328', 'regtest'],
])

/** Undefined: not a network of x402. */
export const networkOfX402 = (id: unknown): Network | undefined => NETWORKS.get(id)

export function x402NetworkOf(network: Network): string | undefined {
  for (const [id, one] of NETWORKS) if (one === network) return id as string
  return undefined
}

export type X402Profile = 'http:1' | 'mcp:1'

/** The request that is sold. Its hash is also in the invoice, which the node signs. */
export type X402Binding = {
  requestHash: string
  requestBindingProfile: X402Profile
  requestBindingParams: Record<string, unknown>
}

export type X402Requirements = {
  scheme: 'exact'
  network: string
  /** Millisatoshis. */
  amount: string
  asset: 'BTC'
  payTo: string
  maxTimeoutSeconds: number
  extra: X402Binding & { assetTransferMethod: 'bolt11'; paymentFlow: 'upfront'; invoice: string }
}

export type X402Resource = { url: string; description?: string; mimeType?: string }

export type X402Terms = X402Binding & {
  network: string
  amountSat: number
  /** The receiving node's key: 66 lowercase hex digits. */
  nodeKey: string
  expirySeconds: number
  invoice: string
}

export function x402Requirements(terms: X402Terms): X402Requirements {
  const { requestHash, requestBindingProfile, requestBindingParams, invoice } = terms
  return {
    scheme: 'exact',
    network: terms.network,
    amount: `${terms.amountSat}000`,
    asset: 'BTC',
    payTo: terms.nodeKey,
    maxTimeoutSeconds: terms.expirySeconds,
    extra: {
      assetTransferMethod: 'bolt11',
      paymentFlow: 'upfront',
      requestHash,
      requestBindingProfile,
      requestBindingParams,
      invoice,
    },
  }
}

/** The value of PAYMENT-REQUIRED. */
export const issueX402 = (resource: X402Resource, requirements: X402Requirements): string =>
  toBase64(utf8Of(JSON.stringify({ x402Version: X402_VERSION, resource, accepts: [requirements] })))

/** What a challenge that we issued requires. */
export function requirementsIn(challenge: string): X402Requirements {
  const { accepts } = jsonObjectIn(challenge) ?? {}
  const [requirements] = Array.isArray(accepts) ? accepts : []
  if (!isObject(requirements) || !isObject(requirements.extra)) throw new Error('The stored challenge has no requirements.')
  return requirements as X402Requirements
}

/** A payment as it was presented. Nothing in it has been checked. */
export type X402Payment = { accepted: Record<string, unknown>; payload: unknown }

/** Twice the longest challenge we issue. Bounds the input of the decoder and the parser. */
const MAX_CREDENTIAL_LENGTH = 16 * 1024

export function readX402(credential: string): X402Payment | X402Refusal {
  const value = credential.length <= MAX_CREDENTIAL_LENGTH ? jsonObjectIn(credential) : undefined
  return value ? readX402Payload(value) : new X402Refusal('invalid_payload')
}

/** The same for a payload that was already decoded. */
export function readX402Payload({ x402Version, accepted, payload }: Record<string, unknown>): X402Payment | X402Refusal {
  if (x402Version !== X402_VERSION) return new X402Refusal('invalid_x402_version')
  // Without requirements, the first check fails, with the reason that the specification demands.
  return { accepted: isObject(accepted) ? accepted : {}, payload }
}

/** The value of PAYMENT-RESPONSE. Lightning does not reveal the payer. */
export const x402Response = (paymentHash: string, network: string): string =>
  toBase64(utf8Of(JSON.stringify({ success: true, transaction: paymentHash, network })))

type OfScheme =
  | 'asset'
  | 'amount'
  | 'amount_mismatch'
  | 'pay_to_mismatch'
  | 'pay_to_malformed'
  | 'max_timeout_mismatch'
  | 'max_timeout'
  | 'extra_mismatch'
  | 'request_binding'
  | 'request_mismatch'
  | 'asset_transfer_method'
  | 'payment_flow'
  | 'invoice_missing'
  | 'invoice_decode_failed'
  | 'invoice_description'
  | 'invoice_request_mismatch'
  | 'invoice_payee_mismatch'
  | 'invoice_currency_mismatch'
  | 'invoice_amount_mismatch'
  | 'invoice_expiry_mismatch'
  | 'invoice_created_in_future'
  | 'invoice_expired'
  | 'preimage_missing'
  | 'preimage_malformed'
  | 'preimage_length'
  | 'preimage_hash_mismatch'

/** Names that other implementations act on. */
export type X402Reason =
  | 'invalid_payload'
  | 'invalid_x402_version'
  | 'unsupported_scheme'
  | 'unsupported_network'
  | 'network_mismatch'
  | `invalid_exact_lnbtc_${OfScheme}`

/** Reasons that depend on the state of the payment, not on the credential. The last two are not final. */
export const DUPLICATE_SETTLEMENT = 'duplicate_settlement'
export const INVOICE_NOT_SETTLED = 'exact_lnbtc_invoice_not_settled'
export const RECEIVER_UNAVAILABLE = 'exact_lnbtc_receiver_unavailable'

export class X402Refusal extends Refusal {
  readonly errorReason: X402Reason

  constructor(errorReason: X402Reason) {
    const isExpired = errorReason === 'invalid_exact_lnbtc_invoice_expired'
    const message = isExpired
      ? 'The invoice expired too long ago. x402 does not accept it any more, even if it was paid.'
      : `The x402 payment was refused: ${errorReason}.`
    super(isExpired ? 'expired' : 'invalid', message)
    this.errorReason = errorReason
  }
}
