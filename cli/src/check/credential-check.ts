import { randomBytes } from 'node:crypto'
import type { LiveOffer, Protocol } from './dialects/offer.ts'
import type { Note } from './findings.ts'
import type { Visit } from './visit.ts'
import type { Visits } from './visits.ts'

/** “not json” in base64, and three zero bytes in place of a macaroon. */
const MALFORMED: Record<Protocol, string> = {
  mpp: 'Payment bm90IGpzb24',
  l402: 'L402 AAAA:00',
  x402: 'bm90IGpzb24=',
}
/** The specifications of L402 and x402 allow these instead of 402. */
const ALSO_ALLOWED: Record<Protocol, number[]> = { mpp: [], l402: [401], x402: [400] }

/** Presents credentials that must be refused, once for each protocol that is offered. */
export async function checkCredentials(what: Visit, offers: LiveOffer[], visits: Visits, note: Note): Promise<void> {
  const each = [...new Map(offers.map((offer) => [offer.protocol, offer])).values()]
  const present = async (
    rule: 'malformed-credential' | 'forged-credential',
    offer: LiveOffer,
    headers: Record<string, string>,
  ) => {
    const { protocol } = offer
    const visit = { ...what, headers }
    const answer = await visits.send(visit)
    if (answer.status !== 402) {
      if (!ALSO_ALLOWED[protocol].includes(answer.status)) note(rule, `${protocol}: HTTP ${answer.status}`)
    } else if (visits.offersOf(answer, visit, note).length === 0) note(rule, `${protocol}: HTTP 402 without a challenge`)
  }
  for (const offer of each) {
    const [name = ''] = Object.keys(offer.present(''))
    await present('malformed-credential', offer, { [name]: MALFORMED[offer.protocol] })
    await present('forged-credential', offer, forged(offer))
  }
  const [one, other] = [each.find(({ protocol }) => protocol === 'x402'), each.find(({ protocol }) => protocol !== 'x402')]
  if (!one || !other) return
  const { status } = await visits.send({ ...what, headers: { ...forged(one), ...forged(other) } })
  if (status !== 400) note('two-credentials', `${other.protocol} and x402 together: HTTP ${status}`)
}

/** A well-formed credential for an invoice that was not paid: its preimage is random. */
const forged = ({ present }: LiveOffer): Record<string, string> => present(randomBytes(32).toString('hex'))
