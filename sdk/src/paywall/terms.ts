import type { Protocol } from '../types.ts'
import { sha256Hex } from './digest.ts'
import { checkAmount, type PaywallOptions } from './options.ts'
import type { Target } from './visit.ts'

/** The request's price, and what a payment for it must match. */
export type Terms = {
  nodeId: string
  protocols: readonly Protocol[]
  resource: string
  description: string
  amountSat: number
  /** Prices based on an exchange rate change between quote and payment, so slightly less than the price is accepted. */
  minAmountSat: number
}

/** Undefined if the terms have to be computed asynchronously. */
export function constantTermsOf<R>(
  options: PaywallOptions<R>,
  protocols: readonly Protocol[],
  target: Target,
): Terms | undefined {
  const { amountSat, resource: named, description: text } = options
  if (typeof amountSat === 'function' || typeof named === 'function' || typeof text === 'function') return undefined
  const resource = named ?? shortResource(options, target)
  return resource === undefined
    ? undefined
    : checkedTerms(options, protocols, amountSat, resource, text ?? defaultDescription(target))
}

export async function termsOf<R>(
  options: PaywallOptions<R>,
  protocols: readonly Protocol[],
  target: Target,
  request: R,
): Promise<Terms> {
  const { amountSat: price, resource: named, description: text } = options
  const amountSat = typeof price === 'function' ? await price(request) : price
  const resource = typeof named === 'function' ? await named(request) : (named ?? (await defaultResource(options, target)))
  const description = typeof text === 'function' ? await text(request) : (text ?? defaultDescription(target))
  return checkedTerms(options, protocols, amountSat, resource, description)
}

function checkedTerms<R>(
  { nodeId, resource: named, priceTolerance }: PaywallOptions<R>,
  protocols: readonly Protocol[],
  amountSat: number,
  resource: string,
  description: string,
): Terms {
  // A computed price of 0 or NaN must not make the resource free.
  checkAmount(amountSat)
  const tolerance = priceTolerance ?? (named === undefined ? 0.1 : 0)
  // The epsilon compensates for rounding such as 0.29 × 100 = 28.999999999999996.
  const minAmountSat = amountSat - Math.floor(amountSat * tolerance + 1e-9)
  return { nodeId, protocols, resource, description, amountSat, minAmountSat }
}

const LONGEST_RESOURCE = 200
const LONGEST_DESCRIPTION = 500
const PRINTABLE_ASCII = /^[\x20-\x7e]*$/

async function defaultResource<R>(options: PaywallOptions<R>, target: Target): Promise<string> {
  // A digest, because a payment for a truncated path would open all pages with the same beginning.
  return shortResource(options, target) ?? `${verbOf(target.method)} sha256:${await sha256Hex(pathOf(options, target))}`
}

/** Undefined if the resource would be too long or not ASCII. */
function shortResource<R>(options: PaywallOptions<R>, target: Target): string | undefined {
  const resource = `${verbOf(target.method)} ${pathOf(options, target)}`
  return resource.length <= LONGEST_RESOURCE && PRINTABLE_ASCII.test(resource) ? resource : undefined
}

/** A price function may depend on the path and query, so they bind the payment. A constant price is bound to the route. */
const pathOf = <R>({ amountSat }: PaywallOptions<R>, { route, url }: Target): string =>
  typeof amountSat === 'function' ? url : route

function defaultDescription({ method, route }: Target): string {
  const text = `${verbOf(method)} ${route}`
  return text.length <= LONGEST_DESCRIPTION ? text : `${text.slice(0, LONGEST_DESCRIPTION - 1)}…`
}

/** HEAD is for the same resource as GET. */
const verbOf = (method: string): string => (method === 'HEAD' ? 'GET' : method)
