import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto'

/**
 * Secrets at rest: AES-256-GCM under keys derived from the master key, one per purpose. The context (account, node, field) is
 * authenticated, so a value that was copied to another node's row cannot be opened there.
 */
export type MasterKey = { id: string; bytes: Buffer }

export function masterKeyOf(bytes: Buffer): MasterKey {
  return { id: createHash('sha256').update('boltyard master key id').update(bytes).digest('hex').slice(0, 16), bytes }
}

/** Cached by purpose, because every payment needs a key and deriving it takes longer than using it. There are only a few purposes. */
const derivedKeys = new WeakMap<MasterKey, Map<string, Buffer>>()

export function derivedKey(master: MasterKey, purpose: string): Buffer {
  const keys = derivedKeys.get(master) ?? new Map<string, Buffer>()
  derivedKeys.set(master, keys)
  const key = keys.get(purpose) ?? Buffer.from(hkdfSync('sha256', master.bytes, '', `boltyard ${purpose}`, 32))
  keys.set(purpose, key)
  return key
}

const NONCE_LENGTH = 12
const TAG_LENGTH = 16

export function seal(key: Buffer, context: string, plain: Buffer): Buffer {
  const nonce = randomBytes(NONCE_LENGTH)
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(context))
  return Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()])
}

/** Throws if the key, the context or any bit differs. */
export function open(key: Buffer, context: string, sealed: Buffer): Buffer {
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, NONCE_LENGTH), { authTagLength: TAG_LENGTH })
  decipher.setAAD(Buffer.from(context)).setAuthTag(sealed.subarray(-TAG_LENGTH))
  return Buffer.concat([decipher.update(sealed.subarray(NONCE_LENGTH, -TAG_LENGTH)), decipher.final()])
}
