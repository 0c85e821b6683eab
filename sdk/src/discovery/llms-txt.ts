import type { Protocol } from '../types.ts'
import { templateOf } from './path.ts'
import type { PricedRoute } from './routes.ts'
import { addressOf, L402_JSON, OPENAPI, type Service } from './service.ts'

const NAMES: Record<Protocol, string> = { l402: 'L402', mpp: 'MPP', x402: 'x402' }

export const namesOf = (protocols: readonly Protocol[]): string => protocols.map((one) => NAMES[one]).join(', ')

export const priceOf = ({ amountSat }: PricedRoute): string => (amountSat === null ? 'a price that varies' : `${amountSat} sat`)

/** `/llms.txt`, in the form of llmstxt.org. */
export function llmsTxtOf(service: Service, routes: readonly PricedRoute[]): string {
  const { title, description, docs = {} } = service
  const sold = routes.filter(({ isFree }) => !isFree)
  const hasL402 = sold.some((route) => isListed(route) && route.protocols.includes('l402'))
  const documents = [
    `- [OpenAPI](${addressOf(service, OPENAPI)}): every operation, with its price`,
    ...(hasL402 ? [`- [L402](${addressOf(service, L402_JSON)}): what L402 opens, in millisatoshis`] : []),
    ...(docs.apiReference === undefined ? [] : [`- [API reference](${docs.apiReference})`]),
    ...(docs.homepage === undefined ? [] : [`- [Homepage](${docs.homepage})`]),
  ]
  return [
    `# ${lineOf(title)}`,
    ...(description === undefined ? [] : ['', `> ${lineOf(description)}`]),
    '',
    'Paid over Lightning, without an account. Send a request without payment: the response is 402 with an invoice, in WWW-Authenticate',
    '(L402, MPP) or PAYMENT-REQUIRED (x402). Pay it, then send the request again with the proof. The price in the 402 is the one that counts.',
    '',
    '## Prices',
    '',
    ...routes.map((route) => `- ${lineFor(service, route)}`),
    '',
    '## Documents',
    '',
    ...documents,
    '',
  ].join('\n')
}

const isListed = ({ method, path }: PricedRoute): boolean => method !== '*' && templateOf(path) !== undefined

function lineFor(service: Service, route: PricedRoute): string {
  const { method, path, isFree, description, protocols } = route
  const what = `${method === '*' ? 'any method' : method} ${addressOf(service, path)}`
  const price = isFree ? 'free' : `${priceOf(route)} (${namesOf(protocols)})`
  const text = description === undefined ? '' : `: ${lineOf(description)}`
  // OpenAPI lists single operations, and a parameter cannot contain a slash.
  const note = isListed(route) ? '' : '. A pattern, not listed in openapi.json'
  return `\`${what}\`, ${price}${text}${note}`
}

/** Markdown would take a second line for something else. */
const lineOf = (text: string): string => text.replace(/\s+/g, ' ').trim()
