import { bech32 } from '@scure/base'
import { concat, toHex, utf8Of } from './bytes.ts'

/** What an invoice's signature covers. Separate from `readInvoice`, because only x402 needs to know who signed. */
export type InvoiceSignature = {
  /** Its SHA-256 was signed. */
  message: Uint8Array
  /** r and s, 32 bytes each. */
  signature: Uint8Array
  /** 0 to 3: which of the keys that fit the signature is the signer's. */
  recoveryId: number
  /** The payee that the invoice names. Most name none, because the key follows from the signature. */
  payee: string | undefined
}

const MAX_LENGTH = 4_096
const TAG = { description: 13, payee: 19, descriptionHash: 23 } as const
const TIMESTAMP_WORDS = 7
const SIGNATURE_WORDS = 104
const SIGNATURE_BYTES = 64
const KEY_WORDS = 53

type Field = { tag: number; words: number[] }

/** Undefined if the text is not bech32, or a field runs past the end. */
function partsOf(text: string): { prefix: string; words: number[]; fields: Field[] } | undefined {
  const decoded = text.length <= MAX_LENGTH ? bech32.decodeUnsafe(text, false) : undefined
  if (!decoded || decoded.words.length < TIMESTAMP_WORDS + SIGNATURE_WORDS) return undefined
  const { prefix, words } = decoded
  const end = words.length - SIGNATURE_WORDS
  const fields: Field[] = []
  for (let at = TIMESTAMP_WORDS; at < end; ) {
    const [tag = 0, high = 0, low = 0] = words.slice(at, at + 3)
    const from = at + 3
    at = from + high * 32 + low
    if (at > end) return undefined
    fields.push({ tag, words: words.slice(from, at) })
  }
  return { prefix, words, fields }
}

/** Undefined if it cannot be decoded, or decoders could disagree about the payee. */
export function signatureOf(text: string): InvoiceSignature | undefined {
  const parts = partsOf(text)
  if (!parts) return undefined
  const { prefix, words, fields } = parts
  const payees = fields.filter(({ tag }) => tag === TAG.payee)
  const [named] = payees
  if (payees.length > 1 || (named && named.words.length !== KEY_WORDS)) return undefined
  const signature = bytesOf(words.slice(-SIGNATURE_WORDS))
  return {
    message: concat([utf8Of(prefix), bytesOf(words.slice(0, -SIGNATURE_WORDS))]),
    signature: signature.subarray(0, SIGNATURE_BYTES),
    recoveryId: signature[SIGNATURE_BYTES] ?? 0,
    payee: named && toHex(bytesOf(named.words).subarray(0, 33)),
  }
}

/** Whether the invoice has exactly one description hash and no description. Undefined if it cannot be decoded. */
export function hasOnlyDescriptionHash(text: string): boolean | undefined {
  const tags = partsOf(text)?.fields.map(({ tag }) => tag)
  return tags && tags.filter((tag) => tag === TAG.descriptionHash).length === 1 && !tags.includes(TAG.description)
}

/** Padded with zero bits to whole bytes, as the signed message is. The library's function refuses such padding. */
function bytesOf(words: number[]): Uint8Array {
  const bytes = new Uint8Array(Math.ceil((words.length * 5) / 8))
  words.forEach((word, index) => {
    const bit = index * 5
    const shifted = word << (11 - (bit % 8))
    bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) | (shifted >> 8)
    if ((bit >> 3) + 1 < bytes.length) bytes[(bit >> 3) + 1] = shifted & 0xff
  })
  return bytes
}
