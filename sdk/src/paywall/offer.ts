import type { Protocol } from '../types.ts'

export type Offer = Protocol | 'both' | readonly Protocol[]

/** L402 first, whatever order was asked for: with `Payment` first, npm `l402` pays and then sends a credential without a scheme. */
export function protocolsOf(offer: Offer = 'mpp'): Protocol[] {
  const wished: readonly unknown[] = offer === 'both' ? ['l402', 'mpp'] : typeof offer === 'string' ? [offer] : offer
  const protocols = (['l402', 'mpp'] as const).filter((protocol) => wished.includes(protocol))
  // A misspelt protocol must not silently become a paywall that offers nothing, or less than was meant.
  if (protocols.length === 0 || wished.some((one) => one !== 'l402' && one !== 'mpp'))
    throw new TypeError("`protocol` is 'mpp', 'l402', 'both', or a list of the first two.")
  return protocols
}
