import { createECDH, createHmac, pbkdf2Sync } from 'node:crypto'

export type Network = 'mainnet' | 'testnet' | 'regtest'

const CURVE_ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
const HARDENED = 0x80000000

/** Uses phoenixd's derivation, so the result must equal the id that the node's API reports. */
export function lightningIdOf(mnemonic: string, network: Network): string {
  const seed = pbkdf2Sync(mnemonic.normalize('NFKD'), 'mnemonic', 2048, 64, 'sha512')
  const curve = createECDH('secp256k1')
  curve.setPrivateKey(privateKeyAt(seed, network === 'mainnet' ? [50, 0] : [48, 0]))
  return curve.getPublicKey('hex', 'compressed')
}

/**
 * BIP 32 with hardened steps only, which need no public keys. Computing public keys in JavaScript blocks the process for tens of
 * milliseconds.
 */
function privateKeyAt(seed: Buffer, path: number[]): Buffer {
  let { key, chainCode } = split(hmac(Buffer.from('Bitcoin seed'), seed))
  for (const step of path) {
    const index = Buffer.alloc(4)
    index.writeUInt32BE(HARDENED + step)
    const tweak = split(hmac(chainCode, Buffer.concat([Buffer.of(0), key, index])))
    const sum = numberOf(tweak.key) + numberOf(key)
    // Happens for about one seed in 2^127. Another seed works.
    if (numberOf(tweak.key) >= CURVE_ORDER || sum % CURVE_ORDER === 0n) throw new Error('this seed has no key at that path')
    key = Buffer.from((sum % CURVE_ORDER).toString(16).padStart(64, '0'), 'hex')
    chainCode = tweak.chainCode
  }
  return key
}

const hmac = (key: Buffer, data: Buffer): Buffer => createHmac('sha512', key).update(data).digest()
const split = (bytes: Buffer): { key: Buffer; chainCode: Buffer } => ({
  key: bytes.subarray(0, 32),
  chainCode: bytes.subarray(32),
})
const numberOf = (bytes: Buffer): bigint => BigInt(`0x${bytes.toString('hex')}`)
