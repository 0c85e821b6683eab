import { validUntilOf } from '../../../protocol/src/payment-id.ts'
import { inProgress } from './errors.ts'
import { type Purchase, purchaseIn, UnreadablePurchase } from './purchase.ts'
import { acquireLock, type Lock } from './store/lock.ts'
import type { PurchaseStore } from './store/store.ts'

const PREFIX = 'purchase.'
const DAY_MS = 86_400_000
/** A purchase is kept at least this long after its delivery; `finished` keeps some longer, or forever. */
const KEPT_MS = 30 * DAY_MS
/** Few, because each call waits until it has checked this many purchases. */
const PRUNED_PER_CALL = 10

/** The name of the purchase's entry in the store. It may be shown: the key is a hash. */
export const nameOf = (key: string): string => PREFIX + key

/** The purchases in a store, by the key of their request. */
export class KeptPurchases {
  readonly #store: PurchaseStore
  /** Purchases that the store failed to write. */
  readonly #unsaved = new Map<string, Purchase>()
  /** The keys that this day's pruning has not looked at yet. */
  #unpruned: string[] = []
  #nextPruningMs = 0

  constructor(store: PurchaseStore) {
    this.#store = store
  }

  async read(key: string): Promise<Purchase | undefined> {
    const text = await this.#store.get(nameOf(key))
    const stored = text === undefined ? undefined : purchaseIn(text, nameOf(key))
    const unsaved = this.#unsaved.get(key)
    const isNewer = unsaved?.paymentHash === stored?.paymentHash && stored?.state !== 'delivered'
    return isNewer ? (unsaved ?? stored) : stored
  }

  /** Throws if another process has taken the lock, because that process may have changed the purchase. */
  async write(key: string, purchase: Purchase, lock: Lock): Promise<void> {
    await this.#write(key, purchase, () => requireHeld(lock))
  }

  async #write(key: string, purchase: Purchase, mayReplace: () => Promise<void>): Promise<void> {
    // Checked here too, because a custom store may ignore the last argument.
    await mayReplace()
    await this.#store.set(nameOf(key), JSON.stringify(purchase), mayReplace)
    this.#unsaved.delete(key)
  }

  /** Throws like `write`. */
  async delete(key: string, lock: Lock): Promise<void> {
    await requireHeld(lock)
    await this.#store.delete(nameOf(key))
    this.#unsaved.delete(key)
  }

  /**
   * Saves a purchase that was paid. If the lock was lost and another purchase is now stored under the key, saves this one under
   * its payment hash. Never throws: a purchase that cannot be written is kept in memory, because it must still be delivered.
   */
  async save(key: string, purchase: Purchase): Promise<void> {
    const { paymentHash } = purchase
    const isSaved = await this.#saveIf(key, purchase, (current) => current === undefined || current.paymentHash === paymentHash)
    if (!isSaved) await this.#saveIf(paymentHash, purchase, (current) => current?.state !== 'delivered')
  }

  /**
   * Updates a purchase under its key or, if `save` stored it there, under its payment hash. Never replaces another purchase,
   * which may have been stored since, because the lock is no longer held when a response ends.
   */
  async advance(key: string, next: Purchase): Promise<void> {
    const isThis = (current: Purchase | undefined): boolean =>
      current?.paymentHash === next.paymentHash && current.state !== 'delivered'
    if (!(await this.#saveIf(key, next, isThis))) await this.#saveIf(next.paymentHash, next, isThis)
  }

  /** False if `isReplaced` does not allow replacing what is stored under the key. */
  async #saveIf(key: string, next: Purchase, isReplaced: (current: Purchase | undefined) => boolean): Promise<boolean> {
    const mayReplace = async (): Promise<void> => {
      if (!isReplaced(await this.read(key))) throw new OtherPurchase()
    }
    try {
      await this.#write(key, next, mayReplace)
    } catch (error) {
      if (error instanceof OtherPurchase) return false
      this.#unsaved.set(key, next)
    }
    return true
  }

  /** Skips entries that cannot be read: the call that needs such an entry reports it. */
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

  /** Once a day, checks all purchases, a few in each call, and removes those past `forgetAtMs`. */
  async prune(): Promise<void> {
    if (this.#unpruned.length === 0) {
      if (Date.now() < this.#nextPruningMs) return
      this.#nextPruningMs = Date.now() + DAY_MS
      const keys = await this.#keys()
      // Otherwise, processes that make only one call would all check the same purchases.
      const start = Math.floor(Math.random() * keys.length)
      this.#unpruned = [...keys.slice(start), ...keys.slice(0, start)]
    }
    for (const key of this.#unpruned.splice(0, PRUNED_PER_CALL)) {
      const purchase = await this.#readable(key)
      if (purchase && isForgotten(purchase)) await this.#forget(key)
    }
  }

  /**
   * Takes the purchase's lock, and skips a purchase that another call has locked. The budget has separate entries, so it does not
   * change. A crash leaves at most a lock without a purchase.
   */
  async #forget(key: string): Promise<void> {
    const lock = await acquireLock(this.#store, key, AbortSignal.abort()).catch(() => undefined)
    if (!lock) return
    try {
      const current = await this.read(key)
      if (!current || !isForgotten(current)) return
      // Throws if another process has taken the lock, because it may have bought the same thing since.
      await this.delete(key, lock)
      await lock.remove()
    } finally {
      await lock.release()
    }
  }

  /** Changes a purchase while no call works on it. */
  async change(paymentHash: string, act: (key: string, purchase: Purchase, lock: Lock) => Promise<void>): Promise<void> {
    const found = (await this.list()).find(({ purchase }) => purchase.paymentHash === paymentHash)
    if (!found) throw new TypeError('There is no purchase with this payment hash.')
    const lock = await acquireLock(this.#store, found.key, new AbortController().signal)
    try {
      const purchase = await this.read(found.key)
      if (purchase?.paymentHash === paymentHash) await act(found.key, purchase, lock)
    } finally {
      await lock.release()
    }
  }
}

/** The entry is not the purchase that was to be changed. */
class OtherPurchase extends Error {}

async function requireHeld(lock: Lock): Promise<void> {
  if (!(await lock.isHeld())) throw inProgress()
}

const isForgotten = ({ state, forgetAtMs }: Purchase): boolean =>
  state === 'delivered' && typeof forgetAtMs === 'number' && forgetAtMs < Date.now()

/**
 * The purchase after its delivery. If it must not be made again, it is kept forever; an L402 credential is kept as long as a
 * server may accept it.
 */
export function finished(purchase: Purchase, isOnce: boolean): Purchase {
  const untilMs = purchase.protocol === 'l402' ? (validUntilOf(purchase.credential ?? '') ?? Number.NaN) * 1000 : 0
  const isKept = isOnce || Number.isNaN(untilMs)
  return { ...purchase, state: 'delivered', ...(isKept ? {} : { forgetAtMs: Math.max(Date.now() + KEPT_MS, untilMs) }) }
}
