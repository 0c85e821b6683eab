import { type Offer, readOffers } from '../../../protocol/src/offers.ts'
import type { HttpCall } from '../../../protocol/src/x402-binding.ts'
import { readX402Offers } from '../../../protocol/src/x402-offers.ts'
import type { BuyerCrypto } from './crypto/crypto.ts'
import { PurchaseError } from './errors.ts'

/** An offer, and the header of the 402 that it was read from, which is enough to read it again. */
export type FoundOffer = Offer & { challenge: string }

/** The offers that can be paid: first those of WWW-Authenticate in the server's order, then those of x402. */
export function offersIn(
  crypto: BuyerCrypto,
  headers: Headers,
  request: HttpCall,
  nowSeconds = Date.now() / 1000,
): [FoundOffer, ...FoundOffer[]] {
  const [authenticate, required] = [headers.get('www-authenticate'), headers.get('payment-required')]
  const read = [
    ...(authenticate === null
      ? []
      : [{ challenge: authenticate, ...readOffers(authenticate, nowSeconds, { obeysHeader: true }) }]),
    ...(required === null
      ? []
      : [{ challenge: required, ...readX402Offers(crypto, required, request, { nowSeconds, ...crypto }) }]),
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

/**
 * The offer of a kept purchase. It was checked before it was kept. Its expiry is not checked again, because it may be paid already. Undefined
 * if the challenge does not contain it.
 */
export function keptOffer(crypto: BuyerCrypto, challenge: string, invoice: string): Offer | undefined {
  // No comparison with NaN holds, so the invoice is neither expired nor from the future.
  const x402 = readX402Offers(crypto, challenge, undefined, { nowSeconds: Number.NaN, ...crypto })
  for (const read of [readOffers(challenge, 0, { obeysHeader: true }), x402]) {
    const offer = 'offers' in read ? read.offers.find(({ invoiceText }) => invoiceText === invoice) : undefined
    if (offer) return offer
  }
  return undefined
}
