import type { Boltyard } from '../../boltyard.ts'
import type { CreatedPayment, Protocol, X402Params } from '../../types.ts'
import { addressGroup } from '../adapters/client-address.ts'
import { linkOf } from '../advertised.ts'
import {
  type Answer,
  badRequest,
  bodyTooLarge,
  bodyTooSlow,
  paymentRequired,
  type Refusal,
  tooManyVisits,
  unavailable,
} from '../answers.ts'
import type { Bound, Unbound } from '../binding.ts'
import type { EventDetail } from '../events.ts'
import { negotiated } from '../offer.ts'
import { boundHeaders, MAX_BODY_BYTES, type PaywallOptions } from '../options.ts'
import { asPage, wantsPage } from '../page.ts'
import type { Terms } from '../terms.ts'
import { type Speaker, warn } from '../trouble.ts'
import type { Visit } from '../visit.ts'
import { BodyMemory } from './body-memory.ts'
import { openVisits } from './open-visits.ts'
import { within } from './patience.ts'

const MOST_OPEN_VISITS = 100
const RETRY_AFTER_SECONDS = 5

/** Why a presented credential was refused, and its payment id. */
export type Refused = Refusal & { presented: string | undefined }

/** Issues challenges, and limits how many unpaid ones a client address can have. */
export class Challenges<R> {
  readonly #client: Boltyard
  readonly #patienceMs: number
  readonly #options: PaywallOptions<R>
  readonly #boundHeaders: readonly string[]
  readonly #tell: (terms: Terms, detail: EventDetail) => void
  readonly #speaker: Speaker
  /** Each visit's binding, so that its request is bound only once. */
  readonly #bound = new WeakMap<Visit<R>, { bound: Promise<Bound>; memory: BodyMemory }>()

  constructor(
    client: Boltyard,
    patienceMs: number,
    options: PaywallOptions<R>,
    tell: (terms: Terms, detail: EventDetail) => void,
    speaker: Speaker,
  ) {
    this.#client = client
    this.#patienceMs = patienceMs
    this.#options = options
    this.#boundHeaders = boundHeaders(options.bindHeaders)
    this.#tell = tell
    this.#speaker = speaker
  }

  async issue(visit: Visit<R>, terms: Terms, refused?: Refused): Promise<Answer> {
    const { clientAddress, maxOpenVisits = MOST_OPEN_VISITS, requiresAuth } = this.#options
    const address = clientAddress ? clientAddress(visit.request) : visit.clientAddress
    const isLimited = address && maxOpenVisits > 0
    const place = isLimited ? openVisits.enter(addressGroup(address), maxOpenVisits) : undefined
    if (place && 'retryAfterSeconds' in place) return this.#limited(visit, terms, address ?? '', place.retryAfterSeconds)
    let payments: CreatedPayment[] | { unbound: Unbound }
    try {
      payments = await this.#create(visit, terms)
    } catch (error) {
      place?.leave()
      throw error
    }
    if ('unbound' in payments) {
      place?.leave()
      this.#tell(terms, { type: 'refused', code: payments.unbound, presented: refused?.presented, paymentIds: [] })
      return unboundAnswer(payments.unbound, this.#options, refused !== undefined, this.#speaker)
    }
    const paymentIds = payments.map(({ id }) => id)
    place?.fill(paymentIds)
    if (refused) this.#tell(terms, { type: 'refused', code: refused.code, presented: refused.presented, paymentIds })
    else this.#tell(terms, { type: 'challenged', paymentIds })
    const answer = paymentRequired(terms, payments, refused, {
      howToPay: visit.howToPay,
      requiresAuth,
      link: linkOf(this.#options),
    })
    const { accept } = visit
    const isPage = this.#options.html && visit.method === 'GET' && refused === undefined && wantsPage(accept)
    return isPage && accept ? asPage(answer, terms, payments, { accept, requiresAuth: requiresAuth === true }) : answer
  }

  /** Binds an x402 payment to the visit's request. `isProven`: the request has a payment with a correct preimage. */
  bind(visit: Visit<R>, isProven: boolean): Promise<Bound> {
    const { publicUrl, maxBodyBytes = MAX_BODY_BYTES } = this.#options
    const known = this.#bound.get(visit)
    if (known) return known.bound
    const memory = new BodyMemory(maxBodyBytes, isProven)
    // Needed even after a delivery has begun: once the customer has disconnected, the handler may never end the response.
    visit.signal?.addEventListener('abort', () => memory.release(), { once: true })
    const url = typeof publicUrl === 'function' ? { whole: publicUrl(visit.request) } : publicUrl && { base: publicUrl }
    const limits = { maxBodyBytes, bodyTimeoutMs: this.#patienceMs, signal: visit.signal, memory }
    const options = { publicUrl: url || undefined, bindHeaders: this.#boundHeaders, ...limits }
    const bound = visit.bind?.(options) ?? Promise.resolve<Bound>({ unbound: 'no_url' })
    this.#bound.set(visit, { bound, memory })
    return bound
  }

  /** Frees the memory of the visit's body. */
  release(visit: Visit<R>): void {
    this.#bound.get(visit)?.memory.release()
  }

  /** A payment has one protocol, so several offers need several payments. */
  async #create(visit: Visit<R>, terms: Terms): Promise<CreatedPayment[] | { unbound: Unbound }> {
    const { nodeId, amountSat, description, resource } = terms
    const wanted = negotiated(terms.protocols, visit.acceptPayment)
    const bound = wanted.includes('x402') ? await this.bind(visit, false) : undefined
    const [x402, unbound] = bound && 'unbound' in bound ? [undefined, bound.unbound] : [bound, undefined]
    if (unbound) warnSeller(unbound, this.#speaker)
    // The connection will be closed, and a payment for an incomplete request would buy nothing.
    if (unbound === 'too_slow') return { unbound }
    // Customers who cannot pay by x402 can still use the other protocols.
    const protocols = wanted.filter((protocol) => protocol !== 'x402' || x402)
    if (unbound && protocols.length === 0) return { unbound }
    const params = { nodeId, amountSat, description, resource, ...this.#paramsOf(protocols, x402) }
    return within(this.#patienceMs, visit.signal, async (signal) => {
      const options = { signal, totalTimeoutMs: this.#patienceMs, idempotencyKey: null }
      const [protocol, ...more] = protocols
      if (more.length > 0) return this.#client.payments.createBatch({ ...params, protocols }, options)
      return [await this.#client.payments.create({ ...params, ...(protocol ? { protocol } : {}) }, options)]
    })
  }

  #paramsOf(protocols: readonly Protocol[], x402: X402Params | undefined) {
    const mpp = this.#options.requiresAuth && protocols.includes('mpp') ? { header: 'Payment-Authorization' as const } : undefined
    return { ...(mpp ? { mpp } : {}), ...(x402 ? { x402 } : {}) }
  }

  #limited({ trustAdvice }: Visit<R>, terms: Terms, clientAddress: string, retryAfterSeconds: number): Answer {
    this.#tell(terms, { type: 'limited', clientAddress })
    const advice = trustAdvice ?? 'configure your framework to trust it, or set `clientAddress`'
    warn('limited', `Too many unpaid visits from ${clientAddress}. If this is your proxy, ${advice}.`, this.#speaker)
    return tooManyVisits(retryAfterSeconds)
  }
}

/** The response if x402 cannot be used for this request, and there is no other offer or the customer has already paid by x402. */
export function unboundAnswer<R>(
  why: Unbound,
  { maxBodyBytes = MAX_BODY_BYTES }: PaywallOptions<R>,
  hasPaid: boolean,
  speaker: Speaker,
): Answer {
  warnSeller(why, speaker)
  if (why === 'too_large') return bodyTooLarge(maxBodyBytes)
  if (why === 'too_slow') return bodyTooSlow(hasPaid, RETRY_AFTER_SECONDS)
  if (why === 'unusable')
    return badRequest(
      'A payment cannot be bound to this request: its URL or arguments are invalid or too long, or a header is not ASCII text.',
    )
  return unavailable(hasPaid, RETRY_AFTER_SECONDS)
}

/** What the seller can do about it, if anything. */
function warnSeller(why: Unbound, speaker: Speaker): void {
  if (why === 'consumed')
    warn(
      'x402 body',
      'x402 needs the bytes of the body, but it was already parsed. Put the paywall before the parser, or let the parser keep them in `request.rawBody`.',
      speaker,
    )
  if (why === 'busy')
    warn(
      'x402 memory',
      'x402: the memory for request bodies is full, so x402 is not available for new requests with larger bodies right now. If this is normal traffic, set a smaller `maxBodyBytes` or run more processes.',
      speaker,
    )
  if (why === 'no_url')
    warn(
      'x402 url',
      'x402 needs the address that clients use, which is unknown. Set `publicUrl`, or `server` for an MCP tool.',
      speaker,
    )
}
