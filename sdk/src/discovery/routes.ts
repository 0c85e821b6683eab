import { optionsOf } from '../paywall/advertised.ts'
import { protocolsOf } from '../paywall/offer.ts'
import { checkAmount, type PaywallOptions } from '../paywall/options.ts'
import type { Protocol } from '../types.ts'

/** What discovery says about a route. */
export type PricedRoute = {
  /** Such as `GET`; `*` for every method. GET includes HEAD. */
  method: string
  /** As the framework writes it: `/articles/:id`. */
  path: string
  /** Null if the price varies. Ignored if the route is free. */
  amountSat: number | null
  isFree?: boolean | undefined
  description?: string | undefined
  protocols: readonly Protocol[]
  /** The seller also asks for a credential of their own. */
  requiresAuth?: boolean | undefined
}

/** A paywall, or the options that it was created with. Discovery does not need the node. */
export type RoutePrice =
  | { ready(): Promise<void> }
  | (Omit<PaywallOptions<never>, 'nodeId'> & { nodeId?: string | undefined; route?: string | undefined })

export type Routes = { readonly [methodAndPath: string]: RoutePrice }

const KEY = /^(?:([A-Z]+|\*) )?(\/[^\s?#]*)$/

export function pricedRoutes(routes: Routes): PricedRoute[] {
  return Object.entries(routes).map(([key, price]) => {
    const [, method = '*', path] = KEY.exec(key) ?? []
    if (path === undefined) throw new TypeError(`\`routes\`: "${key}" must be a method and a path, such as "GET /joke".`)
    const { amountSat, description, free, ...offer } = paywallOptions(key, price)
    if (typeof amountSat !== 'function') checkAmount(amountSat)
    return {
      method,
      path,
      amountSat: typeof amountSat === 'function' ? null : amountSat,
      isFree: free === true,
      description: typeof description === 'string' ? description : undefined,
      protocols: protocolsOf(offer),
      requiresAuth: offer.requiresAuth,
    }
  })
}

/** The options object itself, which identifies the paywall. */
export function paywallOptions(key: string, price: RoutePrice): Exclude<RoutePrice, { ready(): unknown }> {
  const options = price && 'ready' in price ? optionsOf(price) : price
  if (options) return options
  throw new TypeError(`\`routes\`: the value of "${key}" must be a paywall or its options.`)
}

const NAMES: Record<Protocol, string> = { l402: 'L402', mpp: 'MPP', x402: 'x402' }

export const namesOf = (protocols: readonly Protocol[]): string => protocols.map((one) => NAMES[one]).join(', ')

export const priceOf = ({ amountSat }: PricedRoute): string => (amountSat === null ? 'a price that varies' : `${amountSat} sat`)
