import type { ProxyRoute } from '../../../sdk/src/proxy/index.ts'
import { type Paint, sanitize, sat, table } from '../terminal.ts'

export function forPeople(routes: readonly ProxyRoute[], paint: Paint): string {
  const rows = routes.map((route) => [sanitize(route.match), priceOf(route), route.protocols?.join(', ') ?? '', boundTo(route)])
  return table(['ROUTE', 'PRICE', 'PROTOCOLS', 'A PAYMENT IS FOR'], [...rows, ['anything else', '404', '', '']], paint)
}

function priceOf({ access, amountSat, priceFrom, status }: ProxyRoute): string {
  if (access === 'free') return 'free'
  if (access === 'denied') return String(status)
  return typeof amountSat === 'number' ? sat(amountSat) : sanitize(priceFrom ?? '')
}

function boundTo({ bind, resource }: ProxyRoute): string {
  if (resource !== undefined) return sanitize(resource)
  return bind === undefined ? '' : { route: 'the whole route', path: 'one path', url: 'one path and query' }[bind]
}
