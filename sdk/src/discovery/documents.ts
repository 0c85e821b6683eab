import type { Answer } from '../paywall/answers.ts'
import { l402JsonOf } from './l402-json.ts'
import { llmsTxtOf } from './llms-txt.ts'
import { openapiOf, type RouteFor } from './openapi.ts'
import type { PricedRoute } from './routes.ts'
import { basePathOf, checkService, L402_JSON, LLMS, OPENAPI, type Service } from './service.ts'

const MAX_AGE_SECONDS = 300
const ALLOWED = 'GET, HEAD, OPTIONS'

export type DiscoveryDocuments = {
  /** The `Link` header for 402s (RFC 8631). */
  link: string
  /** The response, or undefined if the request is for something else. */
  answer(method: string, path: string): Answer | undefined
}

/**
 * Created once: nothing in the documents depends on a request. `routeFor` finds the route for an operation of the seller's own
 * OpenAPI document. By default, that is the route with the same path, or else the first that covers it.
 */
export function documentsOf(service: Service, routes: readonly PricedRoute[], routeFor?: RouteFor): DiscoveryDocuments {
  checkService(service)
  const l402 = l402JsonOf(service, routes)
  const documents = new Map([[OPENAPI, document('service-desc', 'application/json', openapiOf(service, routes, routeFor))]])
  if (l402) documents.set(L402_JSON, document('service-meta', 'application/json', l402))
  if (service.docs?.llms === undefined) documents.set(LLMS, document('service-doc', 'text/plain', llmsTxtOf(service, routes)))
  const hidden = routes.find(({ method, path, isFree }) => !isFree && documents.has(path) && /^(?:GET|HEAD|\*)$/.test(method))
  if (hidden) throw new TypeError(`\`routes\`: ${hidden.path} cannot be sold, because discovery serves its own document there.`)
  const base = basePathOf(service)
  return {
    link: [...documents].map(([path, { rel, type }]) => `<${base}${path}>; rel="${rel}"; type="${type}"`).join(', '),
    answer(method, path) {
      const found = documents.get(path)
      if (!found || !ALLOWED.split(', ').includes(method)) return undefined
      return method === 'OPTIONS' ? PREFLIGHT : { status: 200, headers: headersOf(found.type), body: found.body }
    },
  }
}

type Document = { rel: string; type: string; body: string }

function document(rel: string, type: string, content: object | string): Document {
  return { rel, type, body: typeof content === 'string' ? content : JSON.stringify(content) }
}

const ANYONE = { 'Access-Control-Allow-Origin': '*' }

const PREFLIGHT: Answer = {
  status: 204,
  headers: { ...ANYONE, 'Access-Control-Allow-Methods': ALLOWED, 'Access-Control-Allow-Headers': '*', Allow: ALLOWED },
  body: '',
}

const headersOf = (type: string): Record<string, string> => ({
  ...ANYONE,
  'Cache-Control': `max-age=${MAX_AGE_SECONDS}`,
  'Content-Type': type === 'text/plain' ? 'text/plain; charset=utf-8' : type,
})
