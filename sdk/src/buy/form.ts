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

function placesOf(wanted: Uint8Array, body: Uint8Array): number[] {
  const places: number[] = []
  const [first = 0] = wanted
  for (let at = body.indexOf(first); at !== -1; at = body.indexOf(first, at + 1))
    if (wanted.every((byte, index) => body[at + index] === byte)) places.push(at)
  return places
}
