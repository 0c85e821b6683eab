import { createHash } from 'node:crypto'
import { bech32 } from '@scure/base'

/** BOLT 12 offers: encoding and decoding only, because the sandbox never pays one. */
export type Offer = {
  offerId: string
  chainHashes: string[]
  metadata: string | undefined
  currency: string | undefined
  amountMsat: number | undefined
  description: string | undefined
  features: string | undefined
  expirySeconds: number | undefined
  issuer: string | undefined
  quantityMax: number | undefined
  issuerId: string | undefined
  hasPaths: boolean
}

const REGTEST_GENESIS = '06226e46111a0b59caaf126043eb5bbf28c34f3a5e332a1fc7b2b73cf188910f'
/** BOLT 12 uses bech32 without a checksum, which the library does not support. */
const CHARSET = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l'

const TYPE = {
  chains: 2,
  metadata: 4,
  currency: 6,
  amount: 8,
  description: 10,
  features: 12,
  absoluteExpiry: 14,
  paths: 16,
  issuer: 18,
  quantityMax: 20,
  issuerId: 22,
} as const

function bigSize(value: number): Buffer {
  if (value < 0xfd) return Buffer.of(value)
  const bytes = Buffer.alloc(3, 0xfd)
  bytes.writeUInt16BE(value, 1)
  return bytes
}

function truncatedInteger(value: number): Buffer {
  const hex = value === 0 ? '' : value.toString(16)
  return Buffer.from(hex.padStart(hex.length + (hex.length % 2), '0'), 'hex')
}

export function encodeOffer(offer: { nodeId: string; amountMsat?: number; description?: string; metadata?: Uint8Array }): string {
  const records: [number, Uint8Array | undefined][] = [
    [TYPE.chains, Buffer.from(REGTEST_GENESIS, 'hex')],
    [TYPE.metadata, offer.metadata],
    [TYPE.amount, offer.amountMsat === undefined ? undefined : truncatedInteger(offer.amountMsat)],
    [TYPE.description, offer.description === undefined ? undefined : Buffer.from(offer.description, 'utf8')],
    [TYPE.issuerId, Buffer.from(offer.nodeId, 'hex')],
  ]
  const stream = records.flatMap(([type, value]) => (value ? [bigSize(type), bigSize(value.length), value] : []))
  const words = bech32.toWords(Buffer.concat(stream))
  return `lno1${words.map((word) => CHARSET[word]).join('')}`
}

function readBigSize(bytes: Buffer, at: number): [value: number, next: number] {
  const first = bytes.readUInt8(at)
  if (first < 0xfd) return [first, at + 1]
  if (first !== 0xfd) throw new Error('length too large')
  const value = bytes.readUInt16BE(at + 1)
  if (value < 0xfd) throw new Error('length not minimal')
  return [value, at + 3]
}

function readInteger(bytes: Buffer): number {
  const value = Number(`0x0${bytes.toString('hex')}`)
  if (!Number.isSafeInteger(value)) throw new Error('number too large')
  return value
}

/** Throws unless it is a well-formed offer. */
export function decodeOffer(text: string): Offer {
  // A long offer may be split with "+" and whitespace.
  const joined = text.trim().replace(/\+\s*/g, '')
  if (joined !== joined.toLowerCase() && joined !== joined.toUpperCase()) throw new Error('mixed case')
  const match = new RegExp(`^lno1([${CHARSET}]+)$`).exec(joined.toLowerCase())
  if (!match?.[1]) throw new Error('not an offer')
  const bytes = Buffer.from(bech32.fromWords([...match[1]].map((character) => CHARSET.indexOf(character))))
  const fields = new Map<number, Buffer>()
  let last = -1
  for (let at = 0; at < bytes.length; ) {
    const [type, afterType] = readBigSize(bytes, at)
    const [length, start] = readBigSize(bytes, afterType)
    if (type <= last) throw new Error('fields out of order')
    if (start + length > bytes.length) throw new Error('truncated field')
    if (type > 79) throw new Error('not a field of an offer')
    if (type % 2 === 0 && !Object.values(TYPE).includes(type as (typeof TYPE)[keyof typeof TYPE]))
      throw new Error('unknown even field')
    fields.set(type, bytes.subarray(start, start + length))
    last = type
    at = start + length
  }
  const hex = (type: number): string | undefined => fields.get(type)?.toString('hex')
  const utf8 = (type: number): string | undefined => {
    const value = fields.get(type)
    return value && new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(value)
  }
  const integer = (type: number): number | undefined => {
    const value = fields.get(type)
    return value && readInteger(value)
  }
  if (fields.has(TYPE.amount) && !fields.has(TYPE.description)) throw new Error('amount without description')
  if (!fields.has(TYPE.issuerId) && !fields.has(TYPE.paths)) throw new Error('nobody to pay')
  return {
    offerId: createHash('sha256').update(bytes).digest('hex'),
    chainHashes: hex(TYPE.chains)?.match(/.{64}/g) ?? [],
    metadata: hex(TYPE.metadata),
    currency: utf8(TYPE.currency),
    amountMsat: integer(TYPE.amount),
    description: utf8(TYPE.description),
    features: hex(TYPE.features),
    expirySeconds: integer(TYPE.absoluteExpiry),
    issuer: utf8(TYPE.issuer),
    quantityMax: integer(TYPE.quantityMax),
    issuerId: hex(TYPE.issuerId),
    hasPaths: fields.has(TYPE.paths),
  }
}
