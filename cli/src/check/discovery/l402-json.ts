import { isObject } from '../../../../protocol/src/bytes.ts'
import { type Findings, textIn } from '../findings.ts'
import { METHODS, type Operation, urlOf } from './operation.ts'

type Json = Record<string, unknown>

/** The resources of /.well-known/l402.json. */
export function resourcesIn(document: Json, origin: string, findings: Findings): Operation[] {
  const services = Array.isArray(document.services) ? document.services.filter(isObject) : []
  const resources = services.flatMap(({ resources }) => (Array.isArray(resources) ? resources.filter(isObject) : []))
  return resources.flatMap((resource) => {
    const { path } = resource
    const method = textIn(resource.method ?? 'GET').toUpperCase()
    const name = `${method} ${textIn(path)}`
    const target = typeof path === 'string' && METHODS.includes(method) ? urlOf(new URL(origin), path, new Map()) : undefined
    if (target) return [{ name, method, ...target, isListed: false, is402Declared: false, advertised: [advertisedIn(resource)] }]
    findings.skip(name, 'Its path or method is invalid.')
    return []
  })
}

function advertisedIn({ pricing }: Json): Operation['advertised'][number] {
  const { model, price_msat: given } = isObject(pricing) ? pricing : {}
  const isFixed = model !== 'dynamic' && /^\d{1,15}$/.test(textIn(given))
  return { source: 'l402.json', protocol: 'l402', amountMsat: isFixed ? Number(given) : undefined }
}

export function nodeKeyIn({ provider }: Json): string | undefined {
  const key = isObject(provider) ? provider.node_pubkey : undefined
  return typeof key === 'string' ? key.toLowerCase() : undefined
}
