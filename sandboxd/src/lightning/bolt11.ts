import { createHash } from 'node:crypto'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { bech32 } from '@scure/base'

// A small precomputed table: a node signs few invoices, and the default table takes long to compute.
secp256k1.Point.BASE.precompute(4)

/** One hop of a routing hint, with phoenixd's JSON names. */
export type ExtraHop = {
  nodeId: string
  shortChannelId: string
  feeBase: number
  feeProportionalMillionths: number
  cltvExpiryDelta: number
}

export type Invoice = {
  chain: 'mainnet' | 'testnet3' | 'regtest'
  amountMsat: number | undefined
  timestampSeconds: number
  paymentHash: string
  paymentSecret: string
  description: string | undefined
  descriptionHash: string | undefined
  expirySeconds: number | undefined
  minFinalCltvExpiryDelta: number | undefined
  paymentMetadata: string | undefined
  features: number[]
  extraHops: ExtraHop[][]
  /** The payee, recovered from the signature. */
  nodeId: string
}

export type NewInvoice = {
  amountMsat: number | undefined
  timestampSeconds: number
  paymentHash: Uint8Array
  paymentSecret: Uint8Array
  description: { text: string } | { hash: Uint8Array }
  expirySeconds: number
  routingHint: Uint8Array
}

const PREFIX_CHAINS = { bcrt: 'regtest', bc: 'mainnet', tb: 'testnet3' } as const
/** Millisatoshis per unit of each multiplier. 'p' is a tenth of a millisatoshi and is handled separately. */
const MULTIPLIER_MSAT: Record<string, number> = { '': 100_000_000_000, m: 100_000_000, u: 100_000, n: 100 }

/** The largest amount that is exact as a double, and more than any test needs. */
export const MAX_AMOUNT_MSAT = 9_007_199_254_740_000

/** The features in phoenixd's invoices: var_onion_optin 8, payment_secret 14 mandatory; basic_mpp 17, metadata 49, trampoline 149. */
const INVOICE_FEATURES = [8, 14, 17, 49, 149]
/** No payment is possible without these two; lightning-kmp rejects an invoice that lacks one. */
const REQUIRED_FEATURES = [8, 14]
const MIN_FINAL_CLTV_EXPIRY = 144
const PAYMENT_METADATA = Uint8Array.of(0x2a)

const TAG = { p: 1, r: 3, 9: 5, x: 6, d: 13, s: 16, n: 19, h: 23, c: 24, m: 27 } as const

function amountText(amountMsat: number | undefined): string {
  if (amountMsat === undefined) return ''
  if (amountMsat === 0) return '0'
  for (const [letter, unitMsat] of Object.entries(MULTIPLIER_MSAT)) {
    if (amountMsat % unitMsat === 0) return `${amountMsat / unitMsat}${letter}`
  }
  return `${amountMsat}0p`
}

function amountFromText(text: string): number | undefined {
  if (text === '') return undefined
  const match = /^(\d{1,19})([munp]?)$/.exec(text)
  if (!match) throw new Error('malformed amount')
  const digits = BigInt(match[1] ?? '')
  const letter = match[2] ?? ''
  if (letter === 'p' && digits % 10n !== 0n) throw new Error('an amount below a millisatoshi')
  const amountMsat = letter === 'p' ? digits / 10n : digits * BigInt(MULTIPLIER_MSAT[letter] ?? 0)
  if (amountMsat > BigInt(MAX_AMOUNT_MSAT)) throw new Error('amount too large')
  return amountMsat === 0n ? undefined : Number(amountMsat)
}

function wordsOfNumber(value: number, length?: number): number[] {
  const words: number[] = []
  for (let rest = value; rest > 0; rest = Math.floor(rest / 32)) words.unshift(rest % 32)
  while (words.length < (length ?? 1)) words.unshift(0)
  return words
}

function numberOfWords(words: number[]): number {
  const value = words.reduce((sum, word) => sum * 32 + word, 0)
  if (!Number.isSafeInteger(value)) throw new Error('number too large')
  return value
}

function tagged(tag: number, words: number[]): number[] {
  return [tag, ...wordsOfNumber(words.length, 2), ...words]
}

function featureWords(bits: number[]): number[] {
  const words = new Array<number>(Math.ceil((Math.max(...bits) + 1) / 5)).fill(0)
  for (const bit of bits) {
    const index = words.length - 1 - Math.floor(bit / 5)
    words[index] = (words[index] ?? 0) | (1 << (bit % 5))
  }
  return words
}

function featureBits(words: number[]): number[] {
  const bits: number[] = []
  words.toReversed().forEach((word, index) => {
    for (let bit = 0; bit < 5; bit++) if (word & (1 << bit)) bits.push(index * 5 + bit)
  })
  return bits
}

/** The signed message: the human-readable part as text, then the data part padded with zero bits to whole bytes. */
function signedHash(hrp: string, dataWords: number[]): Buffer {
  const bytes: number[] = []
  let bits = 0
  let buffer = 0
  for (const word of dataWords) {
    buffer = ((buffer << 5) | word) & 0xfff
    bits += 5
    if (bits >= 8) {
      bits -= 8
      bytes.push((buffer >> bits) & 0xff)
    }
  }
  if (bits > 0) bytes.push((buffer << (8 - bits)) & 0xff)
  return createHash('sha256').update(hrp).update(Uint8Array.from(bytes)).digest()
}

/** A regtest invoice with phoenixd's tags in phoenixd's order, signed by the node's key. */
export function encodeInvoice(invoice: NewInvoice, privateKey: Uint8Array): string {
  const hrp = `lnbcrt${amountText(invoice.amountMsat)}`
  const words = [
    ...wordsOfNumber(invoice.timestampSeconds, 7),
    ...tagged(TAG.p, bech32.toWords(invoice.paymentHash)),
    ...tagged(TAG.c, wordsOfNumber(MIN_FINAL_CLTV_EXPIRY)),
    ...tagged(TAG.s, bech32.toWords(invoice.paymentSecret)),
    ...tagged(TAG[9], featureWords(INVOICE_FEATURES)),
    ...('text' in invoice.description
      ? tagged(TAG.d, bech32.toWords(Buffer.from(invoice.description.text, 'utf8')))
      : tagged(TAG.h, bech32.toWords(invoice.description.hash))),
    ...tagged(TAG.m, bech32.toWords(PAYMENT_METADATA)),
    ...tagged(TAG.x, wordsOfNumber(invoice.expirySeconds)),
    ...tagged(TAG.r, bech32.toWords(invoice.routingHint)),
  ]
  const recoveryFirst = secp256k1.sign(signedHash(hrp, words), privateKey, { prehash: false, format: 'recovered' })
  const signature = Uint8Array.from([...recoveryFirst.subarray(1), recoveryFirst[0] ?? 0])
  return bech32.encode(hrp, [...words, ...bech32.toWords(signature)], false)
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')

/** Leftover bits of a field are padding. Only their number is checked, as in other decoders. */
function bytesOfWords(words: number[]): Uint8Array {
  const whole = Math.floor((words.length * 5) / 8)
  const bytes = new Uint8Array(whole)
  let bits = 0
  let buffer = 0
  let index = 0
  for (const word of words) {
    buffer = ((buffer << 5) | word) & 0xfff
    bits += 5
    if (bits >= 8 && index < whole) {
      bits -= 8
      bytes[index++] = (buffer >> bits) & 0xff
    }
  }
  return bytes
}

function extraHops(bytes: Uint8Array): ExtraHop[] {
  const hops: ExtraHop[] = []
  const view = Buffer.from(bytes)
  for (let at = 0; at + 51 <= view.length; at += 51) {
    const scid = view.readBigUInt64BE(at + 33)
    hops.push({
      nodeId: view.subarray(at, at + 33).toString('hex'),
      shortChannelId: `${scid >> 40n}x${(scid >> 16n) & 0xffffffn}x${scid & 0xffffn}`,
      feeBase: view.readUInt32BE(at + 41),
      feeProportionalMillionths: view.readUInt32BE(at + 45),
      cltvExpiryDelta: view.readUInt16BE(at + 49),
    })
  }
  return hops
}

/** Throws unless it is a complete, correctly signed invoice for a known chain. */
export function decodeInvoice(text: string): Invoice {
  const { prefix, words } = bech32.decode(text as `${string}1${string}`, false)
  const network = /^ln(bcrt|bc|tb)(\d.*)?$/.exec(prefix)
  if (!network) throw new Error('unknown prefix')
  if (words.length < 7 + 104) throw new Error('too short')
  const data = words.slice(0, -104)
  const signature = bytesOfWords(words.slice(-104))
  const fields = new Map<number, number[][]>()
  for (let at = 7; at < data.length; ) {
    const [tag, high, low] = [data[at], data[at + 1], data[at + 2]]
    if (tag === undefined || high === undefined || low === undefined) throw new Error('truncated field')
    const length = high * 32 + low
    const value = data.slice(at + 3, at + 3 + length)
    if (value.length !== length) throw new Error('truncated field')
    const same = fields.get(tag)
    if (same) same.push(value)
    else fields.set(tag, [value])
    at += 3 + length
  }
  // BOLT 11 requires skipping a field of the wrong length. If several are valid, lightning-kmp takes the first.
  const bytes = (tag: number, wordCount: number): string | undefined => {
    const good = fields.get(tag)?.find((value) => value.length === wordCount)
    return good && hex(bytesOfWords(good))
  }
  const number = (tag: number): number | undefined => {
    const value = fields.get(tag)?.[0]
    return value && numberOfWords(value)
  }
  const paymentHash = bytes(TAG.p, 52)
  const paymentSecret = bytes(TAG.s, 52)
  if (!paymentHash || !paymentSecret) throw new Error('payment hash or secret missing')
  if (fields.get(TAG.p)?.length !== 1 || fields.get(TAG.s)?.length !== 1) throw new Error('payment hash or secret twice')
  if (!fields.has(TAG.d) && !fields.has(TAG.h)) throw new Error('description missing')
  const features = featureBits(fields.get(TAG[9])?.[0] ?? [])
  if (!REQUIRED_FEATURES.every((bit) => features.includes(bit) || features.includes(bit + 1))) throw new Error('features missing')
  const description = fields.get(TAG.d)?.[0]
  const metadata = fields.get(TAG.m)?.[0]
  const recoveryFirst = Uint8Array.from([signature[64] ?? 0, ...signature.subarray(0, 64)])
  const nodeId = hex(secp256k1.recoverPublicKey(recoveryFirst, signedHash(prefix, data), { prehash: false }))
  const statedNodeId = bytes(TAG.n, 53)
  if (statedNodeId && statedNodeId !== nodeId) throw new Error('signature is not by the stated node')
  return {
    chain: PREFIX_CHAINS[network[1] as keyof typeof PREFIX_CHAINS],
    amountMsat: amountFromText(network[2] ?? ''),
    timestampSeconds: numberOfWords(data.slice(0, 7)),
    paymentHash,
    paymentSecret,
    description: description && new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytesOfWords(description)),
    descriptionHash: bytes(TAG.h, 52),
    expirySeconds: number(TAG.x),
    minFinalCltvExpiryDelta: number(TAG.c),
    paymentMetadata: metadata && hex(bytesOfWords(metadata)),
    features,
    extraHops: (fields.get(TAG.r) ?? []).map((value) => extraHops(bytesOfWords(value))),
    nodeId,
  }
}

const FEATURE_NAMES: Record<number, string> = {
  0: 'option_data_loss_protect',
  4: 'option_upfront_shutdown_script',
  8: 'var_onion_optin',
  12: 'option_static_remotekey',
  14: 'payment_secret',
  16: 'basic_mpp',
  18: 'option_support_large_channel',
  24: 'option_route_blinding',
  36: 'option_quiesce',
  44: 'option_channel_type',
  46: 'option_scid_alias',
  48: 'option_payment_metadata',
  50: 'option_zeroconf',
  148: 'trampoline_payment_experimental',
}

/** Even bits are mandatory, odd bits optional: "it's ok to be odd". */
export function namedFeatures(bits: number[]): { activated: Record<string, 'Mandatory' | 'Optional'>; unknown: number[] } {
  const activated: Record<string, 'Mandatory' | 'Optional'> = {}
  const unknown: number[] = []
  for (const bit of bits) {
    const name = FEATURE_NAMES[bit - (bit % 2)]
    if (name) activated[name] = bit % 2 === 0 ? 'Mandatory' : 'Optional'
    else unknown.push(bit)
  }
  return { activated, unknown }
}

export function hasUnsupportedFeature(bits: number[]): boolean {
  return namedFeatures(bits).unknown.some((bit) => bit % 2 === 0)
}
