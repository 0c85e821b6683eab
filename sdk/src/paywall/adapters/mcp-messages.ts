import { fromBase64, textOf, toBase64Url } from '../../../../protocol/src/bytes.ts'
import { jcs } from '../../../../protocol/src/jcs.ts'
import { readChallenges } from '../../../../protocol/src/www-authenticate.ts'

/** Between headers and what mppx makes of them in JSON: there the challenge's request is an object, not a base64url string. */

type Json = { [name: string]: unknown }

/** The parameters of a challenge. */
export function challengeOf(header: string): Json {
  const challenge: Json = Object.fromEntries(readChallenges(header)?.[0]?.params ?? [])
  return { ...challenge, request: jsonOf(String(challenge.request)) }
}

export const receiptOf = (header: string): unknown => jsonOf(header)

/**
 * The header that the credential would have been. The gateway compares the request byte for byte, so it is written as it was issued:
 * canonically. Undefined: there is none. What is none, or too deep to write, becomes a header that is refused.
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

/** One text for arguments that mean the same. A schema may have made dates of them, which JSON writes as texts. */
export function argumentsText(value: unknown): string {
  const text = JSON.stringify(value)
  try {
    return jcs(JSON.parse(text))
  } catch {
    // A lone surrogate: no canonical form, but still a text of its own.
    return text
  }
}

function jsonOf(base64url: string): unknown {
  return JSON.parse(textOf(fromBase64(base64url) ?? new Uint8Array()) ?? '')
}
