import { secp256k1 } from '@noble/curves/secp256k1.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { signatureOf } from '../../../../protocol/src/bolt11-signature.ts'
import { fromHex } from '../../../../protocol/src/bytes.ts'
import { type BuyerCrypto, NODE_KEY } from './crypto.ts'

/** For runtimes without node:crypto. Not Web Crypto, which is asynchronous and does not have this curve. */
export const nobleCrypto: BuyerCrypto = {
  sha256: (data) => sha256(data),
  isNodeKey,
  isSignedBy: (invoice, nodeKey) => {
    const signed = signatureOf(invoice)
    if (!signed || (signed.payee ?? nodeKey) !== nodeKey || !isNodeKey(nodeKey)) return false
    // BOLT 11 does not require the lower of the two equivalent signatures.
    return secp256k1.verify(signed.signature, signed.message, fromHex(nodeKey), { lowS: false })
  },
}

function isNodeKey(nodeKey: string): boolean {
  try {
    return NODE_KEY.test(nodeKey) && secp256k1.Point.fromHex(nodeKey) !== undefined
  } catch {
    return false
  }
}
