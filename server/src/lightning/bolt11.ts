import { bech32 } from '@scure/base'

export type Invoice = {
  network: 'mainnet' | 'testnet' | 'signet' | 'regtest'
  amountMsat: number | undefined
  paymentHash: string
  description: string | undefined
  descriptionHash: string | undefined
  timestampSeconds: number
  expirySeconds: number
}

const NETWORKS = { bcrt: 'regtest', bc: 'mainnet', tbs: 'signet', tb: 'testnet' } as const
/** Lower case only: nodes write nothing else, and a challenge that carried capitals would be another challenge. */
const SHAPE = /^ln(bcrt|bc|tbs|tb)(?:([1-9]\d{0,16})([munp]?))?1[02-9ac-hj-np-z]+$/
/** With the longest description phoenixd's are below 1,300; without a limit a megabyte would be decoded before it is refused. */
const MAX_LENGTH = 4_096
const TAG = { p: 1, x: 6, d: 13, h: 23 } as const
const TIMESTAMP_WORDS = 7
const HASH_WORDS = 52
const SIGNATURE_WORDS = 104
const DEFAULT_EXPIRY_SECONDS = 3_600
/** Tenths of a millisatoshi in one of each unit: the smallest unit is one of them. */
const TENTHS_OF_MSAT: Record<string, bigint> = { '': 10n ** 12n, m: 10n ** 9n, u: 10n ** 6n, n: 10n ** 3n, p: 1n }

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * Undefined: not an invoice we can vouch for. Where readers differ (a field twice, a hash of an odd length, both a description and its
 * hash) the payer's wallet may see another invoice than we do, so that is none.
 *
 * The signature is not verified: the invoice comes from the node's own API, over a loopback connection that our password opened, and to
 * recover the key would cost more than the rest of a payment's creation together.
 */
export function readInvoice(text: string): Invoice | undefined {
  const shape = text.length <= MAX_LENGTH ? SHAPE.exec(text) : null
  if (!shape) return undefined
  const words = bech32.decodeUnsafe(text, false)?.words
  if (!words) return undefined
  const fields = fieldsOf(words, words.length - SIGNATURE_WORDS)
  const amountMsat = amountOf(shape[2], shape[3] ?? '')
  if (!fields || amountMsat === 'none we can count') return undefined
  const { p, d, h, x } = fields
  if (p?.length !== HASH_WORDS || (d === undefined) === (h === undefined)) return undefined
  if (h !== undefined && h.length !== HASH_WORDS) return undefined
  // As wide as the timestamp: the sum of the two is a moment that a Date can hold.
  if (x !== undefined && (x.length === 0 || x.length > TIMESTAMP_WORDS)) return undefined
  const paymentHash = bytesOf(p)?.toString('hex')
  const descriptionHash = h && bytesOf(h)?.toString('hex')
  const description = d && textOf(d)
  if (paymentHash === undefined || (descriptionHash ?? description) === undefined) return undefined
  return {
    network: NETWORKS[shape[1] as keyof typeof NETWORKS],
    amountMsat,
    paymentHash,
    description,
    descriptionHash,
    timestampSeconds: numberOf(words.slice(0, TIMESTAMP_WORDS)),
    expirySeconds: x ? numberOf(x) : DEFAULT_EXPIRY_SECONDS,
  }
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

function amountOf(digits: string | undefined, unit: string): number | undefined | 'none we can count' {
  if (digits === undefined) return undefined
  const tenths = BigInt(digits) * (TENTHS_OF_MSAT[unit] ?? 0n)
  if (tenths % 10n !== 0n || tenths / 10n > BigInt(Number.MAX_SAFE_INTEGER)) return 'none we can count'
  return Number(tenths / 10n)
}

const numberOf = (words: number[]): number => words.reduce((sum, word) => sum * 32 + word, 0)

/** Undefined: what is left over after whole bytes is not padding. */
function bytesOf(words: number[]): Buffer | undefined {
  const bytes = bech32.fromWordsUnsafe(words)
  return bytes ? Buffer.from(bytes) : undefined
}

function textOf(words: number[]): string | undefined {
  const bytes = bytesOf(words)
  try {
    return bytes && utf8.decode(bytes)
  } catch {
    return undefined
  }
}
