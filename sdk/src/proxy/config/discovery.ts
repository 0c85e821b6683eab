import { type DiscoveryDocuments, documentsOf } from '../../discovery/documents.ts'
import type { PricedRoute } from '../../discovery/routes.ts'
import type { ConfigMistake, ProxyConfig } from './config.ts'
import { canonicalSegment } from './path.ts'
import { hides, type Pattern, takesMethod } from './pattern.ts'
import type { Route } from './route.ts'

/** The documents that the proxy publishes about its routes, if any. Adds contradictions to `mistakes`. */
export function documentsFor(
  { discovery, openapi, publicUrl }: ProxyConfig,
  routes: readonly Route[],
  mistakes: ConfigMistake[],
): DiscoveryDocuments | undefined {
  if (!discovery) return undefined
  try {
    const documents = documentsOf({ ...discovery, publicUrl, openapi }, pricedRoutesOf(routes), (method, path) =>
      firstRoute(routes, method.toUpperCase(), path),
    )
    checkPaths(documents, routes, mistakes)
    return documents
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    mistakes.push({ path: [openapi ? 'openapi' : 'discovery'], message: error.message.replace(/^`openapi`:? /, '') })
    return undefined
  }
}

/** One for each method of a route, except methods that an earlier route takes, and OPTIONS, which is never charged. */
function pricedRoutesOf(routes: readonly Route[]): PricedRoute[] {
  return routes.flatMap((route, index) => {
    const { pattern, listed } = route
    if (listed.access === 'denied') return []
    const earlier = routes.slice(0, index).map((one) => one.pattern)
    const isTaken = (method: string): boolean => earlier.some((one) => hides(one, { ...pattern, methods: [method] }))
    const isRepeated = (method: string): boolean => method === 'HEAD' && pattern.methods?.includes('GET') === true
    const methods = [...new Set(pattern.methods)].filter((one) => one !== 'OPTIONS' && !isRepeated(one) && !isTaken(one))
    return (pattern.methods ? methods : ['*']).map((method) => pricedRoute(route, method))
  })
}

function pricedRoute({ pattern, listed, config: { description } }: Route, method: string): PricedRoute {
  const { access, amountSat = null, protocols = [] } = listed
  return { method, path: publishedPath(pattern), amountSat, isFree: access === 'free', description, protocols }
}

/**
 * Discovery reads `:name` and `(…)` anywhere in a segment as a parameter. In the proxy's own patterns, only a whole segment is a
 * parameter.
 */
function publishedPath({ path, segments, hasRest }: Pattern): string {
  const written = path.slice(1).split('/')
  const parts = segments.map((segment, index) => segment?.replace(/[:()]/g, percentEncoded) ?? written[index])
  return `/${[...parts, ...(hasRest ? ['**'] : [])].join('/')}`
}

const percentEncoded = (character: string): string => `%${character.charCodeAt(0).toString(16).toUpperCase()}`

/** The first route that takes all requests of an operation. Undefined if this route is not paid. */
function firstRoute(routes: readonly Route[], method: string, template: string): PricedRoute | undefined {
  if (method === 'OPTIONS' || method === 'TRACE') return undefined
  const parts = template.slice(1).split('/')
  const segments = parts.map((part) => (/^\{[^{}]*\}$/.test(part) ? undefined : (canonicalSegment(part) ?? part)))
  const operation: Pattern = { methods: [method], path: template, segments, hasRest: false }
  const route = routes.find(({ pattern }) => hides(pattern, operation))
  return route?.listed.access === 'paid' ? pricedRoute(route, method) : undefined
}

/** The documents are served before all routes, so a route for one of them would never be used. */
function checkPaths(documents: DiscoveryDocuments, routes: readonly Route[], mistakes: ConfigMistake[]): void {
  for (const [index, { pattern }] of routes.entries()) {
    const { segments, path, hasRest } = pattern
    const isOnePath = !hasRest && !segments.includes(undefined)
    if (isOnePath && takesMethod(pattern, 'HEAD') && documents.answer('GET', `/${segments.join('/')}`))
      mistakes.push({
        path: ['routes', index, 'match'],
        message: `never matches, because discovery serves ${path}. Remove this route, or discovery.`,
      })
  }
}
