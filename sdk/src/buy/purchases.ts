import { invoiceExpiresAtSeconds } from '../../../protocol/src/bolt11.ts'
import { fromHex } from '../../../protocol/src/bytes.ts'
import type { Offer } from '../../../protocol/src/offers.ts'
import { type BuyerCrypto, sha256Hex } from './crypto/crypto.ts'
import { inProgress, PurchaseError } from './errors.ts'
import { KeptPurchases, nameOf } from './kept-purchases.ts'
import { isStillOffered, keptOffer, offersIn } from './offers.ts'
import { isBeingRead, type Presentation, Presenting } from './presenting.ts'
import { infoOf, type Purchase, type PurchaseInfo } from './purchase.ts'
import type { RepeatableRequest } from './request.ts'
import { mayReplace, settle } from './settle.ts'
import { Budget } from './store/budget.ts'
import { acquireLock, type Lock } from './store/lock.ts'
import type { PurchaseStore } from './store/store.ts'
import type { Wallet } from './wallets/wallet.ts'

type Options = { crypto: BuyerCrypto; store: PurchaseStore; wallet: Wallet; maxSatPerRequest: number; maxSatPerDay: number }

/** One call of `fetch`. */
type Visit = Presentation & { lock: Lock }

/**
 * Fetch, pay, fetch again. A purchase is stored before the wallet is asked, and every later step depends only on what is stored,
 * so a call can continue after another process was killed. Only the holder of the purchase's lock changes it, with one exception:
 * the end of a response is recorded without the lock.
 */
export class Purchases {
  readonly #crypto: BuyerCrypto
  readonly #store: PurchaseStore
  readonly #wallet: Wallet
  readonly #maxSatPerRequest: number
  readonly #kept: KeptPurchases
  readonly #budget: Budget
  readonly #presenting: Presenting

  constructor({ crypto, store, wallet, maxSatPerRequest, maxSatPerDay }: Options) {
    this.#crypto = crypto
    this.#store = store
    this.#wallet = wallet
    this.#maxSatPerRequest = maxSatPerRequest
    this.#kept = new KeptPurchases(store)
    this.#budget = new Budget(store, maxSatPerDay)
    this.#presenting = new Presenting(this.#kept)
  }

  /** With `isOnce`, the purchase is not made again after its delivery. */
  async fetch(request: RepeatableRequest, key: string, isOnce: boolean): Promise<Response> {
    const seen = await this.#kept.read(key)
    let refusal: Response | undefined
    if (!seen || (seen.state === 'delivered' && !isOnce)) {
      refusal = await this.#presenting.withoutPaying(request, seen)
      if (refusal.status !== 402) return refusal
    }
    const lock = await acquireLock(this.#store, key, request.signal)
    try {
      const visit = { key, request, lock, isOnce }
      const kept = await this.#kept.read(key)
      // If no call has received a response for the purchase yet, this call finishes it and reports its failure.
      const isAnswered = kept?.state === 'answered' || kept?.state === 'delivered'
      const isMeanwhile = kept !== undefined && (isBeingRead(kept) || (isAnswered && wasOthers(seen, kept, lock)))
      if (kept && (kept.state !== 'delivered' || isMeanwhile || isOnce)) {
        await refusal?.body?.cancel()
        return await this.#resume(visit, kept, isMeanwhile)
      }
      return refusal ? await this.#buy(visit, refusal) : await this.#askAndBuy(visit)
    } finally {
      // A failure must not take the response from the caller, who may have paid for it.
      await lock.release().catch(() => undefined)
      // Not in the background: a process that is suspended after its response must not delete anything when it resumes.
      await this.#kept.prune().catch(() => undefined)
    }
  }

  async unfinished(): Promise<PurchaseInfo[]> {
    const all = await this.#kept.list()
    return all.filter(({ purchase }) => purchase.state !== 'delivered').map(({ purchase }) => infoOf(purchase))
  }

  async complete(paymentHash: string, preimage: string): Promise<void> {
    await this.#kept.change(paymentHash, async (key, purchase, lock) => {
      if (!/^[0-9a-f]{64}$/.test(preimage) || sha256Hex(this.#crypto, fromHex(preimage)) !== paymentHash)
        throw new PurchaseError('unknown', 'wrong_preimage', 'The preimage does not belong to this payment.')
      if (purchase.credential === undefined)
        await this.#kept.write(key, paidWith(purchase, this.#offerOf(key, purchase), preimage), lock)
    })
  }

  async forget(paymentHash: string): Promise<void> {
    await this.#kept.change(paymentHash, (key, _purchase, lock) => this.#kept.delete(key, lock))
  }

  async #askAndBuy(visit: Visit): Promise<Response> {
    const response = await visit.request.ask()
    return response.status === 402 ? this.#buy(visit, response) : response
  }

  /** `lapsed` is an earlier purchase, which stays until this one replaces it. */
  async #buy(visit: Visit, refusal: Response, lapsed?: Purchase): Promise<Response> {
    const { key, request, lock } = visit
    await refusal.body?.cancel()
    const offer = this.#chosen(request, offersIn(this.#crypto, refusal.headers, request.bound))
    await this.#requireNetwork(offer, request.signal)
    if (lapsed) await this.#giveUp(key, lapsed, offer)
    const isNew = await this.#budget.reserve(priceOf(offer))
    if (!isNew)
      throw new PurchaseError('unpaid', 'invoice_repeated', 'The server sent an invoice that belongs to another purchase.', {
        details: { paymentHash: offer.invoice.paymentHash },
      })
    const { protocol, header, challenge, invoiceText: invoice, amountSat } = offer
    const { paymentHash } = offer.invoice
    const { method, url } = request
    const purchase: Purchase = {
      ...{ state: 'kept', method, url: url.href, wallet: this.#wallet.id, protocol, header, challenge },
      ...{ invoice, paymentHash, amountSat, createdAtMs: Date.now() },
    }
    await this.#kept.write(key, purchase, lock).catch(async (error) => {
      // If another process has taken the lock, this purchase was not stored and will not be paid.
      if (!(await lock.isHeld())) await this.#budget.release(paymentHash)
      throw error
    })
    const paid = await this.#pay(visit, purchase, offer, true)
    if (paid === 'lapsed') {
      await this.#drop(key, purchase, lock)
      throw new PurchaseError('unpaid', 'payment_failed', 'The invoice expired before it could be paid.')
    }
    return this.#presenting.present(visit, paid, false)
  }

  async #resume(visit: Visit, kept: Purchase, isMeanwhile: boolean): Promise<Response> {
    if (kept.credential !== undefined) return this.#presenting.present(visit, kept, isMeanwhile)
    if (kept.wallet !== this.#wallet.id)
      throw new PurchaseError(
        'unknown',
        'wallet_mismatch',
        `Another wallet was asked to pay for this: ${kept.wallet}. Use that wallet.`,
        {
          details: { paymentHash: kept.paymentHash },
        },
      )
    const offer = this.#offerOf(visit.key, kept)
    visit.request.moveTo(new URL(kept.url))
    const paid = await this.#pay(visit, kept, offer, false)
    if (paid !== 'lapsed') return this.#presenting.present(visit, paid, isMeanwhile)
    const response = await visit.request.ask()
    return response.status === 402 ? this.#buy(visit, response, kept) : response
  }

  /** Returns the purchase with its credential. A purchase that was certainly not paid is removed. */
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
      await this.#kept.write(key, { ...kept, state: 'paying' }, lock)
      // After an abort the wallet is not asked, so the state must not stay `paying`.
      if (request.signal.aborted && !isResumed) await this.#kept.write(key, kept, lock)
    }
    try {
      const paid = await settle(this.#wallet, offer, { crypto: this.#crypto, isResumed, signal: request.signal, beforePaying })
      if (paid === 'lapsed') return paid
      const purchase = paidWith(kept, offer, paid.preimage, paid.feeSat)
      await this.#kept.save(key, purchase)
      // If this fails, the payment still counts, without its fee.
      if (paid.feeSat) await this.#budget.addFee(kept.paymentHash, paid.feeSat).catch(() => undefined)
      return purchase
    } catch (error) {
      const isUnpaid = !isResumed && !request.signal.aborted && error instanceof PurchaseError && error.outcome === 'unpaid'
      // If the removal fails, the next call asks the wallet.
      if (isUnpaid && error.code !== 'purchase_in_progress') await this.#drop(key, kept, lock).catch(() => undefined)
      throw error instanceof PurchaseError ? error.about(kept.paymentHash, isResumed) : error
    }
  }

  /** The first offer whose invoice is within the limit, and whose header the request does not already have. */
  #chosen<O extends Offer>(request: RepeatableRequest, offers: [O, ...O[]]): O {
    const usable = offers.filter(({ header }) => !request.has(header))
    if (usable.length === 0)
      throw new PurchaseError(
        'unpaid',
        'authorization_taken',
        `The credential must be sent in the header ${offers[0].header}, which the request already has. Remove it from the request.`,
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

  #offerOf(key: string, purchase: Purchase): Offer {
    const offer = keptOffer(this.#crypto, purchase)
    if (!offer)
      throw new TypeError(
        `The challenge in the store’s entry ${nameOf(key)} cannot be read. Its purchase may have been paid. Check your wallet, then remove the entry to buy again.`,
      )
    return offer
  }

  async #giveUp(key: string, lapsed: Purchase, offer: Offer): Promise<void> {
    const { paymentHash } = lapsed
    if (lapsed.state === 'paying' && !mayReplace(this.#offerOf(key, lapsed).invoice, offer))
      throw new PurchaseError(
        'unknown',
        'payment_unknown',
        'The earlier invoice has not expired yet by the seller’s clock. This call paid nothing. Try again in a few minutes.',
        { details: { paymentHash } },
      )
    await this.#budget.release(paymentHash)
  }

  /**
   * Only for a purchase that was certainly not paid, and that the wallet will not pay later. The purchase is deleted first: a
   * budget entry without a purchase is harmless.
   */
  async #drop(key: string, { paymentHash }: Purchase, lock: Lock): Promise<void> {
    await this.#kept.delete(key, lock)
    await this.#budget.release(paymentHash)
  }
}

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

/**
 * Whether another call has made or finished this purchase since this call first read it. If so, this call does not buy it again.
 */
function wasOthers(seen: Purchase | undefined, kept: Purchase, { isAfterOther }: Lock): boolean {
  if (kept.paymentHash !== seen?.paymentHash) return true
  return seen.state !== 'delivered' && (kept.state === 'delivered' || isAfterOther)
}
