import { utf8Of } from '../../../protocol/src/bytes.ts'
import { type BuyerCrypto, sha256Hex } from './crypto/crypto.ts'

/** The Content-Type of a form as `fetch` writes it. A boundary with fewer than 24 characters could occur in a value. */
const TYPE = /^(multipart\/form-data; *boundary=("?))([\w'()+,./:=?-]{24,70})\2$/i

/**
 * `fetch` uses a random boundary for each form. This replaces it with one of the same length that is derived from the content, so
 * that a form sent again after a crash has the same bytes: the purchase's key and x402 depend on them. A form that does not look
 * exactly as `fetch` makes it is not changed, because the caller chose its boundary.
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

/**
 * Where the boundary occurs. Undefined unless every line that begins with the boundary is a separator, and only the last one ends
 * the form.
 */
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
