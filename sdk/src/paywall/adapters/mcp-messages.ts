import { fromBase64, textOf, toBase64, toBase64Url, utf8Of } from '../../../../protocol/src/bytes.ts'
import { jcs } from '../../../../protocol/src/jcs.ts'
import { readChallenges } from '../../../../protocol/src/www-authenticate.ts'

/** Converts between headers and mppx's JSON form, where the challenge's request is an object instead of a base64url string. */

type Json = { [name: string]: unknown }

/** The parameters of a challenge. */
export function challengeOf(header: string): Json {
  const challenge: Json = Object.fromEntries(readChallenges(header)?.[0]?.params ?? [])
  return { ...challenge, request: jsonOf(String(challenge.request)) }
}

/**
 * Converts the credential to an Authorization header. The gateway compares the request byte for byte, so it is written in canonical form,
 * as issued. Undefined if there is no credential. A malformed or too deeply nested one becomes a header that is refused.
 */
export function headerOf(credential: unknown): string | undefined {
  if (credential === undefined) return undefined
  try {
    const { challenge, ...others } = credential as { challenge: Json }
    const { request } = challenge
    const wire = { ...challenge, request: typeof request === 'string' ? request : toBase64Url(jcs(request)) }
    return `Payment ${toBase64Url(JSON.stringify({ challenge: wire, ...others }))}`
  } catch {
    return 'Payment malformed'
  }
}

/** Converts an x402 payment to the value of PAYMENT-SIGNATURE. */
export function signatureOf(payment: unknown): string | undefined {
  if (payment === undefined) return undefined
  try {
    return toBase64(utf8Of(JSON.stringify(payment) ?? ''))
  } catch {
    return 'malformed'
  }
}

/** Returns the same text for equal arguments. A schema may have turned strings into dates; JSON turns them back into strings. */
export function argumentsText(value: unknown): string {
  const text = JSON.stringify(value)
  try {
    return jcs(JSON.parse(text))
  } catch {
    // An unpaired surrogate has no canonical form, but the text is still unique.
    return text
  }
}

/** The JSON in a header. */
export function jsonOf(base64url: string): unknown {
  return JSON.parse(textOf(fromBase64(base64url) ?? new Uint8Array()) ?? '')
}
