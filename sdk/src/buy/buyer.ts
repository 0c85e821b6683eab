import type { HttpCall } from '../../../protocol/src/x402-binding.ts'
import { type BuyerCrypto, sha256Hex } from './crypto/crypto.ts'
import { nobleCrypto } from './crypto/noble.ts'
import { nodeCrypto } from './crypto/node.ts'
import type { PurchaseInfo } from './purchase.ts'
import { Purchases } from './purchases.ts'
import { RepeatableRequest } from './request.ts'
import { defaultDirectory, fileStore } from './store/file-store.ts'
import type { PurchaseStore } from './store/store.ts'
import { openWallet, type WalletOptions } from './wallets/open.ts'

export type BuyerOptions = {
  wallet: WalletOptions
  /** The highest price of one request, without the routing fee. A more expensive one is refused. */
  maxSatPerRequest: number
  /**
   * The most that is spent in any 24 hours by all programs with the same store. Routing fees are added after each payment, if the
   * wallet reports them.
   */
  maxSatPerDay: number
  /**
   * Where purchases are kept: a directory, or a store. Defaults to a directory below the user's state directory
   * (`~/.local/state/boltyard/purchases`) on Node, and is required elsewhere.
   */
  store?: string | PurchaseStore | undefined
}

export type BuyInit = RequestInit & {
  /**
   * Identifies the purchase. With the same method, URL and key, it is made only once, ever, whatever the body. Without a key,
   * requests with the same method, URL and body are one purchase until its response has been read to the end. To buy the same
   * thing several times at once, use different keys.
   */
  purchaseKey?: string | undefined
}

export type Buyer = {
  /** `fetch` that pays a 402 within the budgets, at most once. */
  fetch(input: string | URL | Request, init?: BuyInit): Promise<Response>
  /** The purchases that were not delivered yet. */
  unfinished(): Promise<PurchaseInfo[]>
  /**
   * Adds the preimage to an unfinished purchase, for wallets that cannot be asked for it. The next call presents the credential.
   */
  complete(paymentHash: string, preimage: string): Promise<void>
  /** Gives up a purchase: the next call may pay again, even if this purchase was paid. */
  forget(paymentHash: string): Promise<void>
}

/** A paywall responds to these without using up a payment, so the buyer never pays for them. */
const UNSOLD = new Set(['HEAD', 'OPTIONS'])

export function buyer({ wallet, maxSatPerRequest, maxSatPerDay, store }: BuyerOptions): Buyer {
  for (const [name, limit] of Object.entries({ maxSatPerRequest, maxSatPerDay }))
    if (typeof limit !== 'number' || !(limit >= 0)) throw new TypeError(`${name} must be a number of satoshis.`)
  const crypto = nodeCrypto() ?? nobleCrypto
  const purchases = new Purchases({ crypto, store: storeOf(store), wallet: openWallet(wallet), maxSatPerRequest, maxSatPerDay })
  return {
    async fetch(input, { purchaseKey, ...init } = {}) {
      const request = await RepeatableRequest.from(crypto, input, init)
      if (UNSOLD.has(request.method)) return request.ask()
      return purchases.fetch(request, keyOf(crypto, request.bound, purchaseKey), purchaseKey !== undefined)
    },
    unfinished: () => purchases.unfinished(),
    complete: (paymentHash, preimage) => purchases.complete(paymentHash, preimage),
    forget: (paymentHash) => purchases.forget(paymentHash),
  }
}

function storeOf(store: BuyerOptions['store']): PurchaseStore {
  if (typeof store === 'object') return store
  const directory = store ?? defaultDirectory()
  if (directory !== undefined) return fileStore(directory)
  throw new TypeError(
    'This runtime has no permanent file storage. Pass `store`: your own store, or `memoryStore()`, which forgets what was paid when the process ends.',
  )
}

/**
 * The headers are left out: some, such as a trace id, change when a request is repeated after a crash, and the repetition must
 * not be paid again. With a `purchaseKey`, the body is left out too: it may contain the time.
 */
function keyOf(crypto: BuyerCrypto, { method, url, body }: HttpCall, purchaseKey: string | undefined): string {
  const bodyHash = body && purchaseKey === undefined ? sha256Hex(crypto, body) : ''
  return sha256Hex(crypto, JSON.stringify([method, url, bodyHash, purchaseKey ?? null]))
}
