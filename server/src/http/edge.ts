import type { IncomingMessage } from 'node:http'
import proxyAddr from '@fastify/proxy-addr'
import type { Config } from '../config.ts'
import { newId } from '../platform/ids.ts'
import { Problem } from '../problems.ts'
import { requireKnownHost } from './hooks/hosts.ts'

/** Applies to every request, whether it is for the service or for a node. */
export type Edge = {
  requestIdOf: (request: IncomingMessage) => string
  /** The client's address, as far as the proxies in front of us are trusted. */
  addressOf: (request: IncomingMessage) => string
  /** Headers of every response. */
  headers: (requestId: string) => Record<string, string>
  /** Why the request is refused before anything else is checked. `route` is undefined for nodes and unknown paths. */
  refusal: (
    request: IncomingMessage,
    route?: { url?: string | undefined; isHealthCheck?: boolean | undefined },
  ) => Problem | undefined
  isStopping: () => boolean
}

/** A client's request id is kept if it is safe in a log line. */
const SANE_REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/
/** Without includeSubDomains: subdomains may belong to other services, which must decide for themselves. */
const ONE_YEAR = 'max-age=31536000'

export function edgeOf(config: Config, isStopping: () => boolean): Edge {
  const trusted = trustedProxies(config.trustProxy)
  const unknownHost = requireKnownHost(config)
  const isHttps = config.publicUrl.startsWith('https:')
  return {
    requestIdOf: ({ headers }) => {
      const given = headers['x-request-id']
      return typeof given === 'string' && SANE_REQUEST_ID.test(given) ? given : newId('req')
    },
    addressOf: (request) => (trusted ? proxyAddr(request, trusted) : (request.socket.remoteAddress ?? '')),
    headers: (requestId) => ({
      'x-request-id': requestId,
      'x-content-type-options': 'nosniff',
      ...(isHttps ? { 'strict-transport-security': ONE_YEAR } : {}),
    }),
    refusal: (request, route) => {
      if (request.headers.host === undefined && request.httpVersion === '1.1')
        return new Problem('bad_request', 'The Host header is missing.')
      const misdirected = route?.isHealthCheck ? undefined : unknownHost(request, route?.url)
      return misdirected ?? (isStopping() ? stopping() : undefined)
    },
    isStopping,
  }
}

const stopping = (): Problem =>
  new Problem('service_unavailable', 'The service is stopping. Try again shortly.', {
    headers: { 'retry-after': '5', connection: 'close' },
  })

/**
 * A number: how many proxies in front of us are trusted, starting with the nearest. Addresses that a client claims beyond them
 * are not trusted.
 */
export function trustedProxies(trust: Config['trustProxy']): string[] | false | ((address: string, hop: number) => boolean) {
  return typeof trust === 'number' ? (_address, hop) => hop < trust : trust
}
