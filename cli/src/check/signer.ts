import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { signatureOf } from '../../../protocol/src/bolt11-signature.ts'
import { fromHex, toHex } from '../../../protocol/src/bytes.ts'
import type { Primitives } from '../../../protocol/src/primitives.ts'

export const primitives: Primitives = {
  sha256: (data) => createHash('sha256').update(data).digest(),
  hmacSha256: (key, data) => createHmac('sha256', key).update(data).digest(),
  isEqual: (one, other) => {
    const [a, b] = [Buffer.from(one), Buffer.from(other)]
    return a.length === b.length && timingSafeEqual(a, b)
  },
}

/** The key of the node that signed the invoice. Undefined if the signature is invalid, or not by the payee that the invoice names. */
export function signerOf(invoice: string): string | undefined {
  const signed = signatureOf(invoice)
  if (!signed) return undefined
  const { signature, recoveryId, payee } = signed
  const digest = primitives.sha256(signed.message)
  try {
    if (payee !== undefined)
      return secp256k1.verify(signature, digest, fromHex(payee), { prehash: false, lowS: false }) ? payee : undefined
    return toHex(secp256k1.recoverPublicKey(Uint8Array.of(recoveryId, ...signature), digest, { prehash: false }))
  } catch {
    // The numbers of the signature are out of range, or no key can be recovered from them.
    return undefined
  }
}

export function isNodeKey(key: string): boolean {
  try {
    secp256k1.Point.fromHex(key).assertValidity()
    return true
  } catch {
    return false
  }
}
