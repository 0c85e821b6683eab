import { readInvoice } from '../../../protocol/src/bolt11.ts'
import { fromHex, isObject, jsonObjectIn, toHex } from '../../../protocol/src/bytes.ts'
import { readL402 } from '../../../protocol/src/l402.ts'
import { readMpp } from '../../../protocol/src/mpp.ts'
import { Refusal } from '../../../protocol/src/refusal.ts'
import { readX402, X402Refusal } from '../../../protocol/src/x402.ts'
import type { Credential, Unusable } from './credentials.ts'
import { sha256Bytes } from './digest.ts'

/**
 * Whether the preimage in a credential belongs to the payment it names. This does not prove a payment to the shop: anyone can
 * create an invoice that passes. But it costs almost nothing, so it is checked before a body is read.
 */
export async function hasProof(credential: Credential | Unusable | undefined): Promise<boolean> {
  const claim = credential && !('unusable' in credential) ? claimOf(credential) : undefined
  if (!claim || !/^[0-9a-f]{64}$/i.test(claim.preimage)) return false
  return toHex(await sha256Bytes(fromHex(claim.preimage.toLowerCase()))) === claim.paymentHash
}

type Claim = { preimage: string; paymentHash: string | undefined }

function claimOf({ protocol, text }: Credential): Claim | undefined {
  if (protocol === 'l402') {
    const read = readL402(text)
    // The identifier begins with two bytes for its version, then the payment hash.
    return read instanceof Refusal ? undefined : { ...read, paymentHash: toHex(read.macaroon.identifier.subarray(2, 34)) }
  }
  if (protocol === 'mpp') {
    const read = readMpp(text)
    if (read instanceof Refusal) return undefined
    const details = jsonObjectIn(read.challenge.request)?.methodDetails
    return { preimage: read.preimage, paymentHash: isObject(details) ? hashIn(details.invoice) : undefined }
  }
  const read = readX402(text)
  if (read instanceof X402Refusal || !isObject(read.payload) || !isObject(read.accepted.extra)) return undefined
  return { preimage: String(read.payload.preimage), paymentHash: hashIn(read.accepted.extra.invoice) }
}

const hashIn = (invoice: unknown): string | undefined =>
  typeof invoice === 'string' ? readInvoice(invoice)?.paymentHash : undefined
