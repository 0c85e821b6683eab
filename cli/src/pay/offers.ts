import { type Offer, readOffers } from '../../../protocol/src/offers.ts'
import { Failure } from '../failure.ts'

/** The offers we can pay, in the server's order. */
export function usableOffers(header: string, nowSeconds = Date.now() / 1000): [Offer, ...Offer[]] {
  const read = readOffers(header, nowSeconds)
  if ('offers' in read) return read.offers
  throw new Failure(
    'other',
    'unusable_challenge',
    `The server requires a payment that boltyard cannot make. ${read.unusable}. Nothing was paid.`,
  )
}
