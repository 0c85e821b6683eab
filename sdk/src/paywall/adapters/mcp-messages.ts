/** Between headers and what mppx makes of them in JSON: there the challenge's request is an object, not a base64url string. */

type Json = { [name: string]: unknown }

/** The parameters of a challenge of ours: no value has a quote or a backslash in it. */
export function challengeOf(header: string): Json {
  const pairs = [...header.matchAll(/(\w+)="([^"]*)"/g)].map(([, name = '', value = '']) => [name, value])
  const challenge: Json = Object.fromEntries(pairs)
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
    const wire = { ...challenge, request: typeof request === 'string' ? request : base64urlOf(canonical(request)) }
    return `Payment ${base64urlOf(JSON.stringify({ challenge: wire, ...others }))}`
  } catch {
    return 'Payment malformed'
  }
}

/** RFC 8785, for what is in a request: objects and strings. */
export function canonical(value: unknown): string {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return JSON.stringify(value)
  const members = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1))
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join(',')}}`
}

function base64urlOf(text: string): string {
  const bytes = Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join('')
  return btoa(bytes).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
}

function jsonOf(base64url: string): unknown {
  const bytes = atob(base64url.replaceAll('-', '+').replaceAll('_', '/'))
  return JSON.parse(new TextDecoder().decode(Uint8Array.from(bytes, (character) => character.charCodeAt(0))))
}
