import { type Purchase, type PurchaseState, purchaseIn } from './purchase.ts'
import { acquireLock } from './store/lock.ts'
import type { PurchaseStore } from './store/store.ts'

const PREFIX = 'purchase.'

/** The purchases in a store, by the key of their request. */
export class KeptPurchases {
  readonly #store: PurchaseStore

  constructor(store: PurchaseStore) {
    this.#store = store
  }

  async read(key: string): Promise<Purchase | undefined> {
    const text = await this.#store.get(PREFIX + key)
    return text === undefined ? undefined : purchaseIn(text)
  }

  write(key: string, purchase: Purchase): Promise<void> {
    return this.#store.set(PREFIX + key, JSON.stringify(purchase))
  }

  delete(key: string): Promise<void> {
    return this.#store.delete(PREFIX + key)
  }

  /** Only if the purchase is still this one: the reader of a response reports its end without holding the lock. */
  async advance(key: string, purchase: Purchase, state: PurchaseState): Promise<void> {
    const current = await this.read(key)
    if (current?.paymentHash === purchase.paymentHash && current.state !== 'delivered')
      await this.write(key, { ...purchase, state })
  }

  async list(): Promise<{ key: string; purchase: Purchase }[]> {
    const found: { key: string; purchase: Purchase }[] = []
    for (const name of await this.#store.list(PREFIX)) {
      const key = name.slice(PREFIX.length)
      const purchase = await this.read(key)
      if (purchase) found.push({ key, purchase })
    }
    return found
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
