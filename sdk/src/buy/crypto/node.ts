import { signatureOf } from '../../../../protocol/src/bolt11-signature.ts'
import { concat, fromHex } from '../../../../protocol/src/bytes.ts'
import { builtin } from '../store/node.ts'
import { type BuyerCrypto, NODE_KEY } from './crypto.ts'

const CURVE = 'secp256k1'
/** The part of a DER-encoded public key that comes before the point on the curve. */
const KEY_BEGINNING = fromHex('3036301006072a8648ce3d020106052b8104000a032200')

/** Undefined where there is no node:crypto, or where it does not know the curve, as in Deno and Bun. */
export function nodeCrypto(): BuyerCrypto | undefined {
  const node = builtin('node:crypto')
  if (!node?.hash || !node.getCurves?.().includes(CURVE)) return undefined
  const isNodeKey = (nodeKey: string): boolean => {
    if (!NODE_KEY.test(nodeKey)) return false
    try {
      node.ECDH.convertKey(nodeKey, CURVE, 'hex', 'hex', 'compressed')
      return true
    } catch {
      return false
    }
  }
  return {
    sha256: (data) => fromHex(node.hash('sha256', data, 'hex')),
    isNodeKey,
    isSignedBy: (invoice, nodeKey) => {
      const signed = signatureOf(invoice)
      if (!signed || (signed.payee ?? nodeKey) !== nodeKey || !isNodeKey(nodeKey)) return false
      const key = node.createPublicKey({ key: concat([KEY_BEGINNING, fromHex(nodeKey)]), format: 'der', type: 'spki' })
      return node.verify('sha256', signed.message, { key, dsaEncoding: 'ieee-p1363' }, signed.signature)
    },
  }
}
