import { type Offer, readOffers } from '../../../protocol/src/offers.ts'
import type { HttpCall } from '../../../protocol/src/x402-binding.ts'
import { readX402Offers } from '../../../protocol/src/x402-offers.ts'
import { PurchaseError } from './errors.ts'
import { isNodeKey, isSignedBy, sha256 } from './primitives.ts'

/** An offer, and the header of the 402 that it was read from, which is enough to read it again. */
export type FoundOffer = Offer & { challenge: string }

/** The offers that can be paid: first those of WWW-Authenticate in the server's order, then those of x402. */
export function offersIn(headers: Headers, request: HttpCall, nowSeconds = Date.now() / 1000): [FoundOffer, ...FoundOffer[]] {
  const [authenticate, required] = [headers.get('www-authenticate'), headers.get('payment-required')]
  const read = [
    ...(authenticate === null
      ? []
      : [{ challenge: authenticate, ...readOffers(authenticate, nowSeconds, { obeysHeader: true }) }]),
    ...(required === null ? [] : [{ challenge: required, ...readX402(required, request, nowSeconds) }]),
  ]
  const [first, ...more] = read.flatMap((one) =>
    'offers' in one ? one.offers.map((offer) => ({ ...offer, challenge: one.challenge })) : [],
  )
  if (first) return [first, ...more]
  const [why] = read.flatMap((one) => ('unusable' in one ? [one.unusable] : []))
  throw new PurchaseError(
    'unpaid',
    'unusable_challenge',
    `The server requires a payment that cannot be made. ${why ?? 'It offers neither MPP over Lightning, L402 nor x402'}.`,
  )
}

const readX402 = (text: string, request: HttpCall | undefined, nowSeconds: number): ReturnType<typeof readX402Offers> =>
  readX402Offers({ sha256 }, text, request, { nowSeconds, isNodeKey, isSignedBy })

/** The offer of a kept purchase. Its expiry is not checked, because it may be paid already. Undefined if the challenge does not contain it. */
export function keptOffer(challenge: string, invoice: string): Offer | undefined {
  for (const read of [readOffers(challenge, 0, { obeysHeader: true }), readX402Kept(challenge)]) {
    const offer = 'offers' in read ? read.offers.find(({ invoiceText }) => invoiceText === invoice) : undefined
    if (offer) return offer
  }
  return undefined
}

/** No comparison with NaN holds, so the invoice is neither expired nor from the future. */
const readX402Kept = (challenge: string): ReturnType<typeof readX402Offers> =>
  readX402Offers({ sha256 }, challenge, undefined, { nowSeconds: Number.NaN, isNodeKey, isSignedBy })
