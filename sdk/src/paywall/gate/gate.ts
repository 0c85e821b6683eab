import { paymentIdOf, validUntilOf } from '../../../../protocol/src/payment-id.ts'
import { Boltyard } from '../../boltyard.ts'
import { BoltyardError, RateLimitError } from '../../errors.ts'
import type { ExpectedTerms, Protocol, RedeemedPayment, X402Params } from '../../types.ts'
import {
  type Answer,
  allowed,
  badRequest,
  deliveryInProgress,
  MALFORMED,
  OTHER_TERMS,
  paidForOther,
  presentedTooLate,
  priceChanged,
  unavailable,
} from '../answers.ts'
import type { Unbound } from '../binding.ts'
import { type Credential, credentialIn, findCredential, hasOtherFields, invoiceIn } from '../credentials.ts'
import { sha256Hex, sha256HexSync } from '../digest.ts'
import { type EventDetail, type PaywallEvent, tell } from '../events.ts'
import { protocolsOf } from '../offer.ts'
import { checkOptions, isL402Reusable, type PaywallOptions } from '../options.ts'
import { hasProof } from '../proof.ts'
import { constantTermsOf, type Terms, termsOf } from '../terms.ts'
import { adviceFor, type Speaker, warn } from '../trouble.ts'
import { verdictOf } from '../verdict.ts'
import type { Visit } from '../visit.ts'
import { Challenges, type Refused, unboundAnswer } from './challenges.ts'
import { Claims } from './claims.ts'
import { Delivery, type Outcome, receiptOf } from './delivery.ts'
import { openVisits } from './open-visits.ts'
import { untilAborted, within } from './patience.ts'
import { isCustomers, type Presented, Redemptions, refusedId } from './redemptions.ts'
import { VerifiedCredentials } from './verified-credentials.ts'

/**
 * `delivery` is undefined for a free request, and for an OPTIONS request that the shop handles itself. `isPrivate`: free, but not
 * for everyone, so a shared cache must not keep the response.
 */
export type Pass = { pass: true; delivery: Delivery | undefined; isPrivate?: boolean }
export type Decision = Pass | ({ pass: false } & Answer)

/** Concurrent calls to the gateway, which may have to wait for a node. With the client's default, four slow ones would block all others. */
const AT_ONCE = 64
export const PATIENCE_MS = 10_000
const RETRY_AFTER_SECONDS = 5
const HOLD_SECONDS = 120

/** For the payment that `ready` creates, which is not bound to a real request. */
const CHECK: X402Params = {
  resource: { url: 'https://paywall.invalid/' },
  requestHash: '0'.repeat(64),
  requestBindingProfile: 'http:1',
  requestBindingParams: { headers: [] },
}

/**
 * Decides whether a request passes. Any process can handle any request, because no state that matters is kept here: the
 * credential says which payment it belongs to, and the gateway verifies the credential.
 */
export class Gate<R> {
  readonly #options: PaywallOptions<R>
  readonly #client: Boltyard
  readonly #protocols: Protocol[]
  readonly #patienceMs: number
  readonly #isL402Reusable: boolean
  readonly #claims: Claims
  readonly #redemptions: Redemptions
  readonly #challenges: Challenges<R>
  readonly #speaker: Speaker
  readonly #verified = new VerifiedCredentials()

  /** Only the proxy sets `speaker`. */
  constructor(options: PaywallOptions<R>, speaker: Speaker = 'paywall') {
    checkOptions(options)
    this.#options = options
    this.#speaker = speaker
    this.#protocols = protocolsOf(options)
    this.#client = options.client ?? new Boltyard({ maxConcurrency: AT_ONCE })
    this.#patienceMs = options.patienceMs ?? PATIENCE_MS
    this.#isL402Reusable = isL402Reusable(options)
    const holdSeconds = options.holdSeconds ?? HOLD_SECONDS
    this.#claims = new Claims(this.#client, holdSeconds, speaker)
    this.#redemptions = new Redemptions(this.#client, this.#claims, { patienceMs: this.#patienceMs, holdSeconds })
    const notify = (terms: Terms, detail: EventDetail): void => this.#tell(terms, detail)
    this.#challenges = new Challenges(this.#client, this.#patienceMs, options, notify, speaker)
  }

  /**
   * A reusable credential that was validated recently passes synchronously: the most common case where credentials are reusable.
   */
  recall(visit: Visit<R>): Pass | undefined {
    if (!this.#isL402Reusable || !sha256HexSync || visit.method === 'OPTIONS' || hasOtherFields(visit)) return undefined
    const credential = credentialIn(visit.authorization)
    const terms = credential === undefined ? undefined : constantTermsOf(this.#options, this.#protocols, visit)
    return credential === undefined || !terms ? undefined : this.#remembered(visit, terms, sha256HexSync(credential))
  }

  /** Rejects if the customer disconnects, or if a function in the options throws. */
  async decide(visit: Visit<R>): Promise<Decision> {
    let isDelivering = false
    try {
      const decision = await this.#decide(visit)
      isDelivering = decision.pass && decision.delivery?.isWatched === true
      return decision
    } finally {
      if (!isDelivering) this.#challenges.release(visit)
    }
  }

  async #decide(visit: Visit<R>): Promise<Decision> {
    if (visit.method === 'OPTIONS') {
      if (this.#options.options === 'pass') return { pass: true, delivery: undefined }
      return { pass: false, ...allowed(visit.methods) }
    }
    if (await this.#isFree(visit)) return { pass: true, delivery: undefined, isPrivate: typeof this.#options.free === 'function' }
    const terms = await termsOf(this.#options, this.#protocols, visit, visit.request)
    const credential = findCredential(visit, this.#options.requiresAuth === true)
    if (credential && 'unusable' in credential)
      return this.#conflict(terms, undefined, 'bad_request', badRequest(credential.unusable))
    try {
      if (credential === undefined) return await this.#challenge(visit, terms)
      return await this.#present(visit, terms, credential)
    } catch (error) {
      visit.signal?.throwIfAborted()
      return this.#unavailable(terms, credential, error)
    }
  }

  /** Creates a payment, as for a visitor. If that fails, rejects with what the seller has to change. */
  async ready(): Promise<void> {
    const { nodeId, amountSat, description, resource } = this.#options
    const params = {
      nodeId,
      amountSat: typeof amountSat === 'number' ? amountSat : 1,
      description: typeof description === 'string' ? description : 'Paywall check',
      resource: typeof resource === 'string' ? resource : 'paywall check',
    }
    try {
      if (this.#protocols.includes('x402')) await this.#client.payments.create({ ...params, protocol: 'x402', x402: CHECK })
      else await this.#client.payments.create(params)
    } catch (error) {
      throw new Error(`The ${this.#speaker} is not ready. ${adviceFor(error, nodeId, this.#speaker)}`, { cause: error })
    }
  }

  /** Call it before the process exits. Resolves when the gateway knows which deliveries are complete, or is unreachable. */
  settled(): Promise<void> {
    return this.#claims.settled()
  }

  async #isFree({ request }: Visit<R>): Promise<boolean> {
    const { free = false } = this.#options
    // Only `true`: a function that returns another truthy value by mistake must not make everything free.
    return (typeof free === 'function' ? await free(request) : free) === true
  }

  async #challenge(visit: Visit<R>, terms: Terms, refused?: Refused): Promise<Decision> {
    return { pass: false, ...(await this.#challenges.issue(visit, terms, refused)) }
  }

  async #present(visit: Visit<R>, terms: Terms, { protocol, text: credential }: Credential): Promise<Decision> {
    if (protocol === 'x402') return this.#presentX402(visit, terms, credential)
    const isReusable = protocol === 'l402' && this.#isL402Reusable
    const digest = isReusable ? await sha256Hex(credential) : ''
    const remembered = isReusable ? this.#remembered(visit, terms, digest) : undefined
    if (remembered) return remembered
    const id = paymentIdOf(credential)
    if (id === undefined) return this.#challenge(visit, terms, { ...MALFORMED, presented: undefined })
    return this.#judge(visit, terms, { protocol, credential, id, isReusable, digest })
  }

  async #presentX402(visit: Visit<R>, terms: Terms, credential: string): Promise<Decision> {
    const claimed = invoiceIn(credential)
    if ('refusal' in claimed) return this.#challenge(visit, terms, { ...claimed.refusal, presented: undefined })
    const { invoice } = claimed
    const presented: Presented = {
      protocol: 'x402',
      credential,
      id: this.#redemptions.idOf(invoice),
      isReusable: false,
      digest: '',
    }
    if (!terms.protocols.includes('x402')) return this.#judge(visit, terms, presented)
    const bound = await this.#challenges.bind(visit, await hasProof({ protocol: 'x402', text: credential }))
    if ('unbound' in bound) return this.#unbound(terms, bound.unbound)
    return this.#judge(visit, terms, { ...presented, bound: { requestHash: bound.requestHash, invoice } })
  }

  async #judge(visit: Visit<R>, terms: Terms, presented: Presented): Promise<Decision> {
    const { protocol, id } = presented
    if (!terms.protocols.includes(protocol)) return this.#challenge(visit, terms, { ...OTHER_TERMS, presented: id })
    await this.#afterEarlier(id, visit.signal)
    try {
      return visit.method === 'HEAD' ? await this.#validate(visit, terms, presented) : await this.#redeem(visit, terms, presented)
    } catch (error) {
      return this.#refuse(visit, terms, presented, error)
    }
  }

  #remembered(visit: Visit<R>, terms: Terms, digest: string): Pass | undefined {
    // Not for HEAD: `#pass` would report a delivery, and HEAD is not one.
    const payment = visit.method === 'HEAD' ? undefined : this.#verified.find(digest, terms)
    return payment && this.#pass(visit, terms, payment)
  }

  /** A customer who returns right after a response must not be told that the delivery is still in progress. */
  async #afterEarlier(paymentId: string | undefined, left: AbortSignal | undefined): Promise<void> {
    const settling = paymentId === undefined ? undefined : this.#claims.settling(paymentId)
    if (settling) await within(this.#patienceMs, left, (signal) => Promise.race([settling, untilAborted(signal)]))
  }

  async #redeem(visit: Visit<R>, terms: Terms, presented: Presented): Promise<Decision> {
    const { credential, isReusable, digest } = presented
    const requestId = crypto.randomUUID()
    const payment = await this.#redemptions.redeem(presented, { requestId, expect: expectedOf(terms) }, visit)
    openVisits.paid(payment.id)
    if (isReusable) this.#verified.add(digest, terms, payment, validUntilOf(credential) ?? 0)
    const decision = this.#pass(visit, terms, payment, isReusable ? undefined : requestId)
    // The customer disconnected in the meantime, so nothing will be delivered.
    if (visit.signal?.aborted) decision.delivery?.release('the customer left')
    visit.signal?.throwIfAborted()
    return decision
  }

  /** HEAD succeeds if GET would succeed with the same payment, but claims nothing. */
  async #validate(visit: Visit<R>, terms: Terms, presented: Presented): Promise<Decision> {
    const { challenge: _challenge, ...payment } = await this.#redemptions.validate(presented, expectedOf(terms), visit.signal)
    openVisits.paid(payment.id)
    if (!presented.isReusable && payment.redeemedAt !== null)
      await this.#requireUnclaimed(visit, terms, presented, 'HEAD is not a delivery')
    const nothing = { receipt: undefined, releaseOnDisconnect: true }
    return { pass: true, delivery: new Delivery(payment, nothing) }
  }

  /** `requestId` is the id of the claim; a reusable credential claims nothing. */
  #pass(visit: Visit<R>, terms: Terms, payment: RedeemedPayment, requestId?: string): Pass {
    const { id, protocol } = payment
    const { waitUntil } = visit
    const { releaseOnDisconnect = true, onEvent } = this.#options
    const handling = { receipt: receiptOf(payment), releaseOnDisconnect }
    if (requestId === undefined && onEvent === undefined) return { pass: true, delivery: new Delivery(payment, handling) }
    if (requestId !== undefined) this.#claims.begin()
    let stopKeeping = (): void => undefined
    const settle = (outcome: Outcome): void => {
      stopKeeping()
      this.#challenges.release(visit)
      if (outcome.delivered) {
        if (requestId !== undefined) this.#claims.confirm({ id, requestId }, waitUntil)
        this.#tell(terms, { type: 'delivered', paymentId: id, protocol })
      } else {
        if (requestId !== undefined) this.#claims.fail({ id, requestId }, outcome.reason, waitUntil)
        this.#tell(terms, { type: 'undelivered', paymentId: id, protocol, reason: outcome.reason })
      }
    }
    const delivery = new Delivery(payment, handling, settle)
    if (requestId !== undefined) stopKeeping = this.#claims.keep({ id, requestId }, () => delivery.mustBeKept, waitUntil)
    return { pass: true, delivery }
  }

  /** Issues a new challenge only if the customer cannot lose money, because many clients pay every challenge they see. */
  async #refuse(visit: Visit<R>, terms: Terms, presented: Presented, error: unknown): Promise<Decision> {
    const { isReusable } = presented
    const id = refusedId(presented, error)
    const verdict = verdictOf(error)
    if (verdict?.is === 'in_progress')
      return this.#conflict(terms, id, 'delivery_in_progress', deliveryInProgress(RETRY_AFTER_SECONDS))
    if (verdict?.is === 'too_late') return this.#conflict(terms, id, 'payment_expired', presentedTooLate(id))
    if (verdict?.is === 'other_request') return this.#conflict(terms, id, 'other_request', paidForOther(id))
    if (verdict?.is === 'refused') return this.#challenge(visit, terms, { ...verdict.refusal, presented: id })
    if (verdict?.is !== 'too_little') throw error
    // The payment was already used, and does not cover the new price.
    if (verdict.isClaimed && isReusable) return this.#challenge(visit, terms, { ...OTHER_TERMS, presented: id })
    if (verdict.isClaimed) return this.#refuseClaimed(visit, terms, presented)
    // x402 accepts a payment for a limited time. Once it is validated, it can be used whenever the price is lower again.
    if (presented.bound) await this.#redemptions.validate(presented, withoutPrice(terms), visit.signal)
    return this.#conflict(terms, id, 'price_changed', priceChanged(terms, id))
  }

  /** The payment is too low for the new price and already claimed: used up, or a delivery is in progress. */
  async #refuseClaimed(visit: Visit<R>, terms: Terms, presented: Presented): Promise<Decision> {
    try {
      const id = await this.#requireUnclaimed(visit, terms, presented, 'the price has risen')
      return this.#conflict(terms, id, 'price_changed', priceChanged(terms, id))
    } catch (error) {
      return this.#refuse(visit, terms, presented, error)
    }
  }

  /**
   * Finds out whether a claimed payment is used up or still being delivered, by redeeming it at any price. If the delivery that
   * had the claim has failed meanwhile, the gateway grants a new claim, which is then released.
   */
  async #requireUnclaimed(visit: Visit<R>, terms: Terms, presented: Presented, reason: string): Promise<string> {
    const requestId = crypto.randomUUID()
    const { id } = await this.#redemptions.redeem(presented, { requestId, expect: withoutPrice(terms) }, visit)
    this.#claims.release({ id, requestId }, reason)
    return id
  }

  /** No challenge: the customer has paid, or may have. */
  #conflict(terms: Terms, presented: string | undefined, code: string, answer: Answer): Decision {
    this.#tell(terms, { type: 'refused', code, presented, paymentIds: [] })
    return { pass: false, ...answer }
  }

  #unbound(terms: Terms, why: Unbound): Decision {
    return this.#conflict(terms, undefined, why, unboundAnswer(why, this.#options, true, this.#speaker))
  }

  #unavailable(terms: Terms, credential: Credential | undefined, error: unknown): Decision {
    const { code, message, requestId } =
      error instanceof BoltyardError ? error : { code: 'unexpected', message: String(error), requestId: undefined }
    const presented = credential === undefined || credential.protocol === 'x402' ? undefined : paymentIdOf(credential.text)
    this.#tell(terms, { type: 'unavailable', code, message, presented, requestId })
    const speaker = this.#speaker
    if (!isCustomers(error)) warn(causeOf(error, terms), adviceFor(error, terms.nodeId, speaker), speaker)
    const seconds = (error instanceof RateLimitError && error.retryAfterSeconds) || RETRY_AFTER_SECONDS
    return { pass: false, ...unavailable(credential !== undefined, seconds) }
  }

  #tell({ amountSat, resource, description }: Terms, detail: EventDetail): void {
    tell(this.#options.onEvent, { amountSat, resource, description, ...detail } as PaywallEvent)
  }
}

/** Includes the message of a 400, so that a wrong description on one route does not suppress the warning for another. */
function causeOf(error: unknown, { nodeId }: Terms): string {
  if (!(error instanceof BoltyardError)) return `unexpected ${nodeId}`
  return `${error.code} ${nodeId} ${error.status === 400 ? error.message : ''}`
}

const expectedOf = ({ nodeId, resource, minAmountSat }: Terms): ExpectedTerms => ({ nodeId, resource, minAmountSat })
const withoutPrice = ({ nodeId, resource }: Terms): ExpectedTerms => ({ nodeId, resource })
