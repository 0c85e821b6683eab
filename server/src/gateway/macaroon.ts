import { createHmac, timingSafeEqual } from 'node:crypto'

/**
 * Macaroons as libmacaroons version 2 writes them, first-party caveats only. Two texts about these bytes disagree: one of them leaves
 * out the key derivation and swaps the tags. This is what go-macaroon and libmacaroons write and what every client reads.
 */
export type Macaroon = { identifier: Buffer; caveats: Buffer[]; signature: Buffer }

const VERSION = 2
const END = 0
const LOCATION = 1
const IDENTIFIER = 2
const SIGNATURE = 6
const SIGNATURE_LENGTH = 32
const MAX_BYTES = 4 * 1024
/** Every caveat costs an HMAC before we know whether the sender ever paid, so a stranger must not choose how many. */
const MAX_CAVEATS = 64
const KEY_GENERATOR = 'macaroons-key-generator'

export function mintMacaroon(rootKey: Buffer, identifier: Buffer, location: string, caveats: string[]): Buffer {
  const texts = caveats.map((caveat) => Buffer.from(caveat))
  const bytes = Buffer.concat([
    Buffer.of(VERSION),
    ...field(LOCATION, Buffer.from(location)),
    ...field(IDENTIFIER, identifier),
    Buffer.of(END),
    ...texts.flatMap((text) => [...field(IDENTIFIER, text), Buffer.of(END)]),
    Buffer.of(END),
    ...field(SIGNATURE, signatureOf(rootKey, identifier, texts)),
  ])
  // Somebody would pay for it and we would then refuse to read it.
  if (bytes.length > MAX_BYTES || caveats.length > MAX_CAVEATS)
    throw new RangeError('A macaroon that we would refuse was asked for.')
  return bytes
}

/** Two bytes of length reach 16,383: more than a whole macaroon may have. */
function field(kind: number, content: Buffer): [head: Buffer, content: Buffer] {
  const { length } = content
  return [length < 0x80 ? Buffer.of(kind, length) : Buffer.of(kind, 0x80 | (length & 0x7f), length >> 7), content]
}

/**
 * Undefined: not a macaroon that we take. The parts point into the given bytes: nothing is copied, and no length that the sender
 * wrote makes us allocate. The location is a hint that nobody signed, so any is taken, and none.
 */
export function readMacaroon(bytes: Buffer): Macaroon | undefined {
  if (bytes.length > MAX_BYTES || bytes[0] !== VERSION) return undefined
  let at = 1

  const take = (kind: number): Buffer | undefined => {
    let length = bytes[at + 1]
    if (bytes[at] !== kind || length === undefined) return undefined
    let start = at + 2
    if (length >= 0x80) {
      const high = bytes[start++]
      // Everyone writes the shortest form; another spelling is a probe, not a macaroon. The mark of a third byte counts as 16,384
      // here, which is more than is ever left.
      if (high === undefined || high === 0) return undefined
      length = (length & 0x7f) | (high << 7)
    }
    // subarray() shortens in silence: the part would be another than the one that its length promised.
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

  const caveats: Buffer[] = []
  while (!takeEnd()) {
    // A third-party caveat has a location before its text or a verification id after it. Neither is expected here, and both must be
    // refused: skipped, a promise that somebody else was to check would count as kept.
    const caveat = take(IDENTIFIER)
    if (!caveat || !takeEnd() || caveats.length === MAX_CAVEATS) return undefined
    caveats.push(caveat)
  }

  const signature = take(SIGNATURE)
  // What follows the signature is covered by nothing. It could be a second macaroon, and then which one was judged?
  if (signature?.length !== SIGNATURE_LENGTH || at !== bytes.length) return undefined
  return { identifier, caveats, signature }
}

/** Constant time: how far a forged signature agrees with the right one must not show in how long the answer takes. */
export function isSignedBy(rootKey: Buffer, macaroon: Macaroon): boolean {
  return timingSafeEqual(signatureOf(rootKey, macaroon.identifier, macaroon.caveats), macaroon.signature)
}

function signatureOf(rootKey: Buffer, identifier: Buffer, caveats: Buffer[]): Buffer {
  return caveats.reduce(hmac, hmac(hmac(KEY_GENERATOR, rootKey), identifier))
}

function hmac(key: Buffer | string, data: Buffer): Buffer {
  return createHmac('sha256', key).update(data).digest()
}
