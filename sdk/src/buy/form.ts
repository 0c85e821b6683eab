import { utf8Of } from '../../../protocol/src/bytes.ts'
import { type BuyerCrypto, sha256Hex } from './crypto/crypto.ts'

const TYPE = /^(multipart\/form-data;\s*boundary="?)([^";]+)/i

/**
 * `fetch` draws a random boundary for each form. This one follows from the content, so that a form that is sent again after a crash is the same
 * request: for the key of its purchase, and for x402, which binds the bytes. It has the same length, so nothing else moves.
 */
export function withSteadyBoundary(crypto: Pick<BuyerCrypto, 'sha256'>, headers: Headers, body: Uint8Array): Uint8Array {
  const type = headers.get('content-type') ?? ''
  const drawn = utf8Of(TYPE.exec(type)?.[2] ?? '')
  const places = drawn.length === 0 ? [] : placesOf(drawn, body)
  if (places.length === 0) return body
  const steady = body.slice()
  for (const at of places) steady.fill(0, at, at + drawn.length)
  const name = sha256Hex(crypto, steady).slice(0, drawn.length).padStart(drawn.length, '-')
  for (const at of places) steady.set(utf8Of(name), at)
  headers.set(
    'content-type',
    type.replace(TYPE, (_, beginning: string) => beginning + name),
  )
  return steady
}

const [CR, LF, DASH] = [13, 10, 45]

/** Only where it separates two parts: a value may contain the same letters elsewhere. */
function placesOf(boundary: Uint8Array, body: Uint8Array): number[] {
  const isAt = (at: number, ...bytes: number[]): boolean => bytes.every((byte, index) => body[at + index] === byte)
  const places: number[] = []
  for (let line = 0; line >= 0; ) {
    const [at, end] = [line + 2, line + 2 + boundary.length]
    const isDelimiter = isAt(line, DASH, DASH, ...boundary) && (isAt(end, CR, LF) || isAt(end, DASH, DASH))
    if (isDelimiter) places.push(at)
    const next = body.indexOf(LF, line)
    line = next === -1 || next + 1 === body.length ? -1 : next + 1
  }
  return places.filter((at) => at === 2 || body[at - 4] === CR)
}
