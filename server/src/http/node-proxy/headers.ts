import type { IncomingMessage } from 'node:http'
import { isIPv6 } from 'node:net'
import type { NodeAddress } from '../../platform/node-agent.ts'

/** Which headers pass between a client and a node. Headers are lists of names and values, as received: repeated ones stay repeated. */

/**
 * These describe a single connection, and ours to the node is a different one. `Upgrade` is set again for websockets, and framing for
 * bodies.
 */
const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade'])

/**
 * Cookies belong to the service, not the node. Forwarding headers can only be trusted by a server that knows who wrote them, and the node
 * does not. Our server has already answered `Expect`. Host and framing are rewritten.
 */
const NOT_FOR_THE_NODE = new Set(['cookie', 'forwarded', 'x-real-ip', 'via', 'host', 'expect', 'content-length'])

/**
 * Under `/n/`, all nodes and the service share one origin, so a node must not leave anything in a browser or act there as the service. This
 * is an allow-list, because browsers keep adding headers.
 */
const FOR_THE_CLIENT = new Set(
  ['content-type', 'content-length', 'content-encoding', 'date', 'cache-control', 'www-authenticate', 'retry-after'].concat(
    ['accept', 'protocol', 'extensions', 'version'].map((name) => `sec-websocket-${name}`),
  ),
)
const HARMLESS_IN_A_BROWSER = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "sandbox; default-src 'none'",
}

/** Unless a length is set, node:http sends these methods without a body and frames all others as chunked, even with nothing to send. */
const USUALLY_WITHOUT_BODY = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE'])

const WEBSOCKET = ['Connection', 'Upgrade', 'Upgrade', 'websocket']

export function pairs(rawHeaders: string[]): [name: string, value: string][] {
  return rawHeaders.flatMap((name, index) => (index % 2 === 0 ? [[name, rawHeaders[index + 1] ?? '']] : []))
}

/** Everything except hop-by-hop headers: the standard names, and those listed in `Connection`. */
function endToEnd(rawHeaders: string[]): [name: string, value: string][] {
  const all = pairs(rawHeaders)
  const named = all.filter(([name]) => name.toLowerCase() === 'connection').flatMap(([, value]) => tokens(value))
  const dropped = new Set([...HOP_BY_HOP, ...named])
  return all.filter(([name]) => !dropped.has(name.toLowerCase()) && !name.toLowerCase().startsWith('proxy-'))
}

export const tokens = (value: string | undefined): string[] => (value ?? '').split(',').map((token) => token.trim().toLowerCase())

export function headersTowardsNode(request: IncomingMessage, { host, port }: NodeAddress, isWebsocket: boolean): string[] {
  const kept = endToEnd(request.rawHeaders).filter(
    ([name]) => !NOT_FOR_THE_NODE.has(name.toLowerCase()) && !name.toLowerCase().startsWith('x-forwarded'),
  )
  const framing = isWebsocket ? WEBSOCKET : framingOf(request)
  return ['Host', `${isIPv6(host) ? `[${host}]` : host}:${port}`, ...kept.flat(), ...framing]
}

/** Uses the parsed headers, never the raw ones: two parsers of one message must not disagree about where it ends. */
function framingOf({ method = '', headers }: IncomingMessage): string[] {
  if (headers['transfer-encoding'] !== undefined) return ['Transfer-Encoding', 'chunked']
  if (headers['content-length'] !== undefined) return ['Content-Length', headers['content-length']]
  return USUALLY_WITHOUT_BODY.has(method) ? [] : ['Content-Length', '0']
}

/** `ours` are the service's own headers; the node's headers with the same names are dropped. */
export function headersTowardsClient(response: IncomingMessage, ours: Record<string, string>, isWebsocket = false): string[] {
  const set: Record<string, string> = { ...ours, ...HARMLESS_IN_A_BROWSER }
  const isChunked = response.headers['transfer-encoding'] !== undefined
  const kept = endToEnd(response.rawHeaders).filter(([name]) => {
    const lower = name.toLowerCase()
    return FOR_THE_CLIENT.has(lower) && !Object.hasOwn(set, lower) && !(isChunked && lower === 'content-length')
  })
  return [...Object.entries(set).flat(), ...kept.flat(), ...(isWebsocket ? WEBSOCKET : [])]
}

/** A handshake as defined by RFC 6455. One with a body is not valid: the body would become the first bytes of the websocket. */
export function isWebsocketHandshake({ method, headers, httpVersion }: IncomingMessage): boolean {
  return (
    method === 'GET' &&
    httpVersion === '1.1' &&
    headers.upgrade?.toLowerCase() === 'websocket' &&
    headers['sec-websocket-key'] !== undefined &&
    headers['transfer-encoding'] === undefined &&
    (headers['content-length'] ?? '0') === '0'
  )
}
