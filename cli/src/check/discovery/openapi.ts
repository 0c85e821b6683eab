import { isObject } from '../../../../protocol/src/bytes.ts'
import { MSAT_PER_SAT } from '../../../../protocol/src/units.ts'
import { type Findings, textIn } from '../findings.ts'
import { type Advertised, METHODS, type Operation, urlOf } from './operation.ts'

type Json = Record<string, unknown>
const objectIn = (value: unknown): Json => (isObject(value) ? value : {})
const listIn = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

/** The operations of an OpenAPI document. What cannot be called is reported as skipped. */
export function operationsIn(document: Json, origin: string, findings: Findings): Operation[] {
  const base = baseOf(document, origin)
  if (base.origin !== origin) {
    findings.skip('/openapi.json', `Its operations are on another server. Check that one: boltyard check ${base.origin}`)
    return []
  }
  return Object.entries(objectIn(document.paths)).flatMap(([path, item]) =>
    Object.entries(objectIn(item)).flatMap(([key, value]) => {
      const method = key.toUpperCase()
      if (!METHODS.includes(method) || !isObject(value)) return []
      return operationIn(base, method, path, value, listIn(objectIn(item).parameters), findings)
    }),
  )
}

/** A server URL with variables is ignored, because their values are unknown. */
function baseOf({ servers }: Json, origin: string): URL {
  const given = objectIn(listIn(servers)[0]).url
  const isUsable = typeof given === 'string' && !given.includes('{') && URL.canParse(given, origin)
  return new URL(isUsable ? given : '/', origin)
}

function operationIn(
  base: URL,
  method: string,
  path: string,
  operation: Json,
  shared: unknown[],
  findings: Findings,
): Operation[] {
  const name = `${method} ${path}`
  const parameters = [...shared, ...listIn(operation.parameters)].filter(isObject)
  const target = urlOf(base, path, examplesOf(parameters))
  if (!target) {
    findings.skip(name, 'Its path is invalid.')
    return []
  }
  for (const { in: place, required, ...one } of parameters)
    if (place === 'query' && required === true && typeof one.name === 'string')
      target.url.searchParams.set(one.name, exampleOf(one) ?? '1')
  const info = operation['x-payment-info']
  const advertised = info === undefined ? [] : offersIn(info)
  if (info !== undefined && advertised === undefined) findings.of(name)('discovery-malformed', 'x-payment-info without offers')
  const is402Declared = Object.hasOwn(objectIn(operation.responses), '402')
  if (info !== undefined && !is402Declared) findings.of(name)('discovery-402-undeclared', 'no response 402')
  return [{ name, method, ...target, advertised: advertised ?? [], isListed: true, is402Declared }]
}

/** Early versions of x-payment-info had one offer instead of a list. Offers with methods other than Lightning are ignored. */
function offersIn(info: unknown): Advertised[] | undefined {
  if (!isObject(info)) return undefined
  const offers = Array.isArray(info.offers) ? info.offers.filter(isObject) : typeof info.method === 'string' ? [info] : undefined
  return offers
    ?.filter(({ method, intent }) => method === 'lightning' && (intent ?? 'charge') === 'charge')
    .map(({ amount, currency = 'sat' }) => ({
      source: 'openapi.json',
      protocol: 'mpp',
      amountMsat: currency === 'sat' && /^\d{1,12}$/.test(textIn(amount)) ? Number(amount) * MSAT_PER_SAT : undefined,
    }))
}

function examplesOf(parameters: Json[]): Map<string, string> {
  const inPath = parameters.filter((one) => one.in === 'path' && typeof one.name === 'string')
  return new Map(
    inPath.flatMap((one) => {
      const example = exampleOf(one)
      return example === undefined ? [] : [[String(one.name), example]]
    }),
  )
}

function exampleOf({ example, examples, schema }: Json): string | undefined {
  const of = objectIn(schema)
  const named = objectIn(Object.values(objectIn(examples))[0]).value
  const candidates = [example, named, of.example, listIn(of.examples)[0], of.default, listIn(of.enum)[0]]
  const found = candidates.find((one) => ['string', 'number', 'boolean'].includes(typeof one))
  return found === undefined ? undefined : String(found)
}
