import type { IncomingMessage } from 'node:http'
import { isForSharedCaches } from '../../paywall/answers.ts'
import { withoutCredentials } from '../../paywall/credentials.ts'
import type { RequestPayment } from '../../paywall/gate/delivery.ts'
import type { Client } from './forwarded.ts'

/** Headers as a flat list of alternating names and values, in which a name can be repeated. */
export type HeaderList = string[]

/** These headers are only for one connection, so they are not forwarded. */
const HOP_BY_HOP = [
  ...['connection', 'http2-settings', 'keep-alive', 'proxy-authenticate', 'proxy-authorization', 'proxy-connection'],
  ...['te', 'trailer', 'transfer-encoding', 'upgrade'],
]

/** Never forwarded to the upstream as the client sent them. */
const NEVER_SENT = new Set([
  ...HOP_BY_HOP,
  // The proxy sets or handles these itself, or says the same in `X-Forwarded-…`.
  ...['content-length', 'expect', 'host', 'forwarded', 'x-forwarded', 'x-real-ip'],
  // Programs that expect a certain load balancer or CDN in front of them take the client's address from these headers.
  ...['client-ip', 'x-client-ip', 'true-client-ip', 'cf-connecting-ip', 'fastly-client-ip', 'x-cluster-client-ip'],
  ...['x-azure-clientip', 'x-appengine-user-ip', 'x-original-forwarded-for'],
  // Payments.
  ...['payment-authorization', 'payment-signature', 'accept-payment'],
  // Some frameworks take the path or the method from these, so a request could reach a route other than the one that was paid for.
  ...['x-original-url', 'x-original-uri', 'x-rewrite-url', 'x-rewrite-uri', 'x-script-name'],
  ...['x-http-method', 'x-http-method-override', 'x-method-override'],
  // CGI would turn this header into the variable HTTP_PROXY.
  'proxy',
])
const PREFIXES = /^x-(?:payment|forwarded-|ssl-client-)/
const NEVER_RETURNED = new Set(HOP_BY_HOP.filter((name) => name !== 'proxy-authenticate'))
const RECEIPTS = new Set(['payment-receipt', 'payment-response'])

/** WSGI and CGI do not distinguish `x_payment_id` from `x-payment-id`. */
const asSeenByCgi = (name: string): string => (/[^a-z0-9-]/.test(name) ? name.replace(/[^a-z0-9]/g, '-') : name)

/**
 * Removed, as nginx does, because some servers give such names a special meaning: gunicorn takes part of the path from
 * `SCRIPT_NAME`.
 */
const isForCgi = (name: string): boolean => name.includes('_')

export type RequestRules = {
  upstreamHost: string
  set: Readonly<Record<string, string>>
  remove: readonly string[]
}

export type Sent = { client: Client; requiresAuth: boolean; payment: RequestPayment | undefined }

export type HeaderRewriter = (request: IncomingMessage, sent: Sent) => HeaderList

export function requestHeaders({ upstreamHost, set, remove }: RequestRules): HeaderRewriter {
  const last = Object.entries(set)
  const replaced = new Set([...Object.keys(set), ...remove].map((name) => asSeenByCgi(name.toLowerCase())))
  const keep = (name: string): boolean => !replaced.has(name)
  return (request, { client, requiresAuth, payment }) => {
    const own: [string, string][] = [
      ['host', upstreamHost],
      ['x-forwarded-for', client.forwardedFor],
      ['x-forwarded-proto', client.scheme],
      ...(client.host === undefined ? [] : [['x-forwarded-host', client.host] as [string, string]]),
      ...(payment ? paymentHeaders(payment) : []),
    ]
    const headers: HeaderList = []
    for (const [name, value] of own) if (keep(name)) headers.push(name, value)
    const { rawHeaders } = request
    const named = namesIn(request.headers.connection)
    for (let at = 0; at < rawHeaders.length; at += 2) {
      const [name, value] = [rawHeaders[at] ?? '', rawHeaders[at + 1] ?? '']
      const lower = name.toLowerCase()
      const seen = asSeenByCgi(lower)
      if (isForCgi(name) || NEVER_SENT.has(seen) || PREFIXES.test(seen) || !keep(seen) || named?.has(lower)) continue
      const sent = seen === 'authorization' ? withoutCredentials(value, requiresAuth) : value
      if (sent !== undefined) headers.push(name, sent)
    }
    for (const [name, value] of last) headers.push(name, value)
    return headers
  }
}

function paymentHeaders({ id, amountSat, protocol }: RequestPayment): [string, string][] {
  return [
    ['x-payment-id', id],
    ['x-payment-amount-sat', String(amountSat)],
    ['x-payment-protocol', protocol],
  ]
}

/** `isPaid`: the paywall sets the receipt and the headers for caches itself. */
export function responseHeaders({ rawHeaders, headers, statusCode }: IncomingMessage, isPaid: boolean): HeaderList {
  const named = namesIn(headers.connection)
  const hasNoLength = headers['transfer-encoding'] !== undefined || statusCode === 204
  const list: HeaderList = []
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? ''
    const lower = name.toLowerCase()
    if (NEVER_RETURNED.has(lower) || named?.has(lower) || (isPaid && (RECEIPTS.has(lower) || isForSharedCaches(lower)))) continue
    if (hasNoLength && lower === 'content-length') continue
    list.push(name, rawHeaders[at + 1] ?? '')
  }
  return list
}

function namesIn(connection: string | undefined): Set<string> | undefined {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return undefined
  return new Set(connection.split(',').map((name) => name.trim().toLowerCase()))
}
