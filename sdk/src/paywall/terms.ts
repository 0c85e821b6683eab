import type { Protocol } from '../types.ts'
import { sha256Hex } from './digest.ts'
import { checkAmount, type PaywallOptions } from './options.ts'
import type { Target } from './visit.ts'

/** What this request costs, and what a payment must be for to count. */
export type Terms = {
  nodeId: string
  protocols: readonly Protocol[]
  resource: string
  description: string
  amountSat: number
  /** Prices from a rate move between quote and payment, so a little less than the price still counts. */
  minAmountSat: number
}

export async function termsOf<R>(options: PaywallOptions<R>, protocols: Protocol[], target: Target, request: R): Promise<Terms> {
  const { nodeId, amountSat: price, resource: named, description: text, priceTolerance } = options
  const amountSat = typeof price === 'function' ? await price(request) : price
  // A price that came out as 0 or NaN must not become a gift.
  checkAmount(amountSat)
  const resource = typeof named === 'function' ? await named(request) : (named ?? (await defaultResource(options, target)))
  const description = typeof text === 'function' ? await text(request) : (text ?? defaultDescription(target))
  const tolerance = priceTolerance ?? (named === undefined ? 0.1 : 0)
  // The small number makes up for fractions such as 0.29 × 100 = 28.999999999999996.
  const minAmountSat = amountSat - Math.floor(amountSat * tolerance + 1e-9)
  return { nodeId, protocols, resource, description, amountSat, minAmountSat }
}

const LONGEST_RESOURCE = 200
const LONGEST_DESCRIPTION = 500
const PRINTABLE_ASCII = /^[\x20-\x7e]*$/

/** A price that is a function may depend on the path and the query, so they bind the payment; a constant price is the route's. */
function defaultResource<R>({ amountSat }: PaywallOptions<R>, { method, route, url }: Target): string | Promise<string> {
  const verb = verbOf(method)
  const path = typeof amountSat === 'function' ? url : route
  const resource = `${verb} ${path}`
  if (resource.length <= LONGEST_RESOURCE && PRINTABLE_ASCII.test(resource)) return resource
  // Cut off instead, whoever pays for one page would have paid for all that begin the same way.
  return sha256Hex(path).then((digest) => `${verb} sha256:${digest}`)
}

function defaultDescription({ method, route }: Target): string {
  const text = `${verbOf(method)} ${route}`
  return text.length <= LONGEST_DESCRIPTION ? text : `${text.slice(0, LONGEST_DESCRIPTION - 1)}…`
}

/** HEAD asks about what GET sells. */
const verbOf = (method: string): string => (method === 'HEAD' ? 'GET' : method)
