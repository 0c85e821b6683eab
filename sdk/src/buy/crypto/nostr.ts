import { chacha20 } from '@noble/ciphers/chacha'
import { schnorr, secp256k1 } from '@noble/curves/secp256k1.js'
import { expand, extract } from '@noble/hashes/hkdf.js'
import { hmac } from '@noble/hashes/hmac.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { concat, fromBase64, fromHex, textOf, toBase64, toHex, utf8Of } from '../../../../protocol/src/bytes.ts'

/** What a client of Nostr Wallet Connect needs: events (NIP-01) and their encryption (NIP-44, and NIP-04 for older wallets). */

export type NostrEvent = {
  id: string
  pubkey: string
  created_at: number
  kind: number
  tags: string[][]
  content: string
  sig: string
}

export const publicKeyOf = (secret: Uint8Array): string => toHex(schnorr.getPublicKey(secret))

const idOf = ({ pubkey, created_at, kind, tags, content }: Omit<NostrEvent, 'id' | 'sig'>): string =>
  toHex(sha256(utf8Of(JSON.stringify([0, pubkey, created_at, kind, tags, content]))))

export function signEvent(secret: Uint8Array, event: Pick<NostrEvent, 'kind' | 'tags' | 'content'>): NostrEvent {
  const unsigned = { ...event, pubkey: publicKeyOf(secret), created_at: Math.floor(Date.now() / 1000) }
  const id = idOf(unsigned)
  return { ...unsigned, id, sig: toHex(schnorr.sign(fromHex(id), secret)) }
}

export function isGenuine(event: NostrEvent): boolean {
  try {
    return idOf(event) === event.id && schnorr.verify(fromHex(event.sig), fromHex(event.id), fromHex(event.pubkey))
  } catch {
    return false
  }
}

export type Cipher = {
  name: 'nip44_v2' | 'nip04'
  encrypt: (text: string) => Promise<string>
  /** Throws if the text was not encrypted with these keys. */
  decrypt: (text: string) => Promise<string>
}

const sharedX = (secret: Uint8Array, publicKey: string): Uint8Array =>
  secp256k1.getSharedSecret(secret, fromHex(`02${publicKey}`)).slice(1)

const NIP44_VERSION = 2
const NIP44_MAX_LENGTH = 65_535

export function nip44(secret: Uint8Array, publicKey: string): Cipher {
  const key = extract(sha256, sharedX(secret, publicKey), utf8Of('nip44-v2'))
  const keysFor = (nonce: Uint8Array): [cipher: Uint8Array, iv: Uint8Array, mac: Uint8Array] => {
    const keys = expand(sha256, key, nonce, 76)
    return [keys.subarray(0, 32), keys.subarray(32, 44), keys.subarray(44, 76)]
  }
  return {
    name: 'nip44_v2',
    encrypt: async (text) => {
      const nonce = crypto.getRandomValues(new Uint8Array(32))
      const [cipher, iv, mac] = keysFor(nonce)
      const hidden = chacha20(cipher, iv, padded(utf8Of(text)))
      return toBase64(concat([Uint8Array.of(NIP44_VERSION), nonce, hidden, hmac(sha256, mac, concat([nonce, hidden]))]))
    },
    decrypt: async (text) => {
      const bytes = fromBase64(text)
      if (!bytes || bytes.length < 99 || bytes[0] !== NIP44_VERSION) throw new Error('Not a NIP-44 version 2 payload.')
      const [nonce, hidden, tag] = [bytes.slice(1, 33), bytes.slice(33, -32), bytes.slice(-32)]
      const [cipher, iv, mac] = keysFor(nonce)
      // The comparison need not take constant time: the sender cannot measure it, and each text has its own keys.
      if (toHex(hmac(sha256, mac, concat([nonce, hidden]))) !== toHex(tag))
        throw new Error('The text was changed, or is for another key.')
      return unpadded(chacha20(cipher, iv, hidden))
    },
  }
}

/** The text's length in two bytes, the text, and zeros, which hide the exact length of the text. */
function padded(text: Uint8Array): Uint8Array {
  if (text.length < 1 || text.length > NIP44_MAX_LENGTH) throw new RangeError('The text is empty or too long to be encrypted.')
  const bytes = new Uint8Array(2 + paddedLength(text.length))
  bytes.set([text.length >> 8, text.length & 255])
  bytes.set(text, 2)
  return bytes
}

function paddedLength(length: number): number {
  if (length <= 32) return 32
  const power = 2 ** (Math.floor(Math.log2(length - 1)) + 1)
  const chunk = power <= 256 ? 32 : power / 8
  return chunk * (Math.floor((length - 1) / chunk) + 1)
}

function unpadded(bytes: Uint8Array): string {
  const length = (bytes[0] ?? 0) * 256 + (bytes[1] ?? 0)
  const text = length > 0 && bytes.length === 2 + paddedLength(length) ? textOf(bytes.slice(2, 2 + length)) : undefined
  if (text === undefined) throw new Error('The text has invalid padding.')
  return text
}

/** NIP-04 has no message authentication code; the event's signature is enough. */
export function nip04(secret: Uint8Array, publicKey: string): Cipher {
  const name = 'AES-CBC'
  const key = crypto.subtle.importKey('raw', bufferOf(sharedX(secret, publicKey)), { name }, false, ['encrypt', 'decrypt'])
  return {
    name: 'nip04',
    encrypt: async (text) => {
      const iv = crypto.getRandomValues(new Uint8Array(16))
      const hidden = await crypto.subtle.encrypt({ name, iv }, await key, bufferOf(utf8Of(text)))
      return `${toBase64(new Uint8Array(hidden))}?iv=${toBase64(iv)}`
    },
    decrypt: async (text) => {
      const [hidden, iv] = text.split('?iv=').map((part) => fromBase64(part))
      if (!hidden || !iv) throw new Error('Not a NIP-04 payload.')
      const shown = await crypto.subtle.decrypt({ name, iv: bufferOf(iv) }, await key, bufferOf(hidden))
      const plain = textOf(new Uint8Array(shown))
      if (plain === undefined) throw new Error('The text is not UTF-8.')
      return plain
    },
  }
}

/** Web Crypto does not take views of shared memory, and the types cannot rule that out. */
const bufferOf = (bytes: Uint8Array): Uint8Array<ArrayBuffer> => new Uint8Array(bytes)
