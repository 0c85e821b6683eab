/** What a customer's client does with a 402, in the browser: read the challenge, and answer it with the preimage. Both protocols. */
export type ReadChallenge = { scheme: 'Payment' | 'L402'; parameters: Record<string, string>; invoice: string }

export function readChallenge(challenge: string): ReadChallenge {
  const scheme = challenge.startsWith('L402 ') ? 'L402' : 'Payment'
  const parameters = Object.fromEntries(
    [...challenge.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name ?? '', value ?? '']),
  )
  if (scheme === 'L402') return { scheme, parameters, invoice: parameters.invoice ?? '' }
  const request = decoded(parameters.request ?? '') as { methodDetails?: { invoice?: string } }
  return { scheme, parameters, invoice: request.methodDetails?.invoice ?? '' }
}

/** The value of the Authorization header with which the customer comes back. */
export function buildCredential({ scheme, parameters }: ReadChallenge, preimage: string): string {
  if (scheme === 'L402') return `L402 ${parameters.macaroon}:${preimage}`
  const { id, realm, method, intent, request, expires } = parameters
  // Names in alphabetical order, as the canonical form has them: the same credential then has one spelling.
  const token = { challenge: { expires, id, intent, method, realm, request }, payload: { preimage } }
  return `Payment ${encoded(token)}`
}

export function decoded(base64url: string): unknown {
  const bytes = Uint8Array.from(atob(base64url.replaceAll('-', '+').replaceAll('_', '/')), (character) => character.charCodeAt(0))
  return JSON.parse(new TextDecoder().decode(bytes))
}

function encoded(value: unknown): string {
  const bytes = new TextEncoder().encode(JSON.stringify(value))
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace(/=+$/, '')
}
