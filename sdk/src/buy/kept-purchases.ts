import { validUntilOf } from '../../../protocol/src/payment-id.ts'
import { type Purchase, purchaseIn, UnreadablePurchase } from './purchase.ts'
import { acquireLock } from './store/lock.ts'
import type { PurchaseStore } from './store/store.ts'

const PREFIX = 'purchase.'
/** How long a purchase is kept after its delivery. */
const KEPT_MS = 30 * 86_400_000
/** How long to wait for a call that works on a purchase, before it is left for the next time. */
const PRUNE_PATIENCE_MS = 1_000

/** The purchases in a store, by the key of their request. */
export class KeptPurchases {
  readonly #store: PurchaseStore
  /** What the store failed to write. */
  readonly #unsaved = new Map<string, Purchase>()

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
    for (const name of await this.#store.list(PREFIX)) {
      const key = name.slice(PREFIX.length)
      const purchase = await this.read(key).catch((error) => {
        if (!(error instanceof UnreadablePurchase)) throw error
      })
      if (purchase) found.push({ key, purchase })
    }
    return found
  }

  /**
   * Removes the purchases that are to be forgotten, each under its own lock. What was spent is kept elsewhere, so the budget stays the same. A
   * crash leaves at most a lock without a purchase.
   */
  async prune(): Promise<void> {
    for (const { key, purchase } of await this.list()) {
      if (!isForgotten(purchase)) continue
      const lock = await acquireLock(this.#store, key, AbortSignal.timeout(PRUNE_PATIENCE_MS)).catch(() => undefined)
      if (!lock) continue
      try {
        const current = await this.read(key)
        if (!current || !isForgotten(current)) continue
        await this.delete(key)
        await lock.remove()
      } finally {
        await lock.release()
      }
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
