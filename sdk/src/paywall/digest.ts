import { fromHex } from '../../../protocol/src/bytes.ts'

type NodeCrypto = { hash(name: 'sha256', data: string | Uint8Array, form: 'hex'): string }

// Not imported statically, so that the same files also work in runtimes without node:crypto.
const { process } = globalThis as { process?: { getBuiltinModule?: (name: 'node:crypto') => NodeCrypto | undefined } }
const nodeCrypto = process?.getBuiltinModule?.('node:crypto')

/** Web Crypto uses another thread even for a few bytes. node:crypto takes a twentieth of the time, and this runs for every paid request. */
export const sha256HexSync: ((text: string) => string) | undefined = nodeCrypto?.hash
  ? (text) => nodeCrypto.hash('sha256', text, 'hex')
  : undefined

export async function sha256Hex(text: string): Promise<string> {
  if (sha256HexSync) return sha256HexSync(text)
  const digest = await sha256Bytes(new TextEncoder().encode(text))
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

export async function sha256Bytes(data: Uint8Array): Promise<Uint8Array> {
  if (nodeCrypto?.hash) return fromHex(nodeCrypto.hash('sha256', data, 'hex'))
  return new Uint8Array(await crypto.subtle.digest('SHA-256', data as Uint8Array<ArrayBuffer>))
}
