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
  /** The most that is spent in any 24 hours by all programs with the same store. Routing fees count afterwards, if the wallet reports them. */
  maxSatPerDay: number
  /**
   * Where purchases are kept: a directory, or a store. Defaults to a directory below the user's state directory
   * (`~/.local/state/boltyard/purchases`) on Node, and is required elsewhere.
   */
  store?: string | PurchaseStore | undefined
}

export type BuyInit = RequestInit & {
  /**
   * Names the purchase of this method and URL, which is then made once for all time, whatever the body. Without it, requests with the same
   * method, URL and body are one purchase until its response was read to the end. Give them different keys to buy the same thing several
   * times at once.
   */
  purchaseKey?: string | undefined
}

export type Buyer = {
  /** `fetch` that pays a 402 within the budgets, at most once. */
  fetch(input: string | URL | Request, init?: BuyInit): Promise<Response>
  /** The purchases that were not delivered yet. */
  unfinished(): Promise<PurchaseInfo[]>
  /** Hands in the preimage of an unfinished purchase whose wallet cannot be asked. The next call presents the credential. */
  complete(paymentHash: string, preimage: string): Promise<void>
  /** Gives up a purchase: the next call may pay again, even if this one was paid. */
  forget(paymentHash: string): Promise<void>
}

/** They are not sold: a paywall answers them without using up a payment. */
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
    'There are no lasting files here. Pass `store`: one of your own, or `memoryStore()`, which forgets what was paid when the process ends.',
  )
}

/**
 * Without headers: some, such as a trace id, differ between a request and its repetition after a crash, which must not be paid again. With a
 * `purchaseKey` also without the body, which may contain the time.
 */
function keyOf(crypto: BuyerCrypto, { method, url, body }: HttpCall, purchaseKey: string | undefined): string {
  const bodyHash = body && purchaseKey === undefined ? sha256Hex(crypto, body) : ''
  return sha256Hex(crypto, JSON.stringify([method, url, bodyHash, purchaseKey ?? null]))
}
