import { type CredentialHeader, type Offer, readOffers } from '../../../protocol/src/offers.ts'
import type { HttpCall } from '../../../protocol/src/x402-binding.ts'
import { readX402Offers } from '../../../protocol/src/x402-offers.ts'
import type { BuyerCrypto } from './crypto/crypto.ts'
import { PurchaseError } from './errors.ts'

/** An offer, and the 402's header that contained it (`challenge`), which is enough to read the offer again. */
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

type KeptOffer = { challenge: string; invoice: string; header: CredentialHeader; protocol?: Offer['protocol'] | undefined }

/**
 * The offer of a kept purchase. Its expiry was checked before the purchase was kept and is not checked again, because the invoice
 * may have been paid since. Undefined if the challenge does not contain the offer.
 */
export function keptOffer(crypto: BuyerCrypto, kept: KeptOffer): Offer | undefined {
  // No comparison with NaN holds, so the invoice is neither expired nor from the future.
  return offerAt(crypto, kept, { nowSeconds: Number.NaN })
}

/** Whether the seller would still accept the offer's credential for this request. */
export const isStillOffered = (crypto: BuyerCrypto, kept: KeptOffer, request: HttpCall): boolean =>
  offerAt(crypto, kept, { nowSeconds: Date.now() / 1000, request }) !== undefined

/** Compares the header and the protocol too, because several offers may share an invoice. */
function offerAt(
  crypto: BuyerCrypto,
  { challenge, invoice, header, protocol }: KeptOffer,
  { nowSeconds, request }: { nowSeconds: number; request?: HttpCall },
): Offer | undefined {
  return [
    // With NaN, `readOffers` would reject every challenge that has the parameter `expires`.
    readOffers(challenge, Number.isNaN(nowSeconds) ? 0 : nowSeconds, { obeysHeader: true }),
    readX402Offers(crypto, challenge, request, { nowSeconds, ...crypto }),
  ]
    .flatMap((read) => ('offers' in read ? read.offers : []))
    .find((one) => one.invoiceText === invoice && one.header === header && (protocol ?? one.protocol) === one.protocol)
}
