import { l402JsonOf } from './l402-json.ts'
import { listedPathOf, serverPathOf } from './own-document.ts'
import { namesOf, type PricedRoute, priceOf } from './routes.ts'
import { addressOf, L402_JSON, OPENAPI, type Service } from './service.ts'

/** `/llms.txt`, in the form of llmstxt.org. */
export function llmsTxtOf(service: Service, routes: readonly PricedRoute[]): string {
  const { title, description, docs = {} } = service
  const serverPath = serverPathOf(service)
  const hasL402 = l402JsonOf(service, routes) !== undefined
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
    `Paid over Lightning${routes.some(({ requiresAuth }) => requiresAuth) ? '' : ', without an account'}. Send a request without payment: the response is 402 with an invoice, in WWW-Authenticate`,
    '(L402, MPP) or PAYMENT-REQUIRED (x402). Pay it, then send the request again with the proof. The price in the 402 is the one that counts.',
    '',
    '## Prices',
    '',
    ...routes.map((route) => `- ${lineFor(service, route, serverPath)}`),
    '',
    '## Documents',
    '',
    ...documents,
    '',
  ].join('\n')
}

function lineFor(service: Service, route: PricedRoute, serverPath: string): string {
  const { method, path, isFree, description, protocols } = route
  const what = `${method === '*' ? 'any method' : method} ${addressOf(service, path)}`
  const price = isFree ? 'free' : `${priceOf(route)} (${namesOf(protocols)})`
  const text = description === undefined ? '' : `: ${lineOf(description)}`
  const note =
    listedPathOf(route, serverPath) === undefined
      ? ' (not listed in openapi.json: the method or path cannot be written there, or is outside its server URL)'
      : ''
  return `\`${what}\`, ${price}${text}${note}`
}

/** A second line could mean something else in Markdown, such as a heading. */
const lineOf = (text: string): string => text.replace(/\s+/g, ' ').trim()
