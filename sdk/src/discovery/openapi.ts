import { isObject } from '../../../protocol/src/bytes.ts'
import { checkedOffers, type Json, listedPathOf, type Offer, ownDocument, ownOperations, serverPathOf } from './own-document.ts'
import { covers, shapeOf, templateOf } from './path.ts'
import { namesOf, type PricedRoute, priceOf } from './routes.ts'
import { addressOf, LLMS, type Service } from './service.ts'

/** The route that serves an operation of the seller's own document. An operation is, for example, `get` and `/articles/{id}`. */
export type RouteFor = (method: string, path: string) => PricedRoute | undefined

/**
 * `/openapi.json`: the seller's own document, if there is one, with prices. Throws if the document contradicts the prices. Only
 * operations that MPP clients can pay have `x-payment-info`, because these clients take it for an MPP offer; other paid
 * operations only declare the response 402.
 */
export function openapiOf(
  service: Service,
  routes: readonly PricedRoute[],
  routeFor: RouteFor = (method, path) => bestRoute(routes, method, path),
): object {
  const document = ownDocument(service, routes)
  const serverPath = serverPathOf(service)
  const paths = isObject(document.paths) ? document.paths : {}
  const operations = ownOperations(paths)
  for (const [path, item] of Object.entries(paths))
    if (isObject(item) && '$ref' in item && routes.some((route) => isFor(route, serverPath + path)))
      throw new TypeError(`\`openapi\`: ${path} is a \`$ref\`, to which no price can be added. Replace it by what it refers to.`)
  for (const { method, path, operation, isElsewhere } of operations) {
    if (isElsewhere) continue
    // OPTIONS is never charged.
    const route = method === 'options' ? undefined : routeFor(method, serverPath + path)
    addPrice(`${method.toUpperCase()} ${path}`, operation, route)
  }
  const known = new Set(operations.map(({ method, path }) => `${method} ${shapeOf(path)}`))
  const ids = new Set(operations.map(({ operation }) => operation.operationId))
  for (const route of routes) {
    const path = listedPathOf(route, serverPath)
    const method = route.method.toLowerCase()
    if (path === undefined) continue
    const key = `${method} ${shapeOf(path)}`
    if (known.has(key)) continue
    known.add(key)
    // OpenAPI forbids two paths that differ only in the names of their parameters.
    const written = Object.keys(paths).find((one) => shapeOf(one) === shapeOf(path)) ?? path
    const operation = {
      ...newOperation(route, method, written, paths[written], ids),
      ...ownScope(document, route, paths[written]),
    }
    addPrice(`${route.method} ${path}`, operation, route)
    paths[written] = { ...(isObject(paths[written]) ? paths[written] : {}), [method]: operation }
  }
  return { ...document, 'x-service-info': serviceInfo(service, document['x-service-info']), paths }
}

/**
 * The seller's document may require a key, or name another server, for its own operations. This must not apply to a route that is
 * added.
 */
function ownScope({ security, servers }: Json, { requiresAuth }: PricedRoute, item: unknown): Json {
  const isOpen = !requiresAuth && Array.isArray(security) && security.length > 0
  const isElsewhere = isObject(item) && item.servers !== undefined
  return { ...(isOpen ? { security: [] } : {}), ...(isElsewhere ? { servers } : {}) }
}

/** The route with the same path, else the first that covers it. A GET route also takes HEAD. */
function bestRoute(routes: readonly PricedRoute[], method: string, path: string): PricedRoute | undefined {
  const verb = method === 'head' ? ['HEAD', 'GET', '*'] : [method.toUpperCase(), '*']
  const possible = routes.filter((route) => verb.includes(route.method))
  return possible.find((route) => isSame(route, path)) ?? possible.find((route) => isFor(route, path))
}

const isSame = (route: PricedRoute, path: string): boolean => shapeOf(templateOf(route.path)?.path ?? '') === shapeOf(path)
const isFor = (route: PricedRoute, path: string): boolean => isSame(route, path) || covers(route.path, path)

function addPrice(name: string, operation: Json, route: PricedRoute | undefined): void {
  const paid = route?.isFree ? undefined : route
  const offer = paid?.protocols.includes('mpp') ? offerOf(paid) : undefined
  const others = checkedOffers(name, operation['x-payment-info'], offer, paid)
  if (offer) operation['x-payment-info'] = { offers: [offer, ...others] }
  if (!paid) return
  const description = `Payment required: ${priceOf(paid)}, by ${namesOf(paid.protocols)}.`
  operation.responses = { 402: { description }, ...(isObject(operation.responses) ? operation.responses : {}) }
}

function offerOf({ amountSat, description }: PricedRoute): Offer {
  const amount = amountSat === null ? null : String(amountSat)
  return {
    intent: 'charge',
    method: 'lightning',
    amount,
    currency: 'sat',
    ...(description === undefined ? {} : { description }),
  }
}

function newOperation(
  { method: verb, description }: PricedRoute,
  method: string,
  path: string,
  item: unknown,
  ids: Set<unknown>,
): Json {
  const shared = isObject(item) && Array.isArray(item.parameters) ? item.parameters.filter(isObject) : []
  const names = [...path.matchAll(/\{([^{}]+)\}/g)].map(([, name]) => name)
  const parameters = names
    .filter((name) => !shared.some((one) => one.name === name && one.in === 'path'))
    .map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } }))
  const words = path.split(/[^A-Za-z0-9]+/).map((word) => word.slice(0, 1).toUpperCase() + word.slice(1))
  const id = `${method}${words.join('')}`
  let operationId = id
  for (let number = 2; ids.has(operationId); number++) operationId = `${id}${number}`
  ids.add(operationId)
  return {
    operationId,
    summary: description ?? `${verb} ${path}`,
    ...(parameters.length > 0 ? { parameters } : {}),
    responses: { 200: { description: 'Success' } },
  }
}

function serviceInfo(service: Service, own: unknown): Json {
  const { categories, docs } = service
  const { docs: ownDocs, ...others } = isObject(own) ? own : {}
  const links = { ...(isObject(ownDocs) ? ownDocs : {}), ...docs }
  return {
    ...others,
    ...(categories === undefined ? {} : { categories }),
    docs: { ...links, llms: links.llms ?? addressOf(service, LLMS) },
  }
}
