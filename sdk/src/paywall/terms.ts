import type { Protocol } from '../types.ts'

/** What a payment was for. It never changes once the payment is made. */
export type Terms = { nodeId: string; amountSat: number; description: string; protocol: Protocol }

/** What this request costs. */
export type Wanted = { nodeId: string; amountSat: number; description: string; protocols: readonly Protocol[] }

/**
 * The description binds the route, so all four have to agree: the credential of a cheap route must not open a dear one, and one that is
 * good for a day (L402) must not open a route that sells single calls (MPP).
 */
export function isFor(terms: Terms, wanted: Wanted): boolean {
  return (
    terms.nodeId === wanted.nodeId &&
    terms.amountSat === wanted.amountSat &&
    terms.description === wanted.description &&
    wanted.protocols.includes(terms.protocol)
  )
}

export type Offer = Protocol | 'both' | readonly Protocol[]

/** L402 first, whatever the order of the wish: with `Payment` first, npm `l402` pays and then sends a credential without a scheme. */
export function protocolsOf(offer: Offer = 'mpp'): Protocol[] {
  const wished: readonly unknown[] = offer === 'both' ? ['l402', 'mpp'] : typeof offer === 'string' ? [offer] : offer
  const protocols = (['l402', 'mpp'] as const).filter((protocol) => wished.includes(protocol))
  // A misspelt protocol must not silently become a paywall that offers nothing, or less than was meant.
  if (protocols.length === 0 || wished.some((one) => one !== 'l402' && one !== 'mpp'))
    throw new TypeError("`protocol` is 'mpp', 'l402', 'both', or a list of the first two.")
  return protocols
}

const LONGEST_DESCRIPTION = 500

/** A path may be longer than a description. By its beginning alone, whoever pays for one page would have paid for all that begin so. */
export async function shortened(text: string): Promise<string> {
  if (text.length <= LONGEST_DESCRIPTION) return text
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)))
  const end = `… (${Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('')})`
  return text.slice(0, LONGEST_DESCRIPTION - end.length) + end
}
