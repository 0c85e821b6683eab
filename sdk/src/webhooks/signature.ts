import { concat, fromBase64, toBase64, utf8Of } from '../../../protocol/src/bytes.ts'

/** Signatures as in Standard Webhooks (https://www.standardwebhooks.com): HMAC-SHA256 over `id.timestamp.body`. */

export type SignedContent = { id: string; timestamp: string; body: string | Uint8Array }
export type SigningKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>

const PREFIX = 'whsec_'
const VERSION = 'v1,'
const MIN_KEY_BYTES = 24
const MAX_KEY_BYTES = 64
const HMAC = { name: 'HMAC', hash: 'SHA-256' }

export const newSecret = (): string => PREFIX + toBase64(crypto.getRandomValues(new Uint8Array(32)))

export async function importSecret(secret: string): Promise<SigningKey> {
  const bytes = fromBase64(secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret)
  if (bytes === undefined || bytes.length < MIN_KEY_BYTES || bytes.length > MAX_KEY_BYTES)
    throw new TypeError(`A webhook secret is ${PREFIX} and the base64 of ${MIN_KEY_BYTES} to ${MAX_KEY_BYTES} bytes.`)
  return crypto.subtle.importKey('raw', new Uint8Array(bytes), HMAC, false, ['sign', 'verify'])
}

/** The value of the header `webhook-signature`. */
export async function sign(content: SignedContent, key: SigningKey): Promise<string> {
  return VERSION + toBase64(new Uint8Array(await crypto.subtle.sign(HMAC.name, key, bytesOf(content))))
}

/** Web Crypto compares in constant time. A signature of another version does not match, as the standard demands. */
export async function isSignature(signature: string, content: SignedContent, key: SigningKey): Promise<boolean> {
  const mac = signature.startsWith(VERSION) ? fromBase64(signature.slice(VERSION.length)) : undefined
  return mac !== undefined && crypto.subtle.verify(HMAC.name, key, new Uint8Array(mac), bytesOf(content))
}

/** A body of bytes is signed as it is: decoding it first would make different bytes the same text. */
function bytesOf({ id, timestamp, body }: SignedContent): Uint8Array<ArrayBuffer> {
  return new Uint8Array(concat([utf8Of(`${id}.${timestamp}.`), typeof body === 'string' ? utf8Of(body) : body]))
}
