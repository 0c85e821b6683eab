import { isObject } from '../../../protocol/src/bytes.ts'
import { priceOf } from './llms-txt.ts'
import type { PricedRoute } from './routes.ts'
import { addressOf, basePathOf, type Service } from './service.ts'

export type Json = Record<string, unknown>
export type Offer = { intent: string; method: string; amount: string | null; currency: string; description?: string }

/** OpenAPI has no others. */
export const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace']

/** A copy of the seller's document, or an empty one; and the path that its own paths are relative to, as the application sees it. */
export function ownDocument(service: Service): { document: Json; base: string } {
  const { openapi, title, version = '1.0.0', description } = service
  const info = { title, version, ...(description === undefined ? {} : { description }) }
  const servers = [{ url: addressOf(service, '') || '/' }]
  // `security` says that no key or account is needed.
  if (openapi === undefined) return { document: { openapi: '3.1.0', info, servers, security: [] }, base: '' }
  const document: unknown = JSON.parse(JSON.stringify(openapi))
  if (!isObject(document) || !/^3\./.test(String(document.openapi)))
    throw new TypeError('`openapi` must be an OpenAPI 3 document.')
  const own = Array.isArray(document.servers) && document.servers.length > 0 ? document.servers : undefined
  const merged = { ...document, servers: own ?? servers, info: { ...info, ...(isObject(document.info) ? document.info : {}) } }
  return { document: merged, base: own ? pathOf(own[0], service) : '' }
}

/** Without the part of the path that the seller's proxy removes. */
function pathOf(server: unknown, service: Service): string {
  const url = isObject(server) && typeof server.url === 'string' ? server.url : ''
  const here = new URL(addressOf(service, '/'), 'http://shop.invalid').href
  if (url.includes('{') || !URL.canParse(url, here)) return ''
  const path = new URL(url, here).pathname.replace(/\/+$/, '')
  const removed = basePathOf(service)
  return `${path}/`.startsWith(`${removed}/`) ? path.slice(removed.length) : path
}

export function ownOperations(paths: Json): { method: string; path: string; operation: Json }[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(isObject(item) ? item : {}).flatMap(([method, operation]) =>
      METHODS.includes(method) && isObject(operation) ? [{ method, path, operation }] : [],
    ),
  )
}

/**
 * What the seller's own document offers by other payment methods. Throws if it has another price for Lightning than the paywall: clients
 * would see one price and be asked for another.
 */
export function checkedOffers(name: string, info: unknown, offer: Offer | undefined, paid: PricedRoute | undefined): Json[] {
  if (info === undefined) return []
  // Early versions had one offer in place of the list.
  const offers = isObject(info) ? (Array.isArray(info.offers) ? info.offers.filter(isObject) : [info]) : []
  const isLightning = ({ method, intent = 'charge' }: Json): boolean => method === 'lightning' && intent === 'charge'
  for (const { amount, currency = 'sat' } of offers.filter(isLightning)) {
    if (offer && currency === 'sat' && String(amount ?? null) === String(offer.amount)) continue
    const stated = amount === null || amount === undefined ? 'a price that varies' : `${amount} ${currency}`
    const actual = paid
      ? `charges ${priceOf(paid)}${offer ? '' : ', but not by MPP'}`
      : 'does not charge for it, or it is missing in `routes`'
    throw new TypeError(
      `\`openapi\`: x-payment-info of ${name} says ${stated}, but the paywall ${actual}. Remove it from your document: prices are added.`,
    )
  }
  return offers.filter((one) => !isLightning(one))
}
