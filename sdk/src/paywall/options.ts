import type { Boltyard } from '../boltyard.ts'
import type { EventHook } from './events.ts'
import { type Offer, protocolsOf } from './offer.ts'

/** The same for every request, or computed from the request. */
export type PerRequest<R, V> = V | ((request: R) => V | Promise<V>)

export type PaywallOptions<R> = {
  /** Default: a client of its own, with the key from `SERVICE_API_KEY`. The key needs `gateway:write` and nothing else. */
  client?: Boltyard | undefined
  /** The node that is paid. */
  nodeId: string
  amountSat: PerRequest<R, number>
  /**
   * What a payment opens. Default: `<METHOD> <route pattern>` if the price is a constant, `<METHOD> <path and query>` if it is a
   * function. A price that depends on the body or on headers needs a `resource` of its own.
   */
  resource?: PerRequest<R, string> | undefined
  /** What customers read. Default: `<METHOD> <route pattern>`. */
  description?: PerRequest<R, string> | undefined
  /** How far below the current price a paid price may be, from 0 to 1. Default: 0.1, or 0 with a `resource` of your own. */
  priceTolerance?: number | undefined
  /** Default: `mpp`. */
  protocol?: Offer | undefined
  /** Whether an L402 credential is good again and again until it expires. Default: `24h` if only L402 is sold, otherwise `never`. */
  l402?: { reuse: '24h' | 'never' } | undefined
  /** `true` is the same as `l402: { reuse: 'never' }`. */
  singleUse?: boolean | undefined
  /** How long a delivery may take before the payment can be presented again, 1 to 600. Default: 120. */
  holdSeconds?: number | undefined
  /** `false`: a customer who leaves before the answer has paid for it all the same. For handlers with side effects. Default: true. */
  releaseOnDisconnect?: boolean | undefined
  /** `pass`: your own handlers answer OPTIONS. Default: the paywall does, at no charge. */
  options?: 'answer' | 'pass' | undefined
  /** Unpaid visits that one client address may have open in this process; 0 turns the limit off. Default: 100. */
  maxOpenVisits?: number | undefined
  /** Default: the framework's own client address. Where there is none, visits are not limited. */
  clientAddress?: ((request: R) => string | undefined) | undefined
  onEvent?: EventHook | undefined
  /** How long to keep asking while nobody can tell whether a credential was paid. Default: 10,000. */
  patienceMs?: number | undefined
}

/** Throws on what can never work, so that no request is the first to find out. */
export function checkOptions<R>(options: PaywallOptions<R>): void {
  const { nodeId, amountSat, priceTolerance = 0, holdSeconds = 120, maxOpenVisits = 0, l402, singleUse } = options
  if (typeof nodeId !== 'string' || nodeId === '') throw new TypeError('`nodeId` is missing: which node is paid?')
  if (typeof amountSat !== 'function') checkAmount(amountSat)
  if (!(priceTolerance >= 0 && priceTolerance < 1)) throw new TypeError('`priceTolerance` must be at least 0 and less than 1.')
  if (!Number.isInteger(holdSeconds) || holdSeconds < 1 || holdSeconds > 600)
    throw new TypeError('`holdSeconds` must be a whole number from 1 to 600.')
  if (!Number.isInteger(maxOpenVisits) || maxOpenVisits < 0)
    throw new TypeError('`maxOpenVisits` must be a whole number, or 0 for no limit.')
  if (l402 !== undefined && l402.reuse !== '24h' && l402.reuse !== 'never')
    throw new TypeError("`l402.reuse` must be '24h' or 'never'.")
  if (l402?.reuse === '24h' && singleUse) throw new TypeError("`singleUse` and `l402: { reuse: '24h' }` contradict each other.")
  protocolsOf(options.protocol)
}

export function checkAmount(amountSat: unknown): asserts amountSat is number {
  if (!Number.isSafeInteger(amountSat) || (amountSat as number) < 1)
    throw new TypeError('`amountSat` must be a whole number of satoshis, at least 1.')
}

/** At one price an L402 buyer gets the same as an MPP buyer, unless the seller says otherwise. */
export function isL402Reusable<R>({ protocol, l402, singleUse }: PaywallOptions<R>): boolean {
  if (l402) return l402.reuse === '24h'
  return singleUse === undefined ? !protocolsOf(protocol).includes('mpp') : !singleUse
}
