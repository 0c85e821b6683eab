import { isHttpUrl } from '../../../protocol/src/x402-binding.ts'
import type { Boltyard } from '../boltyard.ts'
import type { Protocol } from '../types.ts'
import type { EventHook } from './events.ts'
import { type Offer, protocolsOf } from './offer.ts'

export const MAX_BODY_BYTES = 1_048_576
const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]{1,64}$/
/** A payment cannot be bound to these headers, because they differ between a request and its paid repetition. */
const PAYMENT_FIELDS = ['payment-signature', 'payment-authorization']

/** A constant, or a function of the request. */
export type PerRequest<R, V> = V | ((request: R) => V | Promise<V>)

export type PaywallOptions<R> = {
  /** Default: a new client, with the key from `SERVICE_API_KEY`. The key needs only the scope `gateway:write`. */
  client?: Boltyard | undefined
  /** The node that receives the payments. */
  nodeId: string
  amountSat: PerRequest<R, number>
  /**
   * What a payment gives access to. Default: `<METHOD> <route pattern>` if the price is a constant, `<METHOD> <path and query>` if it is a
   * function. If the price depends on the body or on headers, you must set `resource`.
   */
  resource?: PerRequest<R, string> | undefined
  /** The text customers see. Default: `<METHOD> <route pattern>`. */
  description?: PerRequest<R, string> | undefined
  /** By what fraction the paid price may be below the current price, less than 1. Default: 0.1, or 0 if you set `resource`. */
  priceTolerance?: number | undefined
  /** Which protocols to offer, any of `mpp`, `l402` and `x402`. Default: `['mpp']`. */
  protocols?: readonly Protocol[] | undefined
  /** Like `protocols`, for a single protocol; `both` is `['l402', 'mpp']`. */
  protocol?: Offer | undefined
  /**
   * `true`: you use `Authorization` yourself. MPP clients must then send their credential in `Payment-Authorization`, which not
   * all of them can.
   */
  requiresAuth?: boolean | undefined
  /** x402: the URL that customers use, with a path if your proxy removes one; or a function that returns the whole URL of a request. */
  publicUrl?: string | ((request: R) => string) | undefined
  /** x402: the names of all headers that change what is sold. */
  bindHeaders?: readonly string[] | undefined
  /** x402: the largest request body that a payment can be bound to. The body is kept in memory. Default: 1 MiB. */
  maxBodyBytes?: number | undefined
  /** Whether an L402 credential can be reused until it expires. Default: `24h` if only L402 is offered, otherwise `never`. */
  l402?: { reuse: '24h' | 'never' } | undefined
  /** `true` is the same as `l402: { reuse: 'never' }`. */
  singleUse?: boolean | undefined
  /** How long a delivery may take before the payment can be used again, 1 to 600. Default: 120. */
  holdSeconds?: number | undefined
  /**
   * `false`: the payment is used up even if the customer disconnects before the response. For handlers with side effects. Default: true.
   */
  releaseOnDisconnect?: boolean | undefined
  /** Requests that cost nothing. */
  free?: PerRequest<R, boolean> | undefined
  /** `true`: a browser gets a page with the invoice as a QR code. */
  html?: boolean | undefined
  /** `pass`: your own handlers respond to OPTIONS. Default: the paywall responds, free of charge. */
  options?: 'answer' | 'pass' | undefined
  /** How many unpaid visits one client address may have open in this process; 0 for no limit. Default: 100. */
  maxOpenVisits?: number | undefined
  /** The address that unpaid visits are counted by. Default: the framework's client address. If there is none, visits are not limited. */
  clientAddress?: ((request: R) => string | undefined) | undefined
  onEvent?: EventHook | undefined
  /**
   * How long to keep asking whether a credential was paid. x402: also how long a body may take, plus a second for every 32 kB.
   * Default: 10,000.
   */
  patienceMs?: number | undefined
}

/** Throws on invalid options, so that they are found before the first request. */
export function checkOptions<R>(options: PaywallOptions<R>): void {
  const { nodeId, amountSat, priceTolerance = 0, holdSeconds = 120, maxOpenVisits = 0, l402, singleUse } = options
  const { publicUrl, maxBodyBytes = MAX_BODY_BYTES } = options
  if (typeof nodeId !== 'string' || nodeId === '')
    throw new TypeError('`nodeId` is missing. Set it to the node that receives the payments.')
  if (typeof amountSat !== 'function') checkAmount(amountSat)
  if (!(priceTolerance >= 0 && priceTolerance < 1)) throw new TypeError('`priceTolerance` must be at least 0 and less than 1.')
  if (!Number.isInteger(holdSeconds) || holdSeconds < 1 || holdSeconds > 600)
    throw new TypeError('`holdSeconds` must be a whole number from 1 to 600.')
  if (!Number.isInteger(maxOpenVisits) || maxOpenVisits < 0)
    throw new TypeError('`maxOpenVisits` must be a whole number, or 0 for no limit.')
  if (l402 !== undefined && l402.reuse !== '24h' && l402.reuse !== 'never')
    throw new TypeError("`l402.reuse` must be '24h' or 'never'.")
  if (l402?.reuse === '24h' && singleUse) throw new TypeError("`singleUse` and `l402: { reuse: '24h' }` contradict each other.")
  if (typeof publicUrl === 'string' && !isHttpUrl(publicUrl))
    throw new TypeError('`publicUrl` must be an http or https URL without a user name, password or fragment.')
  if (!Number.isInteger(maxBodyBytes) || maxBodyBytes < 0) throw new TypeError('`maxBodyBytes` must be a whole number.')
  boundHeaders(options.bindHeaders)
  protocolsOf(options)
}

/** In the form in which x402 requires them: lowercase, in ascending order, each once. */
export function boundHeaders(names: readonly string[] = []): string[] {
  const headers = [...new Set(names.map((name) => name.toLowerCase()))].sort()
  if (headers.length > 20 || !headers.every((name) => HEADER_NAME.test(name) && !PAYMENT_FIELDS.includes(name)))
    throw new TypeError('`bindHeaders` must contain at most 20 header names, and no header that carries a payment.')
  return headers
}

export function checkAmount(amountSat: unknown): asserts amountSat is number {
  if (!Number.isSafeInteger(amountSat) || (amountSat as number) < 1)
    throw new TypeError('`amountSat` must be a whole number of satoshis, at least 1.')
}

/** For the same price, an L402 buyer gets the same as the buyers of other protocols, unless the seller decides otherwise. */
export function isL402Reusable<R>(options: PaywallOptions<R>): boolean {
  const { l402, singleUse } = options
  if (l402) return l402.reuse === '24h'
  return singleUse === undefined ? protocolsOf(options).every((one) => one === 'l402') : !singleUse
}
