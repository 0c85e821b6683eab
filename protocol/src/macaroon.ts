import { concat, utf8Of } from './bytes.ts'
import type { Primitives } from './primitives.ts'

/**
 * Macaroons in libmacaroons format version 2, with first-party caveats only. Two descriptions of this format disagree: one leaves out the
 * key derivation and swaps the tags. This code follows go-macaroon and libmacaroons, which every client can read.
 */
export type Macaroon = { identifier: Uint8Array; caveats: Uint8Array[]; signature: Uint8Array }

const VERSION = 2
const END = 0
const LOCATION = 1
const IDENTIFIER = 2
const SIGNATURE = 6
const SIGNATURE_LENGTH = 32
const MAX_BYTES = 4 * 1024
/** Every caveat costs an HMAC before we know whether the sender has paid, so their number must be limited. */
const MAX_CAVEATS = 64
const KEY_GENERATOR = 'macaroons-key-generator'

export function mintMacaroon(
  primitives: Primitives,
  rootKey: Uint8Array,
  identifier: Uint8Array,
  location: string,
  caveats: string[],
): Uint8Array {
  const texts = caveats.map(utf8Of)
  const end = Uint8Array.of(END)
  const bytes = concat([
    Uint8Array.of(VERSION),
    ...field(LOCATION, utf8Of(location)),
    ...field(IDENTIFIER, identifier),
    end,
    ...texts.flatMap((text) => [...field(IDENTIFIER, text), end]),
    end,
    ...field(SIGNATURE, signatureOf(primitives, rootKey, identifier, texts)),
  ])
  // Otherwise a customer would pay for a macaroon that we then refuse.
  if (bytes.length > MAX_BYTES || caveats.length > MAX_CAVEATS)
    throw new RangeError('The macaroon would exceed the limits that readMacaroon enforces.')
  return bytes
}

/** Two length bytes reach 16,383, which is more than the maximum size of a macaroon. */
function field(kind: number, content: Uint8Array): [head: Uint8Array, content: Uint8Array] {
  const { length } = content
  return [length < 0x80 ? Uint8Array.of(kind, length) : Uint8Array.of(kind, 0x80 | (length & 0x7f), length >> 7), content]
}

/**
 * Undefined if we do not accept the macaroon. The parts are views of the given bytes: nothing is copied, and no length chosen by the sender
 * causes an allocation. The location is an unsigned hint, so any location or none is accepted.
 */
export function readMacaroon(bytes: Uint8Array): Macaroon | undefined {
  if (bytes.length > MAX_BYTES || bytes[0] !== VERSION) return undefined
  let at = 1

  const take = (kind: number): Uint8Array | undefined => {
    let length = bytes[at + 1]
    if (bytes[at] !== kind || length === undefined) return undefined
    let start = at + 2
    if (length >= 0x80) {
      const high = bytes[start++]
      // All encoders write the shortest form, so a longer one is refused. A continuation bit for a third byte counts as 16,384
      // here, which is always more than the remaining bytes.
      if (high === undefined || high === 0) return undefined
      length = (length & 0x7f) | (high << 7)
    }
    // subarray() truncates silently, so the part would be shorter than its length says.
    if (length > bytes.length - start) return undefined
    at = start + length
    return bytes.subarray(start, at)
  }
  const takeEnd = (): boolean => {
    if (bytes[at] !== END) return false
    at++
    return true
  }

  take(LOCATION)
  const identifier = take(IDENTIFIER)
  if (!identifier || !takeEnd()) return undefined

  const caveats: Uint8Array[] = []
  while (!takeEnd()) {
    // A third-party caveat has a location before its text or a verification id after it. Both must be
    // refused: if they were skipped, a condition that a third party has to check would count as met.
    const caveat = take(IDENTIFIER)
    if (!caveat || !takeEnd() || caveats.length === MAX_CAVEATS) return undefined
    caveats.push(caveat)
  }

  const signature = take(SIGNATURE)
  // Bytes after the signature are not covered by it, and could be a second macaroon.
  if (signature?.length !== SIGNATURE_LENGTH || at !== bytes.length) return undefined
  return { identifier, caveats, signature }
}

/** Compared in constant time, so that timing does not reveal how much of a forged signature is correct. */
export function isSignedBy(primitives: Primitives, rootKey: Uint8Array, macaroon: Macaroon): boolean {
  const { identifier, caveats, signature } = macaroon
  return primitives.isEqual(signatureOf(primitives, rootKey, identifier, caveats), signature)
}

function signatureOf({ hmacSha256 }: Primitives, rootKey: Uint8Array, identifier: Uint8Array, caveats: Uint8Array[]): Uint8Array {
  const signedIdentifier = hmacSha256(hmacSha256(KEY_GENERATOR, rootKey), identifier)
  return caveats.reduce((key, caveat) => hmacSha256(key, caveat), signedIdentifier)
}
