/** Longer than anything the service takes. */
const LONGEST = 16 * 1024
const PAYMENT_ID = /^pay_[0-9a-z]{20}$/

/**
 * The id of the payment that a customer's Authorization header is about, from the header alone. It only says where to ask: whoever writes
 * another id into it is refused by the service. Undefined: it is no payment credential, or none of Boltyard's.
 */
export function paymentIdOf(credential: string): string | undefined {
  if (credential.length > LONGEST) return undefined
  const [, scheme = '', token = ''] = /^[ \t]*(Payment|L402|LSAT) +([^ \t]+)[ \t]*$/i.exec(credential) ?? []
  if (token === '') return undefined
  try {
    const id = scheme.toLowerCase() === 'payment' ? mppPaymentId(token) : l402PaymentId(token.split(':')[0] ?? '')
    return typeof id === 'string' && PAYMENT_ID.test(id) ? id : undefined
  } catch {
    // Not base64, not UTF-8, not JSON, not a macaroon: not ours.
    return undefined
  }
}

function mppPaymentId(token: string): unknown {
  return json(json(token).challenge?.request).externalId
}

function json(base64: unknown): { challenge?: { request?: unknown }; externalId?: unknown } {
  const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytesOf(String(base64))))
  return typeof value === 'object' && value !== null ? value : {}
}

/** The first `payment_id` caveat; later ones may be the customer's own. */
function l402PaymentId(base64: string): string | undefined {
  return caveatsOf(base64, 'payment_id')[0]
}

/** When an L402 credential that the service has accepted expires, in seconds: the earliest time in it, since anybody may add an earlier one. */
export function validUntilOf(credential: string): number | undefined {
  const [, token = ''] = credential.trim().split(/ +/)
  const times = caveatsOf(token.split(':')[0] ?? '', 'boltyard_valid_until').map(Number)
  return times.length === 0 ? undefined : Math.min(...times)
}

/** The values of all caveats of this name. */
function caveatsOf(base64: string, name: string): string[] {
  const texts = packetsOf(bytesOf(base64)).map((field) => field.map((byte) => String.fromCharCode(byte)).join(''))
  return texts.filter((text) => text.startsWith(`${name}=`)).map((text) => text.slice(name.length + 1))
}

const [END, IDENTIFIER] = [0, 2]

/** The caveats of a macaroon, version 2: a version byte, the head's fields up to an end, then each caveat's fields up to an end. */
function packetsOf(bytes: Uint8Array): number[][] {
  const caveats: number[][] = []
  let at = 1
  const number = (): number => {
    let value = 0
    for (let shift = 0; shift < 28; shift += 7) {
      const byte = bytes[at++]
      if (byte === undefined) break
      value |= (byte & 127) << shift
      if (byte < 128) return value
    }
    throw new RangeError('not a macaroon')
  }
  if (bytes[0] !== 2) throw new RangeError('not a macaroon of version 2')
  for (let isHead = true; at < bytes.length; isHead = false) {
    // Two ends in a row: after it comes the signature.
    if (bytes[at] === END) break
    for (let type = number(); type !== END; type = number()) {
      const length = number()
      if (at + length > bytes.length) throw new RangeError('not a macaroon')
      if (type === IDENTIFIER && !isHead) caveats.push([...bytes.subarray(at, at + length)])
      at += length
    }
  }
  return caveats
}

function bytesOf(base64: string): Uint8Array {
  const text = atob(base64.replaceAll('-', '+').replaceAll('_', '/').replace(/=+$/, ''))
  // By hand: `Uint8Array.from` with a function takes ten times as long, and this is done for every paid request.
  const bytes = new Uint8Array(text.length)
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at)
  return bytes
}
