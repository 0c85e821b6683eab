import { validUntilOf } from '../../../protocol/src/payment-id.ts'
import { type Purchase, purchaseIn, UnreadablePurchase } from './purchase.ts'
import { acquireLock } from './store/lock.ts'
import type { PurchaseStore } from './store/store.ts'

const PREFIX = 'purchase.'
const DAY_MS = 86_400_000
/** How long a purchase is kept after its delivery. */
const KEPT_MS = 30 * DAY_MS
/** A call waits for the pruning, so it is short. */
const PRUNED_PER_CALL = 10

/** The purchases in a store, by the key of their request. */
export class KeptPurchases {
  readonly #store: PurchaseStore
  /** What the store failed to write. */
  readonly #unsaved = new Map<string, Purchase>()
  /** The keys that this day's pruning has not looked at yet. */
  #unpruned: string[] = []
  #nextPruningMs = 0

  constructor(store: PurchaseStore) {
    this.#store = store
  }

  async read(key: string): Promise<Purchase | undefined> {
    const text = await this.#store.get(PREFIX + key)
    const stored = text === undefined ? undefined : purchaseIn(text)
    const unsaved = this.#unsaved.get(key)
    const isNewer = unsaved?.paymentHash === stored?.paymentHash && stored?.state !== 'delivered'
    return isNewer ? (unsaved ?? stored) : stored
  }

  async write(key: string, purchase: Purchase): Promise<void> {
    await this.#store.set(PREFIX + key, JSON.stringify(purchase))
    this.#unsaved.delete(key)
  }

  async delete(key: string): Promise<void> {
    await this.#store.delete(PREFIX + key)
    this.#unsaved.delete(key)
  }

  /** For a purchase that was paid. Never throws: what cannot be written is remembered, because it must still be delivered. */
  async save(key: string, purchase: Purchase): Promise<void> {
    await this.write(key, purchase).catch(() => this.#unsaved.set(key, purchase))
  }

  /** Saves it only if the purchase is still this one: the reader of a response reports its end without holding the lock. */
  async advance(key: string, next: Purchase): Promise<void> {
    try {
      const current = await this.read(key)
      if (current?.paymentHash === next.paymentHash && current.state !== 'delivered') await this.save(key, next)
    } catch {
      this.#unsaved.set(key, next)
    }
  }

  /** Without entries that cannot be read: the call that they belong to reports them. */
  async list(): Promise<{ key: string; purchase: Purchase }[]> {
    const found: { key: string; purchase: Purchase }[] = []
    for (const key of await this.#keys()) {
      const purchase = await this.#readable(key)
      if (purchase) found.push({ key, purchase })
    }
    return found
  }

  async #keys(): Promise<string[]> {
    return (await this.#store.list(PREFIX)).map((name) => name.slice(PREFIX.length))
  }

  #readable(key: string): Promise<Purchase | undefined> {
    return this.read(key).catch((error) => {
      if (!(error instanceof UnreadablePurchase)) throw error
      return undefined
    })
  }

  /** Once a day, looks at all purchases and removes those that are to be forgotten, a few in each call. */
  async prune(): Promise<void> {
    if (this.#unpruned.length === 0) {
      if (Date.now() < this.#nextPruningMs) return
      this.#nextPruningMs = Date.now() + DAY_MS
      const keys = await this.#keys()
      // Processes that make a single call must not all look at the same ones.
      const start = Math.floor(Math.random() * keys.length)
      this.#unpruned = [...keys.slice(start), ...keys.slice(0, start)]
    }
    for (const key of this.#unpruned.splice(0, PRUNED_PER_CALL)) {
      const purchase = await this.#readable(key)
      if (purchase && isForgotten(purchase)) await this.#forget(key)
    }
  }

  /**
   * Under the purchase's own lock, so one that a call works on is left for the next time. What was spent is kept elsewhere, so the budget stays
   * the same. A crash leaves at most a lock without a purchase.
   */
  async #forget(key: string): Promise<void> {
    const lock = await acquireLock(this.#store, key, AbortSignal.abort()).catch(() => undefined)
    if (!lock) return
    try {
      const current = await this.read(key)
      if (!current || !isForgotten(current)) return
      // Another process may have taken this one for dead, and have bought the same since.
      if (!(await lock.isHeld())) return
      await this.delete(key)
      await lock.remove()
    } finally {
      await lock.release()
    }
  }

  /** Changes a purchase while no call works on it. */
  async change(paymentHash: string, act: (key: string, purchase: Purchase) => Promise<void>): Promise<void> {
    const found = (await this.list()).find(({ purchase }) => purchase.paymentHash === paymentHash)
    if (!found) throw new TypeError('There is no purchase with this payment hash.')
    const lock = await acquireLock(this.#store, found.key, new AbortController().signal)
    try {
      const purchase = await this.read(found.key)
      if (purchase?.paymentHash === paymentHash) await act(found.key, purchase)
    } finally {
      await lock.release()
    }
  }
}

const isForgotten = ({ state, forgetAtMs }: Purchase): boolean =>
  state === 'delivered' && typeof forgetAtMs === 'number' && forgetAtMs < Date.now()

/**
 * The purchase after its delivery. One that must not be made again is kept for all time, and an L402 credential for as long as a server may
 * accept it.
 */
export function finished(purchase: Purchase, isOnce: boolean): Purchase {
  const untilMs = purchase.protocol === 'l402' ? (validUntilOf(purchase.credential ?? '') ?? Number.NaN) * 1000 : 0
  const isKept = isOnce || Number.isNaN(untilMs)
  return { ...purchase, state: 'delivered', ...(isKept ? {} : { forgetAtMs: Math.max(Date.now() + KEPT_MS, untilMs) }) }
}
