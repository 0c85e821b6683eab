import { acceptsPayment } from '../../../protocol/src/accept-payment.ts'
import type { Protocol } from '../types.ts'

export type Offer = Protocol | 'both' | readonly Protocol[]

/** Always L402 first: with `Payment` first, the npm package `l402` pays and then sends a credential without a scheme. */
const IN_ORDER: readonly Protocol[] = ['l402', 'mpp', 'x402']

export function protocolsOf({
  protocol,
  protocols,
}: {
  protocol?: Offer | undefined
  protocols?: Offer | undefined
}): Protocol[] {
  if (protocol !== undefined && protocols !== undefined) throw new TypeError('Set `protocols` or `protocol`, not both.')
  const offer = protocols ?? protocol ?? 'mpp'
  const wished: readonly unknown[] = offer === 'both' ? ['l402', 'mpp'] : typeof offer === 'string' ? [offer] : offer
  const offered = IN_ORDER.filter((one) => wished.includes(one))
  // A misspelled protocol must not silently lead to fewer offers.
  if (offered.length === 0 || wished.some((one) => !IN_ORDER.includes(one as Protocol)))
    throw new TypeError(
      protocol === undefined
        ? "`protocols` must contain at least one of 'mpp', 'l402' and 'x402', and nothing else."
        : "`protocol` must be 'mpp', 'l402', 'x402', 'both' or a list of the first three.",
    )
  return offered
}

/**
 * What to offer to a client that may list the payment methods it accepts in Accept-Payment. Only MPP clients send this header,
 * and they expect their own scheme first. If nothing matches, everything is offered.
 */
export function negotiated(protocols: readonly Protocol[], acceptPayment: string | null | undefined): readonly Protocol[] {
  return protocols.includes('mpp') && acceptsPayment(acceptPayment, 'lightning', 'charge') ? ['mpp'] : protocols
}
