import { createPublicKey, ECDH, verify } from 'node:crypto'
import { signatureOf } from '../../../protocol/src/bolt11-signature.ts'

const CURVE = 'secp256k1'
/** A public key in DER, up to the point itself. */
const KEY_BEGINNING = Buffer.from('3036301006072a8648ce3d020106052b8104000a032200', 'hex')

const KEY = /^0[23][0-9a-f]{64}$/

/**
 * Whether the text is a point on the curve, compressed, in lowercase hex. `KEY` is checked first because OpenSSL also accepts other
 * forms and an empty string.
 */
export function isNodeKey(nodeKey: string): boolean {
  if (!KEY.test(nodeKey)) return false
  try {
    ECDH.convertKey(nodeKey, CURVE, 'hex', 'hex', 'compressed')
    return true
  } catch {
    return false
  }
}

/**
 * Whether this node signed the invoice. Verifies with the known key and does not recover it: node:crypto cannot, and in JavaScript that
 * would block the process for milliseconds.
 */
export function isSignedBy(invoice: string, nodeKey: string): boolean {
  const signed = signatureOf(invoice)
  if (!signed || (signed.payee ?? nodeKey) !== nodeKey || !isNodeKey(nodeKey)) return false
  const key = createPublicKey({ key: Buffer.concat([KEY_BEGINNING, Buffer.from(nodeKey, 'hex')]), format: 'der', type: 'spki' })
  return verify('sha256', signed.message, { key, dsaEncoding: 'ieee-p1363' }, signed.signature)
}
