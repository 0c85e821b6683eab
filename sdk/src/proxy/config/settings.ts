import type { DiscoveryDocuments } from '../../discovery/documents.ts'
import { type ConfigMistake, type ProxyConfig, ProxyConfigError, type ProxyRouteConfig } from './config.ts'
import { documentsFor } from './discovery.ts'
import { checkFields } from './fields.ts'
import { hides, type Pattern, patternOf } from './pattern.ts'
import { type Route, routeOf } from './route.ts'
import { DEFAULTS, listenOf, PROXY } from './schema.ts'

/** A checked configuration, with its defaults. */
export type Settings = {
  listen: { host: string; port: number }
  upstream: URL
  nodeId: string
  maxOpenVisits: number
  maxBodyBytes: number
  set: Readonly<Record<string, string>>
  remove: readonly string[]
  publicUrl: string | undefined
  trustProxy: false | number | readonly string[]
  routes: readonly Route[]
  /** Undefined if the proxy publishes nothing. */
  documents: DiscoveryDocuments | undefined
}

const MAX_BODY_BYTES = 10_485_760
const KINDS = ['amountSat', 'priceFrom', 'free', 'deny'] as const
/** Settings that only make sense for a paid route. */
const ONLY_PAID = ['bind', 'resource', 'description', ...Object.keys(DEFAULTS).filter((name) => name !== 'timeouts')] as const

/** Throws a `ProxyConfigError` with all mistakes. */
export function settingsOf(config: ProxyConfig): Settings {
  const mistakes: ConfigMistake[] = []
  checkFields(config, PROXY, [], mistakes)
  const given: readonly unknown[] = Array.isArray(config?.routes) ? config.routes : []
  const patterns = given.map((route, index) => checkRoute(route as ProxyRouteConfig, index, mistakes))
  checkOrder(patterns, mistakes)
  if (config?.openapi !== undefined && config.discovery === undefined)
    mistakes.push({ path: ['openapi'], message: 'has an effect only together with discovery.' })
  if (mistakes.length > 0) throw new ProxyConfigError(mistakes)
  const routes = config.routes.map((route, index) => routeOf(config, route, patterns[index] as Pattern))
  const documents = documentsFor(config, routes, mistakes)
  if (mistakes.length > 0) throw new ProxyConfigError(mistakes)
  const { limits, headers } = config
  return {
    listen: listenOf(config.listen ?? '127.0.0.1:8080') ?? { host: '127.0.0.1', port: 8080 },
    upstream: new URL(config.upstream),
    nodeId: config.node,
    maxOpenVisits: limits?.openChallengesPerAddress ?? 100,
    maxBodyBytes: limits?.maxBodyBytes ?? MAX_BODY_BYTES,
    set: headers?.set ?? {},
    remove: headers?.remove ?? [],
    publicUrl: config.publicUrl,
    trustProxy: config.trustProxy ?? false,
    routes,
    documents,
  }
}

function checkRoute(route: ProxyRouteConfig, index: number, mistakes: ConfigMistake[]): Pattern | undefined {
  if (typeof route !== 'object' || route === null) return undefined
  const path = ['routes', index]
  const kinds = KINDS.filter((name) => route[name] !== undefined)
  if (kinds.length !== 1) mistakes.push({ path, message: `must have exactly one of ${KINDS.join(', ')}.` })
  const isPaid = kinds.includes('amountSat') || kinds.includes('priceFrom')
  const idle = isPaid || kinds.length === 0 ? [] : ONLY_PAID.filter((name) => route[name as keyof ProxyRouteConfig] !== undefined)
  for (const name of idle) mistakes.push({ path: [...path, name], message: 'has an effect only on a paid route. Remove it.' })
  if (route.bind !== undefined && route.resource !== undefined)
    mistakes.push({ path: [...path, 'bind'], message: 'has no effect together with resource. Remove one of them.' })
  if (typeof route.match !== 'string') return undefined
  const pattern = patternOf(route.match)
  if (typeof pattern !== 'string') return pattern
  mistakes.push({ path: [...path, 'match'], message: `It ${pattern}.` })
  return undefined
}

/** A route that never matches would charge nobody. */
function checkOrder(patterns: readonly (Pattern | undefined)[], mistakes: ConfigMistake[]): void {
  for (const [index, later] of patterns.entries()) {
    const first = later ? patterns.slice(0, index).findIndex((earlier) => earlier && hides(earlier, later)) : -1
    if (first >= 0)
      mistakes.push({
        path: ['routes', index, 'match'],
        message: `never matches, because routes[${first}] takes all of its requests. Put the more specific route first.`,
      })
  }
}
