import { invoiceExpiresAtSeconds } from '../../../protocol/src/bolt11.ts'
import { fromHex } from '../../../protocol/src/bytes.ts'
import type { Offer } from '../../../protocol/src/offers.ts'
import { type BuyerCrypto, sha256Hex } from './crypto/crypto.ts'
import { watched } from './delivery.ts'
import { PurchaseError } from './errors.ts'
import { KeptPurchases } from './kept-purchases.ts'
import { isStillOffered, keptOffer, offersIn } from './offers.ts'
import { credentialOf, infoOf, type Purchase, type PurchaseInfo, type PurchaseState } from './purchase.ts'
import type { Credential, RepeatableRequest } from './request.ts'
import { mayReplace, settle } from './settle.ts'
import { Budget } from './store/budget.ts'
import { acquireLock, type Lock } from './store/lock.ts'
import type { PurchaseStore } from './store/store.ts'
import type { Wallet } from './wallets/wallet.ts'

type Options = { crypto: BuyerCrypto; store: PurchaseStore; wallet: Wallet; maxSatPerRequest: number; maxSatPerDay: number }
/** One call of `fetch`. */
type Visit = { key: string; request: RepeatableRequest; lock: Lock }

const bought = new WeakMap<Response, PurchaseInfo>()

/** What this call, or an earlier one, has paid for the response. Undefined if it was free. */
export const purchaseOf = (response: Response): PurchaseInfo | undefined => bought.get(response)

/** The payment hashes of the responses that this process is still reading. */
const reading = new Set<string>()

/**
 * Fetch, pay, fetch again. A purchase is kept before the wallet is asked, and everything that follows is decided by what is kept, so a call
 * continues where another one was killed. Only the holder of the purchase's lock changes it, except that a reader of the response reports its
 * end.
 */
export class Purchases {
  readonly #crypto: BuyerCrypto
  readonly #store: PurchaseStore
  readonly #wallet: Wallet
  readonly #maxSatPerRequest: number
  readonly #kept: KeptPurchases
  readonly #budget: Budget

  constructor({ crypto, store, wallet, maxSatPerRequest, maxSatPerDay }: Options) {
    this.#crypto = crypto
    this.#store = store
    this.#wallet = wallet
    this.#maxSatPerRequest = maxSatPerRequest
    this.#kept = new KeptPurchases(store)
    this.#budget = new Budget(store, maxSatPerDay)
  }

  /** With `isOnce`, the purchase is not made again after its delivery. */
  async fetch(request: RepeatableRequest, key: string, isOnce: boolean): Promise<Response> {
    const seen = await this.#kept.read(key)
    let refusal: Response | undefined
    if (!seen || (seen.state === 'delivered' && !isOnce)) {
      refusal = await this.#withoutPaying(request, seen)
      if (refusal.status !== 402) return refusal
    }
    const lock = await acquireLock(this.#store, key, request.signal)
    try {
      const visit = { key, request, lock }
      const kept = await this.#kept.read(key)
      // A purchase that nobody was answered is this call's to finish, and to report.
      const isAnswered = kept?.state === 'answered' || kept?.state === 'delivered'
      const isMeanwhile = kept !== undefined && (reading.has(kept.paymentHash) || (isAnswered && wasOthers(seen, kept, lock)))
      if (kept && (kept.state !== 'delivered' || isMeanwhile || isOnce)) {
        await refusal?.body?.cancel()
        return await this.#resume(visit, kept, isMeanwhile)
      }
      return refusal ? await this.#buy(visit, refusal) : await this.#askAndBuy(visit)
    } finally {
      // A failure must not take the response from the caller, who may have paid for it.
      await lock.release().catch(() => undefined)
    }
  }

  async unfinished(): Promise<PurchaseInfo[]> {
    const all = await this.#kept.list()
    return all.filter(({ purchase }) => purchase.state !== 'delivered').map(({ purchase }) => infoOf(purchase))
  }

  async complete(paymentHash: string, preimage: string): Promise<void> {
    await this.#kept.change(paymentHash, async (key, purchase) => {
      if (!/^[0-9a-f]{64}$/.test(preimage) || sha256Hex(this.#crypto, fromHex(preimage)) !== paymentHash)
        throw new PurchaseError('unknown', 'wrong_preimage', 'The preimage does not belong to this payment.')
      if (purchase.credential === undefined) await this.#kept.write(key, paidWith(purchase, this.#offerOf(purchase), preimage))
    })
  }

  async forget(paymentHash: string): Promise<void> {
    await this.#kept.change(paymentHash, (key) => this.#kept.delete(key))
  }

  /** Presents an L402 credential that was delivered before, because many stay good until they lapse. Otherwise just asks. */
  async #withoutPaying(request: RepeatableRequest, delivered: Purchase | undefined): Promise<Response> {
    const proof = delivered?.protocol === 'l402' && !request.has(delivered.header) ? credentialOf(delivered) : undefined
    if (!delivered || !proof) return request.ask()
    if (!request.isAt(delivered.url)) {
      // It was bought behind a redirect, which may lead elsewhere now.
      const refusal = await request.ask()
      if (refusal.status !== 402 || !request.isAt(delivered.url)) return refusal
      await refusal.body?.cancel()
    }
    const response = await request.send(proof)
    if (isRedirect(response)) return this.#followed(request, response, proof, delivered)
    const isChallenge = response.headers.has('www-authenticate') || response.headers.has('payment-required')
    if (response.status === 402 && isChallenge) return response
    // Any other refusal is about the request, and would be the same for a new credential.
    const isLapsed = [401, 402].includes(response.status) || (isChallenge && !response.ok)
    if (isLapsed) await response.body?.cancel()
    else if (response.ok) bought.set(response, infoOf(delivered))
    return isLapsed ? request.ask() : response
  }

  async #askAndBuy(visit: Visit): Promise<Response> {
    const response = await visit.request.ask()
    return response.status === 402 ? this.#buy(visit, response) : response
  }

  /** `lapsed` is an earlier purchase, which stays until this one replaces it. */
  async #buy(visit: Visit, refusal: Response, lapsed?: Purchase): Promise<Response> {
    const { key, request } = visit
    await refusal.body?.cancel()
    const offer = this.#chosen(request, offersIn(this.#crypto, refusal.headers, request.bound))
    await this.#requireNetwork(offer, request.signal)
    if (lapsed) await this.#giveUp(lapsed, offer)
    const isNew = await this.#budget.reserve(priceOf(offer))
    if (!isNew)
      throw new PurchaseError('unpaid', 'invoice_repeated', 'The server asks for a payment that belongs to another purchase.', {
        details: { paymentHash: offer.invoice.paymentHash },
      })
    const { protocol, header, challenge, invoiceText: invoice, amountSat } = offer
    const { paymentHash } = offer.invoice
    const { method, url } = request
    const purchase: Purchase = {
      ...{ state: 'kept', method, url: url.href, wallet: this.#wallet.id, protocol, header, challenge },
      ...{ invoice, paymentHash, amountSat, createdAtMs: Date.now() },
    }
    await this.#kept.write(key, purchase)
    const paid = await this.#pay(visit, purchase, offer, true)
    if (paid === 'lapsed') {
      await this.#drop(key, purchase)
      throw new PurchaseError('unpaid', 'payment_failed', 'The invoice expired before it could be paid.')
    }
    return this.#present(visit, paid, false)
  }

  async #resume(visit: Visit, kept: Purchase, isMeanwhile: boolean): Promise<Response> {
    if (kept.credential !== undefined) return this.#present(visit, kept, isMeanwhile)
    if (kept.wallet !== this.#wallet.id)
      throw new PurchaseError(
        'unknown',
        'wallet_mismatch',
        `Another wallet was asked to pay for this: ${kept.wallet}. Use that one.`,
        {
          details: { paymentHash: kept.paymentHash },
        },
      )
    const offer = this.#offerOf(kept)
    visit.request.moveTo(new URL(kept.url))
    const paid = await this.#pay(visit, kept, offer, false)
    if (paid !== 'lapsed') return this.#present(visit, paid, isMeanwhile)
    const response = await visit.request.ask()
    return response.status === 402 ? this.#buy(visit, response, kept) : response
  }

  /** The purchase with its credential. If it was certainly not paid, nothing is left of it. */
  async #pay({ key, lock, request }: Visit, kept: Purchase, offer: Offer, isNew: boolean): Promise<Purchase | 'lapsed'> {
    const isResumed = kept.state === 'paying'
    const isOffered = (): boolean => isNew || isStillOffered(this.#crypto, kept, request.bound)
    if (!isResumed && !isOffered()) return 'lapsed'
    const beforePaying = async (): Promise<void> => {
      if (!isOffered()) throw noLongerOffered()
      if (!isNew) {
        this.#chosen(request, [offer])
        await this.#budget.renew(priceOf(offer))
      }
      if (!(await lock.isHeld())) throw inProgress()
      request.signal.throwIfAborted()
      await this.#kept.write(key, { ...kept, state: 'paying' })
      // The wallet will not be asked.
      if (request.signal.aborted && !isResumed) await this.#kept.write(key, kept)
    }
    try {
      const paid = await settle(this.#wallet, offer, { crypto: this.#crypto, isResumed, signal: request.signal, beforePaying })
      if (paid === 'lapsed') return paid
      const purchase = paidWith(kept, offer, paid.preimage, paid.feeSat)
      await this.#kept.save(key, purchase)
      // Without its fee, the payment still counts.
      if (paid.feeSat) await this.#budget.addFee(kept.paymentHash, paid.feeSat).catch(() => undefined)
      return purchase
    } catch (error) {
      const isUnpaid = !isResumed && !request.signal.aborted && error instanceof PurchaseError && error.outcome === 'unpaid'
      // If that fails, the next call asks the wallet.
      if (isUnpaid && error.code !== 'purchase_in_progress') await this.#drop(key, kept).catch(() => undefined)
      throw error instanceof PurchaseError ? error.about(kept.paymentHash, isResumed) : error
    }
  }

  async #present({ key, request }: Visit, purchase: Purchase, isMeanwhile: boolean): Promise<Response> {
    const { paymentHash } = purchase
    const proof = credentialOf(purchase)
    if (!proof) throw new TypeError('The purchase has no credential.')
    const first = await request
      .moveTo(new URL(purchase.url))
      .present(proof)
      .catch((cause) => {
        throw unanswered(request, purchase, cause)
      })
    if (first.status === 402) {
      await first.body?.cancel()
      throw isMeanwhile ? inProgress() : paidAgain(purchase)
    }
    if (first.status < 400) await this.#kept.advance(key, purchase, 'answered')
    const response = await this.#followed(request, first, proof, purchase)
    if (response.status >= 400) return response
    reading.add(paymentHash)
    const ended = async (state: PurchaseState): Promise<void> => {
      await this.#kept.advance(key, purchase, state)
      reading.delete(paymentHash)
    }
    const answer = await watched(response, { onEnd: () => ended('delivered'), onBreak: () => ended('paid') })
    bought.set(answer, infoOf(purchase))
    return answer
  }

  /** What a redirect leads to is part of what was bought: it is never paid for. */
  async #followed(request: RepeatableRequest, first: Response, proof: Credential, purchase: Purchase): Promise<Response> {
    const response = await request.follow(first, proof).catch((cause) => {
      throw unanswered(request, purchase, cause)
    })
    if (response.status === 402) {
      await response.body?.cancel()
      throw paidAgain(purchase)
    }
    bought.set(response, infoOf(purchase))
    return response
  }

  /** The first offer that the limit and the request allow, judged by the invoice's own amount. */
  #chosen<O extends Offer>(request: RepeatableRequest, offers: [O, ...O[]]): O {
    const usable = offers.filter(({ header }) => !request.has(header))
    if (usable.length === 0)
      throw new PurchaseError(
        'unpaid',
        'authorization_taken',
        `The credential must be sent in the header ${offers[0].header}, which the request already has.`,
      )
    const offer = usable.find(({ amountSat }) => amountSat <= this.#maxSatPerRequest)
    if (offer) return offer
    const amountSat = Math.min(...usable.map((one) => one.amountSat))
    const maxSat = this.#maxSatPerRequest
    throw new PurchaseError('unpaid', 'too_expensive', `The price is ${amountSat} sat, but maxSatPerRequest is ${maxSat}.`, {
      details: { amountSat, maxSat },
    })
  }

  async #requireNetwork({ invoice }: Offer, signal: AbortSignal): Promise<void> {
    const network = await this.#wallet.network?.(signal)
    if (network === undefined || network === invoice.network) return
    const message = `The invoice is for ${invoice.network}, but the ${this.#wallet.noun} pays on ${network}.`
    throw new PurchaseError('unpaid', 'wrong_network', message)
  }

  #offerOf(purchase: Purchase): Offer {
    const offer = keptOffer(this.#crypto, purchase)
    if (!offer) throw new TypeError('The store has a purchase whose challenge cannot be read.')
    return offer
  }

  async #giveUp(lapsed: Purchase, offer: Offer): Promise<void> {
    const { paymentHash } = lapsed
    if (lapsed.state === 'paying' && !mayReplace(this.#offerOf(lapsed).invoice, offer))
      throw new PurchaseError(
        'unknown',
        'payment_unknown',
        'The earlier invoice has not expired yet by the seller’s clock. This call paid nothing. Try again in a few minutes.',
        { details: { paymentHash } },
      )
    await this.#budget.release(paymentHash)
  }

  /** Only if it was certainly not paid and cannot be paid any more. The record goes first: without it, the entry of the budget is harmless. */
  async #drop(key: string, { paymentHash }: Purchase): Promise<void> {
    await this.#kept.delete(key)
    await this.#budget.release(paymentHash)
  }
}

const isRedirect = ({ status }: Response): boolean => status >= 300 && status < 400

function unanswered({ signal, url }: RepeatableRequest, { paymentHash }: Purchase, cause: unknown): unknown {
  if (signal.aborted) return cause
  if (cause instanceof PurchaseError) return cause.about(paymentHash, false)
  const message = `You paid, but ${url.host} did not respond. The next call presents the same credential.`
  return new PurchaseError('paid', 'connection_failed', message, { details: { paymentHash }, cause })
}

const paidAgain = ({ paymentHash }: Purchase): PurchaseError =>
  new PurchaseError(
    'paid',
    'credential_refused',
    'You paid, but the server asks for payment again. No second payment was made. The next call presents the same credential; to buy again, forget this purchase.',
    { details: { paymentHash } },
  )

const priceOf = ({ invoice, amountSat }: Offer): { paymentHash: string; amountSat: number; expiresAtMs: number } => ({
  paymentHash: invoice.paymentHash,
  amountSat,
  expiresAtMs: invoiceExpiresAtSeconds(invoice) * 1000,
})

const paidWith = (purchase: Purchase, offer: Offer, preimage: string, feeSat?: number): Purchase => ({
  ...purchase,
  state: 'paid',
  credential: offer.credentialFor(preimage),
  ...(feeSat === undefined ? {} : { feeSat }),
})

const noLongerOffered = (): PurchaseError =>
  new PurchaseError(
    'unknown',
    'payment_unknown',
    'An earlier call may have paid. This one paid nothing, because the server would no longer accept the payment: the challenge has expired, or is for a request with other headers. Try again when the invoice has expired too.',
  )

/** Whether another call has made or finished this purchase since this one has looked. What it bought is not bought again. */
function wasOthers(seen: Purchase | undefined, kept: Purchase, { isAfterOther }: Lock): boolean {
  if (kept.paymentHash !== seen?.paymentHash) return true
  return seen.state !== 'delivered' && (kept.state === 'delivered' || isAfterOther)
}

const inProgress = (): PurchaseError =>
  new PurchaseError(
    'unpaid',
    'purchase_in_progress',
    'Another call has bought the same thing, or is buying it now. To buy it once per call, give each call its own `purchaseKey`.',
  )
