import { isObject } from '../../../protocol/src/bytes.ts'
import { templateOf } from './path.ts'
import { type PricedRoute, priceOf } from './routes.ts'
import { addressOf, basePathOf, type Service } from './service.ts'

export type Json = Record<string, unknown>
export type Offer = { intent: string; method: string; amount: string | null; currency: string; description?: string }

/** OpenAPI has no other methods. */
export const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace']

/** A copy of the seller's document or, if there is none, a new document without operations. */
export function ownDocument(service: Service, routes: readonly PricedRoute[]): Json {
  const { openapi, title, version = '1.0.0', description } = service
  const info = { title, version, ...(description === undefined ? {} : { description }) }
  const servers = [{ url: addressOf(service, '') || '/' }]
  // An empty list says that no key or account is needed.
  const security = routes.some(({ requiresAuth }) => requiresAuth) ? {} : { security: [] }
  if (openapi === undefined) return { openapi: '3.1.0', info, servers, ...security }
  const document: unknown = JSON.parse(JSON.stringify(openapi))
  if (!isObject(document) || !/^3\./.test(String(document.openapi)))
    throw new TypeError('`openapi` must be an OpenAPI 3 document.')
  const ownInfo = isObject(document.info) ? document.info : {}
  return { ...document, servers: firstServer(openapi) ? document.servers : servers, info: { ...info, ...ownInfo } }
}

const firstServer = (openapi: unknown): Json | undefined =>
  isObject(openapi) && Array.isArray(openapi.servers) && isObject(openapi.servers[0]) ? openapi.servers[0] : undefined

/** What the paths of openapi.json are relative to, as the application sees it: without the part that the seller's proxy removes. */
export function serverPathOf(service: Service): string {
  const server = firstServer(service.openapi)
  if (!server) return ''
  const variables = isObject(server.variables) ? server.variables : {}
  const url = String(server.url ?? '').replace(/\{([^{}]*)\}/g, (_, name: string) => {
    const variable = variables[name]
    return isObject(variable) ? String(variable.default) : ''
  })
  const here = new URL(addressOf(service, '/'), 'http://shop.invalid').href
  if (!URL.canParse(url, here)) return ''
  const path = new URL(url, here).pathname.replace(/\/+$/, '')
  const removed = basePathOf(service)
  return `${path}/`.startsWith(`${removed}/`) ? path.slice(removed.length) : path
}

/** The path of a route in openapi.json. Undefined if OpenAPI cannot express the route, or `serverPath` does not contain it. */
export function listedPathOf({ method, path }: PricedRoute, serverPath: string): string | undefined {
  const template = templateOf(path)?.path
  const isListed = template?.startsWith(`${serverPath}/`) && METHODS.includes(method.toLowerCase())
  return isListed ? template?.slice(serverPath.length) : undefined
}

/** `isElsewhere`: the operation has its own `servers`, which may belong to somebody else. */
export function ownOperations(paths: Json): { method: string; path: string; operation: Json; isElsewhere: boolean }[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(isObject(item) ? item : {}).flatMap(([method, operation]) =>
      METHODS.includes(method) && isObject(operation)
        ? [{ method, path, operation, isElsewhere: hasServers(operation) || hasServers(item as Json) }]
        : [],
    ),
  )
}

const hasServers = ({ servers }: Json): boolean => Array.isArray(servers) && servers.length > 0

/**
 * What the seller's own document offers by other payment methods. Throws if its price for Lightning differs from the paywall's: clients
 * would see one price and be asked for another.
 */
export function checkedOffers(name: string, info: unknown, offer: Offer | undefined, paid: PricedRoute | undefined): Json[] {
  if (info === undefined) return []
  // Early versions of the format had one offer in place of the list.
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
