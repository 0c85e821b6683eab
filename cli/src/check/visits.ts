import type { LiveOffer } from './dialects/offer.ts'
import { checkOffers } from './dialects/offers.ts'
import type { Note } from './findings.ts'
import { type Answer, type Visit, visit } from './visit.ts'

/** The server responded with 429. The findings so far are kept. */
export class RateLimited extends Error {}

/** All visits to one seller. Remembers every invoice, because no two visits may get the same one. */
export class Visits {
  readonly #stop: AbortSignal
  readonly #show: (text: string) => void
  readonly #invoices = new Set<string>()

  constructor(stop: AbortSignal, show: (text: string) => void) {
    this.#stop = stop
    this.#show = show
  }

  async send(what: Visit): Promise<Answer> {
    this.#show(`${what.method} ${what.url.pathname}`)
    const answer = await visit(what, this.#stop)
    if (answer.status === 429) throw new RateLimited()
    return answer
  }

  /** The offers of a 402. Call it once for each 402, because an invoice that was seen before is reported as reused. */
  offersOf(answer: Answer, what: Visit, note: Note): LiveOffer[] {
    const offers = checkOffers(answer, what, note)
    const hashes = new Set(offers.map(({ invoice }) => invoice.paymentHash))
    for (const hash of hashes) {
      if (this.#invoices.has(hash)) note('invoice-reused', 'two visits got the same payment hash')
      this.#invoices.add(hash)
    }
    return offers
  }
}
