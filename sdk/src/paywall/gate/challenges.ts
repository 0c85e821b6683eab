import type { Boltyard } from '../../boltyard.ts'
import { addressGroup } from '../adapters/client-address.ts'
import { type Answer, paymentRequired, type Refusal, tooManyVisits } from '../answers.ts'
import type { EventDetail } from '../events.ts'
import type { PaywallOptions } from '../options.ts'
import type { Terms } from '../terms.ts'
import { warn } from '../trouble.ts'
import type { Visit } from '../visit.ts'
import { openVisits } from './open-visits.ts'
import { within } from './patience.ts'

const MOST_OPEN_VISITS = 100

/** Why a presented credential was refused, and its payment id. */
export type Refused = Refusal & { presented: string | undefined }

/** Issues challenges, and limits how many unpaid ones a client address can have. */
export class Challenges<R> {
  readonly #client: Boltyard
  readonly #patienceMs: number
  readonly #addressOf: PaywallOptions<R>['clientAddress']
  readonly #mostOpenVisits: number
  readonly #tell: (terms: Terms, detail: EventDetail) => void

  constructor(
    client: Boltyard,
    patienceMs: number,
    { clientAddress, maxOpenVisits = MOST_OPEN_VISITS }: PaywallOptions<R>,
    tell: (terms: Terms, detail: EventDetail) => void,
  ) {
    this.#client = client
    this.#patienceMs = patienceMs
    this.#addressOf = clientAddress
    this.#mostOpenVisits = maxOpenVisits
    this.#tell = tell
  }

  async issue(visit: Visit<R>, terms: Terms, refused?: Refused): Promise<Answer> {
    const address = this.#addressOf ? this.#addressOf(visit.request) : visit.clientAddress
    const isLimited = address && this.#mostOpenVisits > 0
    const place = isLimited ? openVisits.enter(addressGroup(address), this.#mostOpenVisits) : undefined
    if (place && 'retryAfterSeconds' in place) return this.#limited(terms, address ?? '', place.retryAfterSeconds)
    try {
      const { protocols, nodeId, amountSat, description, resource } = terms
      // A payment has one protocol, so two offers need two payments.
      const payments = await within(this.#patienceMs, visit.signal, (signal) =>
        Promise.all(
          protocols.map((protocol) =>
            this.#client.payments.create(
              { nodeId, amountSat, description, resource, protocol },
              { signal, totalTimeoutMs: this.#patienceMs, idempotencyKey: null },
            ),
          ),
        ),
      )
      const paymentIds = payments.map(({ id }) => id)
      place?.fill(paymentIds)
      if (refused) this.#tell(terms, { type: 'refused', code: refused.code, presented: refused.presented, paymentIds })
      else this.#tell(terms, { type: 'challenged', paymentIds })
      return paymentRequired(terms, payments, refused, visit.howToPay)
    } catch (error) {
      place?.leave()
      throw error
    }
  }

  #limited(terms: Terms, clientAddress: string, retryAfterSeconds: number): Answer {
    this.#tell(terms, { type: 'limited', clientAddress })
    const advice = 'If this is your proxy, configure your framework to trust it, or set `clientAddress`.'
    warn('limited', `Too many unpaid visits from ${clientAddress}. ${advice}`)
    return tooManyVisits(retryAfterSeconds)
  }
}
