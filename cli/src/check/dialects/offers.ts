import { readChallenges } from '../../../../protocol/src/www-authenticate.ts'
import type { Note } from '../findings.ts'
import type { Answer, Visit } from '../visit.ts'
import { checkL402, isL402 } from './l402.ts'
import { checkMpp, isLightningCharge } from './mpp.ts'
import { type LiveOffer, price } from './offer.ts'
import { checkX402 } from './x402.ts'

export const WWW_AUTHENTICATE = 'www-authenticate'
export const PAYMENT_REQUIRED = 'payment-required'

/** The offers of a 402, in the order in which a buyer reads them. */
export function checkOffers(answer: Answer, visit: Visit, note: Note): LiveOffer[] {
  const header = answer.header(WWW_AUTHENTICATE)
  const challenges = readChallenges(header)
  if (!challenges) note('challenge-malformed', header)
  const offers: (LiveOffer | undefined)[] = []
  for (const challenge of challenges ?? []) {
    if (isLightningCharge(challenge)) offers.push(checkMpp(challenge, note))
    else if (isL402(challenge)) offers.push(checkL402(challenge, header, note))
  }
  const firstOf = (isOne: typeof isL402): number => challenges?.findIndex(isOne) ?? -1
  if (firstOf(isLightningCharge) >= 0 && firstOf(isL402) > firstOf(isLightningCharge)) note('offer-order', 'Payment before L402')
  const required = answer.header(PAYMENT_REQUIRED)
  if (required !== '') offers.push(...checkX402(required, visit, note))
  const usable = offers.filter((offer) => offer !== undefined)
  compareOffers(usable, note)
  return usable
}

function compareOffers(offers: LiveOffer[], note: Note): void {
  const each = (tell: (offer: LiveOffer) => string): string => offers.map((one) => `${one.protocol} ${tell(one)}`).join(', ')
  if (new Set(offers.map(({ amountMsat }) => amountMsat)).size > 1)
    note(
      'prices-differ',
      each(({ amountMsat }) => price(amountMsat)),
    )
  if (new Set(offers.map(({ invoice }) => invoice.network)).size > 1)
    note(
      'networks-differ',
      each(({ invoice }) => invoice.network),
    )
}
