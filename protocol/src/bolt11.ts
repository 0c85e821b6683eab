import { bech32 } from '@scure/base'
import { textOf, toHex } from './bytes.ts'
import { msatFromBolt11 } from './units.ts'

export type Network = 'mainnet' | 'testnet' | 'signet' | 'regtest'

export type Invoice = {
  network: Network
  /** Undefined: the payer chooses. */
  amountMsat: number | undefined
  paymentHash: string
  description: string | undefined
  descriptionHash: string | undefined
  timestampSeconds: number
  expirySeconds: number
}

const NETWORKS = { bcrt: 'regtest', bc: 'mainnet', tbs: 'signet', tb: 'testnet' } as const
/** Lower case only: nodes write nothing else, and a challenge with capitals would be another challenge. */
const SHAPE = /^ln(bcrt|bc|tbs|tb)(?:([1-9]\d{0,16})([munp]?))?1[02-9ac-hj-np-z]+$/
/** With the longest description phoenixd's are below 1,300; without a limit a megabyte would be decoded before it is refused. */
const MAX_LENGTH = 4_096
const TAG = { p: 1, x: 6, d: 13, h: 23 } as const
const TIMESTAMP_WORDS = 7
const HASH_WORDS = 52
const SIGNATURE_WORDS = 104
const DEFAULT_EXPIRY_SECONDS = 3_600

/**
 * Undefined: not an invoice that every reader reads the same way. Where readers differ (a field twice, a hash of an odd length, both a
 * description and its hash), the payer's wallet might pay another invoice than the one read here.
 *
 * The signature is not verified: the payment hash decides what is paid, and recovering the key would cost more than the rest of a
 * payment's creation together.
 */
export function readInvoice(text: string): Invoice | undefined {
  const shape = text.length <= MAX_LENGTH ? SHAPE.exec(text) : null
  if (!shape) return undefined
  const words = bech32.decodeUnsafe(text, false)?.words
  if (!words) return undefined
  const fields = fieldsOf(words, words.length - SIGNATURE_WORDS)
  const [, prefix, digits, unit = ''] = shape
  const amountMsat = digits === undefined ? undefined : msatFromBolt11(digits, unit)
  if (!fields || (digits !== undefined && amountMsat === undefined)) return undefined
  const { p, d, h, x } = fields
  if (p?.length !== HASH_WORDS || (d === undefined) === (h === undefined)) return undefined
  if (h !== undefined && h.length !== HASH_WORDS) return undefined
  // As wide as the timestamp: the sum of the two is a moment that a Date can hold.
  if (x !== undefined && (x.length === 0 || x.length > TIMESTAMP_WORDS)) return undefined
  const paymentHash = hexOf(p)
  const descriptionHash = h && hexOf(h)
  const description = d && textIn(d)
  if (paymentHash === undefined || (descriptionHash ?? description) === undefined) return undefined
  return {
    network: NETWORKS[prefix as keyof typeof NETWORKS],
    amountMsat,
    paymentHash,
    description,
    descriptionHash,
    timestampSeconds: numberOf(words.slice(0, TIMESTAMP_WORDS)),
    expirySeconds: x ? numberOf(x) : DEFAULT_EXPIRY_SECONDS,
  }
}

export const invoiceExpiresAtSeconds = ({ timestampSeconds, expirySeconds }: Invoice): number => timestampSeconds + expirySeconds

/** QR codes hold invoices in capitals, and links put a scheme before them. A mixture of cases stays one, and is refused. */
export function normalizedInvoice(text: string): string {
  const bare = text.trim().replace(/^lightning:/i, '')
  return bare === bare.toUpperCase() ? bare.toLowerCase() : bare
}

type Fields = Partial<Record<keyof typeof TAG, number[]>>
const NAMES = new Map(Object.entries(TAG).map(([name, tag]) => [tag as number, name as keyof Fields]))

/** Undefined: a field ends after the last one, or one that we read is there twice. */
function fieldsOf(words: number[], end: number): Fields | undefined {
  const fields: Fields = {}
  for (let at = TIMESTAMP_WORDS; at < end; ) {
    const [tag = 0, high = 0, low = 0] = words.slice(at, at + 3)
    const from = at + 3
    at = from + high * 32 + low
    if (at > end) return undefined
    const name = NAMES.get(tag)
    if (name === undefined) continue
    if (fields[name]) return undefined
    fields[name] = words.slice(from, at)
  }
  return fields
}

const numberOf = (words: number[]): number => words.reduce((sum, word) => sum * 32 + word, 0)

/** Undefined, here and below: what is left over after whole bytes is not padding. */
function hexOf(words: number[]): string | undefined {
  const bytes = bech32.fromWordsUnsafe(words)
  return bytes ? toHex(bytes) : undefined
}

function textIn(words: number[]): string | undefined {
  const bytes = bech32.fromWordsUnsafe(words)
  return bytes ? textOf(bytes) : undefined
}
