import { utf8Of } from '../../../protocol/src/bytes.ts'
import { type BuyerCrypto, sha256Hex } from './crypto/crypto.ts'

/** As `fetch` writes it. With fewer characters, the new boundary could occur in a value. */
const TYPE = /^(multipart\/form-data; *boundary=("?))([\w'()+,./:=?-]{24,70})\2$/i

/**
 * `fetch` draws a random boundary for each form. This one follows from the content, so that a form that is sent again after a crash is the same
 * request: for the key of its purchase, and for x402, which binds the bytes. It has the same length, so nothing else moves. A form that is not
 * exactly as `fetch` makes it stays as it is: its boundary was not drawn here.
 */
export function withSteadyBoundary(crypto: Pick<BuyerCrypto, 'sha256'>, headers: Headers, body: Uint8Array): Uint8Array {
  const [, beginning = '', quote = '', boundary = ''] = TYPE.exec(headers.get('content-type') ?? '') ?? []
  const drawn = utf8Of(boundary)
  const places = drawn.length === 0 ? undefined : placesOf(drawn, body)
  if (!places) return body
  const steady = body.slice()
  for (const at of places) steady.fill(0, at, at + drawn.length)
  const name = sha256Hex(crypto, steady).slice(0, drawn.length).padStart(drawn.length, '-')
  for (const at of places) steady.set(utf8Of(name), at)
  headers.set('content-type', beginning + name + quote)
  return steady
}

const [CR, LF, DASH] = [13, 10, 45]

/** Where it separates two parts. Undefined unless every line that begins with it does so, and only the last one ends the form. */
function placesOf(boundary: Uint8Array, body: Uint8Array): number[] | undefined {
  const places: number[] = []
  let isEnded = false
  for (let line = 0; line < body.length; line++) {
    if (body[line] !== DASH || body[line + 1] !== DASH) continue
    if ((line > 0 && body[line - 1] !== LF) || !isAt(body, line + 2, boundary)) continue
    const end = line + 2 + boundary.length
    const isLast = body[end] === DASH && body[end + 1] === DASH
    const isAfterCr = line === 0 || body[line - 2] === CR
    const isAlone = isLast ? isRest(body, end + 2) : body[end] === CR && body[end + 1] === LF
    if (isEnded || !isAfterCr || !isAlone) return undefined
    isEnded = isLast
    places.push(line + 2)
  }
  return isEnded && places[0] === 2 ? places : undefined
}

function isAt(body: Uint8Array, at: number, bytes: Uint8Array): boolean {
  for (let index = 0; index < bytes.length; index++) if (body[at + index] !== bytes[index]) return false
  return true
}

/** Some runtimes end a form with a line break, others do not. */
const isRest = (body: Uint8Array, at: number): boolean =>
  at === body.length || (at + 2 === body.length && body[at] === CR && body[at + 1] === LF)
