import { type Offer, readOffers } from '../../../protocol/src/offers.ts'
import { Failure } from '../failure.ts'

/** The offers in a challenge that we can pay, in the server's order. */
export function usableOffers(challenge: string): [Offer, ...Offer[]] {
  const read = readOffers(challenge, Date.now() / 1000)
  if ('offers' in read) return read.offers
  throw new Failure(
    'other',
    'unusable_challenge',
    `The challenge requires a payment that boltyard cannot make. ${read.unusable}. Nothing was paid.`,
  )
}
