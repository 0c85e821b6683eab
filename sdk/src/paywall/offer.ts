import type { Protocol as AnyProtocol } from '../types.ts'

/** What a paywall can offer so far. */
type Protocol = Exclude<AnyProtocol, 'x402'>
export type Offer = Protocol | 'both' | readonly Protocol[]

/** Always L402 first: with `Payment` first, the npm package `l402` pays and then sends a credential without a scheme. */
export function protocolsOf(offer: Offer = 'mpp'): Protocol[] {
  const wished: readonly unknown[] = offer === 'both' ? ['l402', 'mpp'] : typeof offer === 'string' ? [offer] : offer
  const protocols = (['l402', 'mpp'] as const).filter((protocol) => wished.includes(protocol))
  // A misspelled protocol must not silently lead to fewer offers.
  if (protocols.length === 0 || wished.some((one) => one !== 'l402' && one !== 'mpp'))
    throw new TypeError("`protocol` must be 'mpp', 'l402', 'both', or a list of the first two.")
  return protocols
}
