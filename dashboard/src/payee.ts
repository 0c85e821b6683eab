import { secp256k1 } from '@noble/curves/secp256k1.js'
import { signatureOf } from '../../protocol/src/bolt11-signature.ts'
import { fromHex, toHex } from '../../protocol/src/bytes.ts'

/**
 * The key of the node that is paid: it signed the invoice. Undefined if the signature is invalid. This file is loaded on demand,
 * because the code for the curve is larger than the page.
 */
export function payeeOf(invoice: string): string | undefined {
  const signed = signatureOf(invoice)
  if (!signed) return undefined
  const { message, signature, recoveryId, payee } = signed
  try {
    if (payee !== undefined) return secp256k1.verify(signature, message, fromHex(payee), { lowS: false }) ? payee : undefined
    return toHex(secp256k1.recoverPublicKey(Uint8Array.of(recoveryId, ...signature), message))
  } catch {
    // The numbers of the signature are out of range, or no key can be recovered from them.
    return undefined
  }
}
