import { protocolsOf } from '../../paywall/offer.ts'
import type { ProxyConfig, ProxyRoute, ProxyRouteConfig } from './config.ts'
import type { Pattern } from './pattern.ts'
import { DEFAULTS } from './schema.ts'

const FIRST_BYTE_MS = 60_000

export type Route = {
  pattern: Pattern
  /** The route's own settings, and the general ones that it does not override. */
  config: ProxyRouteConfig
  listed: ProxyRoute
  firstByteMs: number
}

export function routeOf(config: ProxyConfig, own: ProxyRouteConfig, pattern: Pattern): Route {
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
