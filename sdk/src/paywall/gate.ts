import { Boltyard } from '../boltyard.ts'
import { paymentIdOf } from '../credential.ts'
import { BoltyardError, ConflictError, CredentialError, ExpiredError, NotFoundError, RateLimitError } from '../errors.ts'
import type { Protocol, RedeemedPayment } from '../types.ts'
import { type Answer, MALFORMED, OTHER_TERMS, paymentRequired, type Refusal, refusalOf, unavailable } from './answers.ts'
import { credentialIn } from './authorization.ts'
import { type EventHook, type PaywallEvent, tell } from './events.ts'
import { patiently, within } from './patience.ts'
import { Recent } from './recent.ts'
import { isFor, type Offer, protocolsOf, shortened, type Terms, type Wanted } from './terms.ts'

/** The same for every request, or told by the request. */
export type PerRequest<R, V> = V | ((request: R) => V | Promise<V>)

export type PaywallOptions<R> = {
  /** One of its own unless given, with the key from `SERVICE_API_KEY`. It needs `gateway:write` and nothing else. */
  client?: Boltyard | undefined
  /** The node that is paid. */
  nodeId: string
  amountSat: PerRequest<R, number>
  /** What is sold: customers see it, and a credential opens only what has the same one. `<METHOD> <route pattern>` unless given. */
  description?: PerRequest<R, string> | undefined
  /** `mpp` unless given. */
  protocol?: Offer | undefined
  /** L402: one delivery for each payment, as MPP always has it. Otherwise a credential is good until it lapses. */
  singleUse?: boolean | undefined
  onEvent?: EventHook | undefined
  /** For how long to ask again when it cannot be told whether a credential was paid; 10 s unless given. */
  patienceMs?: number | undefined
}

/** A request, whatever framework it came through. */
export type Visit<R> = {
  method: string
  /** The pattern that the router matched, or the path where there is none. */
  route: string
  authorization: string | null | undefined
  /** Aborted when the customer leaves. */
  signal?: AbortSignal | undefined
  /** What the functions of the options are given. */
  request: R
}

export type Pass = {
  pass: true
  headers: { 'Cache-Control': 'private'; 'Payment-Receipt'?: string }
  payment: RedeemedPayment
  /** To be called when the delivery failed: then whoever brings the credential again gets another try. */
  undelivered: () => void
}
export type Decision = Pass | ({ pass: false } & Answer)

/** Paywalls wait for other people's nodes; behind the usual four at once, four slow payments would hold up every quick one. */
const AT_ONCE = 64
const PATIENCE_MS = 10_000
const ATTEMPT_MS = 5_000
const RETRY_AFTER_SECONDS = 5

/** Decides whether a request passes. It keeps no state: the payment's id is in the credential, and the gateway says who is served. */
export class Gate<R> {
  readonly #options: PaywallOptions<R>
  readonly #client: Boltyard
  readonly #protocols: Protocol[]
  readonly #patienceMs: number
  /** Saves asking what a payment was for, most of the time. */
  readonly #terms = new Recent<Terms>(10_000)
  /** Under which request id a payment may have been claimed for a delivery that did not happen. */
  readonly #undelivered = new Recent<string>(1_000)

  constructor(options: PaywallOptions<R>) {
    if (typeof options.nodeId !== 'string' || options.nodeId === '')
      throw new TypeError('`nodeId` is missing: which node is paid?')
    if (typeof options.amountSat !== 'function') checkAmount(options.amountSat)
    this.#options = options
    this.#protocols = protocolsOf(options.protocol)
    this.#client = options.client ?? new Boltyard({ maxConcurrency: AT_ONCE })
    this.#patienceMs = options.patienceMs ?? PATIENCE_MS
  }

  /** Rejects when the customer has left, and with whatever the functions of the options throw. */
  async decide(visit: Visit<R>): Promise<Decision> {
    const wanted = await this.#wanted(visit)
    const credential = credentialIn(visit.authorization)
    try {
      if (credential === undefined) return await this.#challenge(visit, wanted)
      const outcome = await this.#redeem(visit, wanted, credential)
      return 'pass' in outcome ? outcome : await this.#challenge(visit, wanted, outcome, credential)
    } catch (error) {
      visit.signal?.throwIfAborted()
      return this.#unavailable(wanted, credential, error)
    }
  }

  async #wanted({ method, route, request }: Visit<R>): Promise<Wanted> {
    const { nodeId, amountSat, description } = this.#options
    const price = typeof amountSat === 'function' ? await amountSat(request) : amountSat
    // A price that came out as 0 or NaN must not become a gift.
    checkAmount(price)
    // Whoever asks for the head of a thing buys the same thing.
    const usual = `${method === 'HEAD' ? 'GET' : method} ${route}`
    const text = typeof description === 'function' ? await description(request) : (description ?? (await shortened(usual)))
    return { nodeId, amountSat: price, description: text, protocols: this.#protocols }
  }

  async #challenge({ signal }: Visit<R>, wanted: Wanted, refusal?: Refusal, credential?: string): Promise<Decision> {
    const { protocols, ...terms } = wanted
    // One payment has one protocol, so two offers are two payments.
    const payments = await within(this.#patienceMs, signal, (bounded) =>
      Promise.all(protocols.map((protocol) => this.#client.payments.create({ ...terms, protocol }, { signal: bounded }))),
    )
    for (const { id, protocol } of payments) this.#terms.set(id, { ...terms, protocol })
    const paymentIds = payments.map(({ id }) => id)
    if (refusal) this.#tell(wanted, { type: 'refused', code: refusal.code, presented: presentedIn(credential), paymentIds })
    else this.#tell(wanted, { type: 'challenged', paymentIds })
    return { pass: false, ...paymentRequired(wanted, payments, refusal) }
  }

  async #redeem({ signal }: Visit<R>, wanted: Wanted, credential: string): Promise<Pass | Refusal> {
    const id = paymentIdOf(credential)
    if (id === undefined) return MALFORMED
    const { singleUse = false } = this.#options
    let left: string | undefined
    let requestId: string | undefined
    try {
      return await patiently(this.#patienceMs, signal, async (bounded) => {
        const options = { signal: bounded, timeoutMs: ATTEMPT_MS }
        // Looked at before it is redeemed: redeeming is what uses it up, and somebody at the wrong door should keep what they paid for.
        if (!isFor(await this.#termsOf(id, options), wanted)) return OTHER_TERMS
        // Taken, so that of two at once only one comes in under it.
        left ??= this.#undelivered.take(id)
        requestId ??= left ?? crypto.randomUUID()
        const payment = await this.#client.payments.redeem(id, { credential, requestId, singleUse }, options)
        // Nobody is there any more to deliver to.
        signal?.throwIfAborted()
        return isFor(payment, wanted) ? this.#pass(wanted, payment, requestId) : OTHER_TERMS
      })
    } catch (error) {
      const refusal = refusalFor(error)
      // It may have been claimed, and the answer lost. Told 409 the next time, the customer would pay a second time for the first delivery.
      const unfinished = refusal ? left : requestId
      if (unfinished !== undefined) this.#undelivered.set(id, unfinished)
      if (refusal) return refusal
      throw error
    }
  }

  async #termsOf(id: string, options: { signal: AbortSignal; timeoutMs: number }): Promise<Terms> {
    const known = this.#terms.get(id)
    if (known) return known
    const { nodeId, amountSat, description, protocol } = await this.#client.payments.get(id, options)
    const terms = { nodeId, amountSat, description, protocol }
    this.#terms.set(id, terms)
    return terms
  }

  #pass(wanted: Wanted, payment: RedeemedPayment, requestId: string): Pass {
    const { id, protocol, receipt } = payment
    this.#tell(wanted, { type: 'delivered', paymentId: id, protocol })
    return {
      pass: true,
      headers: { 'Cache-Control': 'private', ...(receipt === undefined ? {} : { 'Payment-Receipt': receipt }) },
      payment,
      undelivered: () => this.#undelivered.set(id, requestId),
    }
  }

  #unavailable(wanted: Wanted, credential: string | undefined, error: unknown): Decision {
    const { code, message, requestId } =
      error instanceof BoltyardError ? error : { code: 'unexpected', message: String(error), requestId: undefined }
    this.#tell(wanted, { type: 'unavailable', code, message, presented: presentedIn(credential), requestId })
    const seconds = (error instanceof RateLimitError && error.retryAfterSeconds) || RETRY_AFTER_SECONDS
    return { pass: false, ...unavailable(credential !== undefined, seconds) }
  }

  #tell<E extends Detail>({ amountSat, description }: Wanted, detail: E): void {
    tell(this.#options.onEvent, { amountSat, description, ...detail } as PaywallEvent)
  }
}

type Detail = PaywallEvent extends infer E ? (E extends PaywallEvent ? Omit<E, 'amountSat' | 'description'> : never) : never

/** The id of the payment: that much of a credential may be told. */
const presentedIn = (credential: string | undefined): string | undefined =>
  credential === undefined ? undefined : paymentIdOf(credential)

function checkAmount(amountSat: unknown): asserts amountSat is number {
  if (!Number.isSafeInteger(amountSat) || (amountSat as number) < 1)
    throw new TypeError('`amountSat` must be a whole number of satoshis, at least 1.')
}

/** Only for these a fresh challenge is of use to the customer. Everything else says nothing about whether they have paid. */
function refusalFor(error: unknown): Refusal | undefined {
  const isRefused =
    (error instanceof CredentialError && !error.notSettled) ||
    error instanceof ExpiredError ||
    (error instanceof ConflictError && error.code === 'already_redeemed') ||
    (error instanceof NotFoundError && error.code === 'gateway_payment_not_found')
  return isRefused ? refusalOf(error.code, error.details.problem) : undefined
}
