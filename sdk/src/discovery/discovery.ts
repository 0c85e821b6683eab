import { advertise } from '../paywall/advertised.ts'
import { type DiscoveryDocuments, documentsOf } from './documents.ts'
import { paywallOptions, pricedRoutes, type Routes } from './routes.ts'
import type { Service } from './service.ts'

export type DiscoveryOptions = Service & {
  /** What is sold: `{ 'GET /joke': paywall }`, each with the paywall itself or with its options. */
  routes: Routes
}

/** Returns the documents of these paywalls, and makes their 402s link to the documents. */
export function discoveryOf({ routes, ...service }: DiscoveryOptions): DiscoveryDocuments {
  const documents = documentsOf(service, pricedRoutes(routes))
  for (const [key, price] of Object.entries(routes)) advertise(paywallOptions(key, price), documents.link)
  return documents
}

/**
 * For any function from Request to Response: `const documents = discovery({ title: 'Jokes', routes: { 'GET /joke': joke } })`, then
 * `documents(request) ?? handler(request)`. Undefined if the request is for something else.
 */
export function discovery(options: DiscoveryOptions): (request: Request) => Response | undefined {
  const documents = discoveryOf(options)
  return ({ method, url }) => {
    const answer = documents.answer(method, new URL(url).pathname)
    if (!answer) return undefined
    const hasBody = method === 'GET'
    return new Response(hasBody ? answer.body : null, {
      status: answer.status,
      headers: answer.headers as Record<string, string>,
    })
  }
}
