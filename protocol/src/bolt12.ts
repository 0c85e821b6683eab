import { bech32 } from '@scure/base'
import { textOf, toHex } from './bytes.ts'

/** What a BOLT 12 offer says about itself. A field that the offer does not have is undefined. */
export type Bolt12Offer = {
  /** In the smallest unit of the currency. */
  amount: number | undefined
  /** Undefined: the amount is in millisatoshis. */
  currency: string | undefined
  description: string | undefined
  issuer: string | undefined
  /** The key that signs its invoices. An offer with blinded paths may have none. */
  issuerKey: string | undefined
  expiresAtSeconds: number | undefined
}

/** BOLT 12 uses bech32 without a checksum, which the library does not support. */
const CHARSET = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l'
const SHAPE = new RegExp(`^lno1[${CHARSET}]+$`)
const MAX_LENGTH = 8_192
const TYPE = { currency: 6, amount: 8, description: 10, expiry: 14, paths: 16, issuer: 18, issuerKey: 22 } as const
const KEY_BYTES = 33
/** The end of the year 9999. Much later times are not a valid Date. */
const LATEST_SECONDS = 253_402_300_799

/** Undefined unless all fields can be read. An offer has no signature: anyone can write anything into it. */
export function readOffer(text: string): Bolt12Offer | undefined {
  // A long offer may be split with "+" and whitespace.
  const joined = text.trim().replace(/\+\s*/g, '')
  const offer = joined === joined.toUpperCase() ? joined.toLowerCase() : joined
  if (offer.length > MAX_LENGTH || !SHAPE.test(offer)) return undefined
  const bytes = bech32.fromWordsUnsafe([...offer.slice(4)].map((character) => CHARSET.indexOf(character)))
  const fields = bytes && fieldsOf(bytes)
  // Without either of these fields, the offer does not say whom to pay, so its end was probably cut off.
  if (!fields || !(fields.has(TYPE.issuerKey) || fields.has(TYPE.paths))) return undefined
  const read = <T>(type: number, as: (value: Uint8Array) => T | undefined): T | undefined | null => {
    const value = fields.get(type)
    // Null: the field exists but cannot be read. Undefined: the field is missing.
    return value && (as(value) ?? null)
  }
  const amount = read(TYPE.amount, numberIn)
  const currency = read(TYPE.currency, textOf)
  const description = read(TYPE.description, textOf)
  const issuer = read(TYPE.issuer, textOf)
  const issuerKey = read(TYPE.issuerKey, (key) => (key.length === KEY_BYTES ? toHex(key) : undefined))
  const expiresAtSeconds = read(TYPE.expiry, (value) => {
    const seconds = numberIn(value)
    return seconds !== undefined && seconds <= LATEST_SECONDS ? seconds : undefined
  })
  if (amount === null || currency === null || description === null) return undefined
  if (issuer === null || issuerKey === null || expiresAtSeconds === null) return undefined
  return { amount, currency, description, issuer, issuerKey, expiresAtSeconds }
}

/** Undefined if a field runs past the end, or the fields are not in ascending order. */
function fieldsOf(bytes: Uint8Array): Map<number, Uint8Array> | undefined {
  const fields = new Map<number, Uint8Array>()
  let last = -1
  for (let at = 0; at < bytes.length; ) {
    const type = sizeAt(bytes, at)
    const length = type && sizeAt(bytes, type.next)
    if (!length || type.value <= last || length.next + length.value > bytes.length) return undefined
    at = length.next + length.value
    last = type.value
    fields.set(type.value, bytes.subarray(length.next, at))
  }
  return fields
}

/** Reads a BigSize number. The longer encodings are refused: they are only for numbers from 65,536. */
function sizeAt(bytes: Uint8Array, at: number): { value: number; next: number } | undefined {
  const [first, high, low] = bytes.subarray(at, at + 3)
  if (first === undefined || first > 0xfd) return undefined
  if (first < 0xfd) return { value: first, next: at + 1 }
  return high === undefined || low === undefined ? undefined : { value: high * 256 + low, next: at + 3 }
}

function numberIn(bytes: Uint8Array): number | undefined {
  const value = bytes.reduce((sum, byte) => sum * 256 + byte, 0)
  return Number.isSafeInteger(value) ? value : undefined
}
