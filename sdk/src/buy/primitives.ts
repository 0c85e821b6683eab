import { secp256k1 } from '@noble/curves/secp256k1.js'
import { sha256 as hash } from '@noble/hashes/sha2.js'
import { signatureOf } from '../../../protocol/src/bolt11-signature.ts'
import { fromHex, toHex, utf8Of } from '../../../protocol/src/bytes.ts'

/** Not from Web Crypto, which is asynchronous: the codecs are not. */
export const sha256 = (data: Uint8Array): Uint8Array => hash(data)

export const sha256Hex = (data: Uint8Array | string): string => toHex(sha256(typeof data === 'string' ? utf8Of(data) : data))

/** Whether the text is a point of the curve, compressed and in lowercase hex. */
export function isNodeKey(nodeKey: string): boolean {
  try {
    return /^0[23][0-9a-f]{64}$/.test(nodeKey) && secp256k1.Point.fromHex(nodeKey) !== undefined
  } catch {
    return false
  }
}

/** Whether this node signed the invoice. */
export function isSignedBy(invoice: string, nodeKey: string): boolean {
  const signed = signatureOf(invoice)
  if (!signed || (signed.payee ?? nodeKey) !== nodeKey || !isNodeKey(nodeKey)) return false
  // BOLT 11 does not require the lower of the two equivalent signatures.
  return secp256k1.verify(signed.signature, signed.message, fromHex(nodeKey), { lowS: false })
}
