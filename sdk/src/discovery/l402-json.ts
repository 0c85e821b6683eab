import { MSAT_PER_SAT } from '../../../protocol/src/units.ts'
import { templateOf } from './path.ts'
import type { PricedRoute } from './routes.ts'
import { addressOf, basePathOf, type Service } from './service.ts'

/** `/.well-known/l402.json`, or undefined if nothing is sold by L402. */
export function l402JsonOf(service: Service, routes: readonly PricedRoute[]): object | undefined {
  const base = basePathOf(service)
  const resources = routes.flatMap(({ method, path, amountSat, isFree, protocols }) => {
    const template = templateOf(path)
    if (isFree || method === '*' || !template || !protocols.includes('l402')) return []
    // A price that varies is only in the 402.
    const pricing =
      amountSat === null ? { model: 'dynamic', price_msat: null } : { model: 'fixed', price_msat: amountSat * MSAT_PER_SAT }
    return [{ path: base + template.path.replace(/\{(\w+)\}/g, ':$1'), method, pricing }]
  })
  if (resources.length === 0) return undefined
  const { title, description, publicUrl } = service
  return {
    version: '1.0',
    provider: { name: title, ...(publicUrl === undefined ? {} : { uri: addressOf(service, '/') }) },
    currencies: ['msat'],
    macaroon_versions: [0],
    payment_methods: ['bolt11'],
    services: [{ name: title, ...(description === undefined ? {} : { description }), resources }],
  }
}
