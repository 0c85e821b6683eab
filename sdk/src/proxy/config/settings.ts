import { protocolsOf } from '../../paywall/offer.ts'
import { type ConfigMistake, type ProxyConfig, ProxyConfigError, type ProxyRoute, type ProxyRouteConfig } from './config.ts'
import { checkFields } from './fields.ts'
import { hides, type Pattern, patternOf } from './pattern.ts'
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
}

export type Route = {
  pattern: Pattern
  /** The route's own settings, and the general ones that it does not override. */
  config: ProxyRouteConfig
  listed: ProxyRoute
  firstByteMs: number
}

const MAX_BODY_BYTES = 10_485_760
const FIRST_BYTE_MS = 60_000
const KINDS = ['amountSat', 'priceFrom', 'free', 'deny'] as const
/** What only makes sense for a paid route. */
const ONLY_PAID = ['bind', 'resource', 'description', ...Object.keys(DEFAULTS).filter((name) => name !== 'timeouts')] as const

/** Throws a `ProxyConfigError` with all mistakes. */
export function settingsOf(config: ProxyConfig): Settings {
  const mistakes: ConfigMistake[] = []
  checkFields(config, PROXY, [], mistakes)
  const given: readonly unknown[] = Array.isArray(config?.routes) ? config.routes : []
  const patterns = given.map((route, index) => checkRoute(route as ProxyRouteConfig, index, mistakes))
  checkOrder(patterns, mistakes)
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
    routes: config.routes.map((route, index) => routeOf(config, route, patterns[index] as Pattern)),
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

/** A route that never matches is a price that nobody pays. */
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

function routeOf(config: ProxyConfig, own: ProxyRouteConfig, pattern: Pattern): Route {
  const general = Object.fromEntries(Object.keys(DEFAULTS).map((name) => [name, config[name as keyof ProxyConfig]]))
  const set = Object.entries(own).filter(([, value]) => value !== undefined)
  const merged = { ...general, ...Object.fromEntries(set) } as ProxyRouteConfig
  return {
    pattern,
    config: merged,
    listed: listedRoute(merged, pattern),
    firstByteMs: merged.timeouts?.firstByteMs ?? FIRST_BYTE_MS,
  }
}

/** The query may hold a key. */
function withoutSecrets(url: string): string {
  const { origin, pathname } = new URL(url)
  return `${origin}${pathname}`
}

function listedRoute(route: ProxyRouteConfig, { methods, path }: Pattern): ProxyRoute {
  const { match, amountSat, priceFrom, free, deny, bind, resource, description = match } = route
  if (free) return { match, methods, path, access: 'free' }
  if (deny !== undefined) return { match, methods, path, access: 'denied', status: deny }
  return {
    ...{ match, methods, path, access: 'paid', amountSat: amountSat ?? null },
    ...(priceFrom === undefined ? {} : { priceFrom: withoutSecrets(priceFrom) }),
    protocols: protocolsOf(route),
    description,
    ...(resource === undefined ? { bind: bind ?? (priceFrom === undefined ? 'path' : 'url') } : { resource }),
  }
}
