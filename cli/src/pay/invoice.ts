import { readBech32, toBytes } from './bech32.ts'

export type Invoice = {
  text: string
  network: 'mainnet' | 'testnet' | 'signet' | 'regtest'
  /** Undefined: the payer chooses. */
  amountMsat: number | undefined
  paymentHash: string
  expiresAt: number
}

const NETWORKS = { bcrt: 'regtest', bc: 'mainnet', tbs: 'signet', tb: 'testnet' } as const
const SHAPE = /^ln(bcrt|bc|tbs|tb)(?:([1-9]\d{0,16})([munp]?))?1[02-9ac-hj-np-z]+$/
const MAX_LENGTH = 4_096
const [HASH_TAG, EXPIRY_TAG] = [1, 6]
const [TIMESTAMP_WORDS, HASH_WORDS, SIGNATURE_WORDS] = [7, 52, 104]
const DEFAULT_EXPIRY_SECONDS = 3_600
/** Tenths of a millisatoshi in one of each unit: the smallest unit is one of them. */
const TENTHS_OF_MSAT: Record<string, bigint> = { '': 10n ** 12n, m: 10n ** 9n, u: 10n ** 6n, n: 10n ** 3n, p: 1n }

/**
 * What an invoice asks for, read by ourselves: the limit would be no limit if the merchant told us the price. Undefined: not one that
 * every reader reads alike, and then the node might pay another invoice than we have judged.
 */
export function readInvoice(given: string): Invoice | undefined {
  if (given.length > MAX_LENGTH) return undefined
  // All capitals is the same invoice, for QR codes; a mixture is none.
  const text = given === given.toUpperCase() ? given.toLowerCase() : given
  const shape = SHAPE.exec(text)
  const words = shape && readBech32(text)
  if (!shape || !words) return undefined
  const amountMsat = amountOf(shape[2], shape[3] ?? '')
  const fields = fieldsOf(words, words.length - SIGNATURE_WORDS)
  const [hash, expiry] = [fields?.get(HASH_TAG), fields?.get(EXPIRY_TAG)]
  if (!fields || amountMsat === null || hash?.length !== HASH_WORDS) return undefined
  if (expiry !== undefined && (expiry.length === 0 || expiry.length > TIMESTAMP_WORDS)) return undefined
  const bytes = toBytes(hash)
  if (!bytes) return undefined
  const timestamp = numberOf(words.slice(0, TIMESTAMP_WORDS))
  return {
    text,
    network: NETWORKS[shape[1] as keyof typeof NETWORKS],
    amountMsat,
    paymentHash: Buffer.from(bytes).toString('hex'),
    expiresAt: timestamp + (expiry ? numberOf(expiry) : DEFAULT_EXPIRY_SECONDS),
  }
}

/** Undefined: a field ends after the last one, or one of those we read is there twice. */
function fieldsOf(words: number[], end: number): Map<number, number[]> | undefined {
  const fields = new Map<number, number[]>()
  for (let at = TIMESTAMP_WORDS; at < end; ) {
    const [tag = 0, high = 0, low = 0] = words.slice(at, at + 3)
    const from = at + 3
    at = from + high * 32 + low
    if (at > end) return undefined
    if (tag !== HASH_TAG && tag !== EXPIRY_TAG) continue
    if (fields.has(tag)) return undefined
    fields.set(tag, words.slice(from, at))
  }
  return fields
}

/** Null: a part of a millisatoshi, or more than can be counted. */
function amountOf(digits: string | undefined, unit: string): number | undefined | null {
  if (digits === undefined) return undefined
  const tenths = BigInt(digits) * (TENTHS_OF_MSAT[unit] ?? 0n)
  if (tenths % 10n !== 0n || tenths / 10n > BigInt(Number.MAX_SAFE_INTEGER)) return null
  return Number(tenths / 10n)
}

const numberOf = (words: number[]): number => words.reduce((sum, word) => sum * 32 + word, 0)
