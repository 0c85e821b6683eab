import { bech32 } from '@scure/base'
import { textOf, toHex } from './bytes.ts'
import { msatFromBolt11 } from './units.ts'

export type Network = 'mainnet' | 'testnet' | 'signet' | 'regtest'

export type Invoice = {
  network: Network
  /** Undefined if the payer chooses the amount. */
  amountMsat: number | undefined
  paymentHash: string
  description: string | undefined
  descriptionHash: string | undefined
  timestampSeconds: number
  expirySeconds: number
}

const NETWORKS = { bcrt: 'regtest', bc: 'mainnet', tbs: 'signet', tb: 'testnet' } as const
/** Lower case only: nodes write nothing else, and the same invoice in upper case would make a different challenge. */
const SHAPE = /^ln(bcrt|bc|tbs|tb)(?:([1-9]\d{0,16})([munp]?))?1[02-9ac-hj-np-z]+$/
/** phoenixd's invoices stay below 1,300 characters. Without a limit, a megabyte would be decoded before it is refused. */
const MAX_LENGTH = 4_096
const TAG = { p: 1, x: 6, d: 13, h: 23 } as const
const TIMESTAMP_WORDS = 7
const HASH_WORDS = 52
const SIGNATURE_WORDS = 104
const DEFAULT_EXPIRY_SECONDS = 3_600

/**
 * Undefined unless every decoder would read the invoice the same way. If decoders differ (a repeated field, a hash of unusual length, both
 * a description and its hash), the payer's wallet might pay something other than what is read here.
 *
 * The signature is not verified: the payment hash decides what is paid, and recovering the key would cost more than everything else in
 * creating a payment.
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
  // The expiry is limited to the width of the timestamp, so that the sum of the two is a valid Date.
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

/** QR codes contain invoices in upper case, and links add a scheme. Mixed case is left as it is, and refused. */
export function normalizedInvoice(text: string): string {
  const bare = text.trim().replace(/^lightning:/i, '')
  return bare === bare.toUpperCase() ? bare.toLowerCase() : bare
}

type Fields = Partial<Record<keyof typeof TAG, number[]>>
const NAMES = new Map(Object.entries(TAG).map(([name, tag]) => [tag as number, name as keyof Fields]))

/** Undefined if a field runs past the end, or a field we read is repeated. */
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

/** Undefined if the bits after the last whole byte are not valid padding. The same applies to `textIn`. */
function hexOf(words: number[]): string | undefined {
  const bytes = bech32.fromWordsUnsafe(words)
  return bytes ? toHex(bytes) : undefined
}

function textIn(words: number[]): string | undefined {
  const bytes = bech32.fromWordsUnsafe(words)
  return bytes ? textOf(bytes) : undefined
}
