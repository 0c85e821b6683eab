import { paymentIdOf, validUntilOf } from '../../../../protocol/src/payment-id.ts'
import { Boltyard } from '../../boltyard.ts'
import { BoltyardError, CredentialError, RateLimitError } from '../../errors.ts'
import type { ExpectedTerms, Protocol, RedeemedPayment } from '../../types.ts'
import { type Answer, allowed, deliveryInProgress, MALFORMED, OTHER_TERMS, priceChanged, unavailable } from '../answers.ts'
import { credentialIn } from '../authorization.ts'
import { sha256Hex, sha256HexSync } from '../digest.ts'
import { type EventDetail, type PaywallEvent, tell } from '../events.ts'
import { protocolsOf } from '../offer.ts'
import { checkOptions, isL402Reusable, type PaywallOptions } from '../options.ts'
import { constantTermsOf, type Terms, termsOf } from '../terms.ts'
import { adviceFor, warn } from '../trouble.ts'
import { verdictOf } from '../verdict.ts'
import type { Visit } from '../visit.ts'
import { Challenges, type Refused } from './challenges.ts'
import { Claims } from './claims.ts'
import { Delivery, type Outcome } from './delivery.ts'
import { openVisits } from './open-visits.ts'
import { isOutcomeUnknown, patiently, untilAborted, within } from './patience.ts'
import { VerifiedCredentials } from './verified-credentials.ts'

/** `delivery` is undefined for an OPTIONS request that the shop handles itself. */
export type Pass = { pass: true; delivery: Delivery | undefined }
export type Decision = Pass | ({ pass: false } & Answer)

type Presented = { id: string; credential: string; isReusable: boolean; digest: string }

/** Concurrent calls to the gateway, which may have to wait for a node. With the client's default, four slow ones would block all others. */
const AT_ONCE = 64
const PATIENCE_MS = 10_000
const ATTEMPT_MS = 5_000
const RETRY_AFTER_SECONDS = 5
const HOLD_SECONDS = 120

/**
 * Decides whether a request passes. Keeps no state that matters: the credential contains the payment's id, and the gateway verifies it. So
 * any process can handle any request.
 */
export class Gate<R> {
  readonly #options: PaywallOptions<R>
  readonly #client: Boltyard
  readonly #protocols: Protocol[]
  readonly #patienceMs: number
  readonly #holdSeconds: number
  readonly #isL402Reusable: boolean
  readonly #claims: Claims
  readonly #challenges: Challenges<R>
  readonly #verified = new VerifiedCredentials()

  constructor(options: PaywallOptions<R>) {
    checkOptions(options)
    this.#options = options
    this.#protocols = protocolsOf(options.protocol)
    this.#client = options.client ?? new Boltyard({ maxConcurrency: AT_ONCE })
    this.#patienceMs = options.patienceMs ?? PATIENCE_MS
    this.#holdSeconds = options.holdSeconds ?? HOLD_SECONDS
    this.#isL402Reusable = isL402Reusable(options)
    this.#claims = new Claims(this.#client, this.#holdSeconds)
    this.#challenges = new Challenges(this.#client, this.#patienceMs, options, (terms, detail) => this.#tell(terms, detail))
  }

  /** A reusable credential that was validated recently passes synchronously: the most common case in a shop that has them. */
  recall(visit: Visit<R>): Pass | undefined {
    if (!this.#isL402Reusable || !sha256HexSync || visit.method === 'OPTIONS') return undefined
    const credential = credentialIn(visit.authorization)
    const terms = credential === undefined ? undefined : constantTermsOf(this.#options, this.#protocols, visit)
    return credential === undefined || !terms ? undefined : this.#remembered(visit, terms, sha256HexSync(credential))
  }

  /** Rejects if the customer disconnects, or if a function in the options throws. */
  async decide(visit: Visit<R>): Promise<Decision> {
    if (visit.method === 'OPTIONS') {
      if (this.#options.options === 'pass') return { pass: true, delivery: undefined }
      return { pass: false, ...allowed(visit.methods) }
    }
    const terms = await termsOf(this.#options, this.#protocols, visit, visit.request)
    const credential = credentialIn(visit.authorization)
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
    try {
      await this.#client.payments.create({
        nodeId,
        amountSat: typeof amountSat === 'number' ? amountSat : 1,
        description: typeof description === 'string' ? description : 'Paywall check',
        resource: typeof resource === 'string' ? resource : 'paywall check',
      })
    } catch (error) {
      throw new Error(`The paywall is not ready. ${adviceFor(error, nodeId)}`, { cause: error })
    }
  }

  async #challenge(visit: Visit<R>, terms: Terms, refused?: Refused): Promise<Decision> {
    return { pass: false, ...(await this.#challenges.issue(visit, terms, refused)) }
  }

  async #present(visit: Visit<R>, terms: Terms, credential: string): Promise<Decision> {
    const protocol = /^Payment /i.test(credential) ? 'mpp' : 'l402'
    const isReusable = protocol === 'l402' && this.#isL402Reusable
    const digest = isReusable ? await sha256Hex(credential) : ''
    const remembered = isReusable ? this.#remembered(visit, terms, digest) : undefined
    if (remembered) return remembered
    const id = paymentIdOf(credential)
    if (id === undefined) return this.#challenge(visit, terms, { ...MALFORMED, presented: undefined })
    if (!terms.protocols.includes(protocol)) return this.#challenge(visit, terms, { ...OTHER_TERMS, presented: id })
    await this.#afterEarlier(id, visit.signal)
    const presented = { id, credential, isReusable, digest }
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

  /** A customer who returns right after a response must not be told that it is still in progress. */
  async #afterEarlier(paymentId: string, left: AbortSignal | undefined): Promise<void> {
    const settling = this.#claims.settling(paymentId)
    if (settling) await within(this.#patienceMs, left, (signal) => Promise.race([settling, untilAborted(signal)]))
  }

  async #redeem(visit: Visit<R>, terms: Terms, presented: Presented): Promise<Decision> {
    const { id, credential, isReusable, digest } = presented
    const requestId = crypto.randomUUID()
    const payment = await this.#ask(visit, { id, requestId, isReusable, credential }, expectedOf(terms))
    openVisits.paid(id)
    if (isReusable) this.#verified.add(digest, terms, payment, validUntilOf(credential) ?? 0)
    const decision = this.#pass(visit, terms, payment, isReusable ? undefined : requestId)
    // The customer disconnected in the meantime, so nothing will be delivered.
    if (visit.signal?.aborted) decision.delivery?.release('the customer left')
    visit.signal?.throwIfAborted()
    return decision
  }

  async #ask(
    { signal: left }: Visit<R>,
    { id, requestId, isReusable, credential }: { id: string; requestId: string; isReusable: boolean; credential: string },
    expect: ExpectedTerms,
  ): Promise<RedeemedPayment> {
    const redemption = { credential, requestId, singleUse: !isReusable, expect, holdSeconds: this.#holdSeconds }
    try {
      return await patiently(this.#patienceMs, left, (signal) =>
        this.#client.payments.redeem(id, redemption, { signal, timeoutMs: ATTEMPT_MS, totalTimeoutMs: this.#patienceMs }),
      )
    } catch (error) {
      // The claim may have succeeded although the response was lost.
      if (!isReusable && isOutcomeUnknown(error)) this.#claims.release({ id, requestId }, 'the response of the gateway was lost')
      throw error
    }
  }

  /** HEAD succeeds if GET would succeed with the same payment, but claims nothing. */
  async #validate(visit: Visit<R>, terms: Terms, presented: Presented): Promise<Decision> {
    const { id, credential, isReusable } = presented
    const payment = await patiently(this.#patienceMs, visit.signal, async (signal) => {
      const options = { signal, timeoutMs: ATTEMPT_MS }
      const paid = await this.#client.payments.validate(id, credential, { ...options, expect: expectedOf(terms) })
      const { challenge: _challenge, ...shown } = await this.#client.payments.get(id, options)
      return { ...shown, ...paid }
    })
    openVisits.paid(id)
    if (!isReusable && payment.redeemedAt !== null)
      await this.#requireUnclaimed(visit, terms, presented, 'HEAD is not a delivery')
    const nothing = { receipt: undefined, releaseOnDisconnect: true }
    return { pass: true, delivery: new Delivery(payment, nothing) }
  }

  /** `requestId` is the id of the claim; a reusable credential claims nothing. */
  #pass({ waitUntil }: Visit<R>, terms: Terms, payment: RedeemedPayment, requestId?: string): Pass {
    const { id, protocol, receipt } = payment
    if (requestId !== undefined) this.#claims.begin()
    let stopKeeping = (): void => undefined
    const settle = (outcome: Outcome): void => {
      stopKeeping()
      if (outcome.delivered) {
        if (requestId !== undefined) this.#claims.confirm({ id, requestId }, waitUntil)
        this.#tell(terms, { type: 'delivered', paymentId: id, protocol })
      } else {
        if (requestId !== undefined) this.#claims.fail({ id, requestId }, outcome.reason, waitUntil)
        this.#tell(terms, { type: 'undelivered', paymentId: id, protocol, reason: outcome.reason })
      }
    }
    const { releaseOnDisconnect = true, onEvent } = this.#options
    const isWatched = requestId !== undefined || onEvent !== undefined
    const delivery = new Delivery(payment, { receipt, releaseOnDisconnect }, isWatched ? settle : undefined)
    if (requestId !== undefined) stopKeeping = this.#claims.keep({ id, requestId }, () => delivery.hasBegun(), waitUntil)
    return { pass: true, delivery }
  }

  /** Issues a new challenge only if the customer cannot lose money, because many clients pay every challenge they see. */
  async #refuse(visit: Visit<R>, terms: Terms, presented: Presented, error: unknown): Promise<Decision> {
    const { id, isReusable } = presented
    const verdict = verdictOf(error)
    if (verdict?.is === 'in_progress') return this.#inProgress(terms, id)
    if (verdict?.is === 'refused') return this.#challenge(visit, terms, { ...verdict.refusal, presented: id })
    if (verdict?.is !== 'too_little') throw error
    // The payment was already used, and does not cover the new price.
    if (verdict.isClaimed && isReusable) return this.#challenge(visit, terms, { ...OTHER_TERMS, presented: id })
    if (verdict.isClaimed) return this.#refuseClaimed(visit, terms, presented)
    this.#tell(terms, { type: 'refused', code: 'price_changed', presented: id, paymentIds: [] })
    return { pass: false, ...priceChanged(terms, id) }
  }

  /** The payment is too low for the new price and already claimed: used up, or a delivery is in progress. */
  async #refuseClaimed(visit: Visit<R>, terms: Terms, presented: Presented): Promise<Decision> {
    try {
      await this.#requireUnclaimed(visit, terms, presented, 'the price has risen')
    } catch (error) {
      return this.#refuse(visit, terms, presented, error)
    }
    this.#tell(terms, { type: 'refused', code: 'price_changed', presented: presented.id, paymentIds: [] })
    return { pass: false, ...priceChanged(terms, presented.id) }
  }

  /**
   * Finds out whether a claimed payment is used up or in progress by redeeming it at any price. If the other delivery has failed meanwhile,
   * the gateway grants the claim, which is then released.
   */
  async #requireUnclaimed(visit: Visit<R>, { nodeId, resource }: Terms, presented: Presented, reason: string): Promise<void> {
    const requestId = crypto.randomUUID()
    await this.#ask(visit, { ...presented, requestId }, { nodeId, resource })
    this.#claims.release({ id: presented.id, requestId }, reason)
  }

  /** Asks the customer to retry soon: the whole hold would be too long if the first attempt fails within a second. */
  #inProgress(terms: Terms, id: string): Decision {
    this.#tell(terms, { type: 'refused', code: 'delivery_in_progress', presented: id, paymentIds: [] })
    return { pass: false, ...deliveryInProgress(RETRY_AFTER_SECONDS) }
  }

  #unavailable(terms: Terms, credential: string | undefined, error: unknown): Decision {
    const { code, message, requestId } =
      error instanceof BoltyardError ? error : { code: 'unexpected', message: String(error), requestId: undefined }
    const presented = credential === undefined ? undefined : paymentIdOf(credential)
    this.#tell(terms, { type: 'unavailable', code, message, presented, requestId })
    // An unsettled credential is not the seller's problem, and anyone can send one.
    if (!(error instanceof CredentialError)) warn(causeOf(error, terms), adviceFor(error, terms.nodeId))
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
