import type { IncomingMessage } from 'node:http'
import { isIPv6 } from 'node:net'
import type { NodeAddress } from '../../platform/node-agent.ts'

/** What passes between a client and a node, and what does not. Headers are lists of names and values, as they came: repeated ones stay repeated. */

/** They speak of one connection, and ours to the node is another one. `Upgrade` is set again for websockets, the framing for bodies. */
const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade'])

/**
 * Cookies are the service's own, not the node's. Whoever believes a forwarding header must know who wrote it: the node cannot.
 * `Expect` was answered by our server before we see the request. Host and framing are written anew.
 */
const NOT_FOR_THE_NODE = new Set(['cookie', 'forwarded', 'x-real-ip', 'via', 'host', 'expect', 'content-length'])

/**
 * Under `/n/` all nodes and the service share one origin: no node may leave anything behind in a browser, or act there as the service.
 * What does no harm is named, since browsers learn new headers.
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

/** Node writes these without a body, unless told of one; all others it would frame as chunked, though there is nothing to send. */
const USUALLY_WITHOUT_BODY = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE'])

const WEBSOCKET = ['Connection', 'Upgrade', 'Upgrade', 'websocket']

export function pairs(rawHeaders: string[]): [name: string, value: string][] {
  return rawHeaders.flatMap((name, index) => (index % 2 === 0 ? [[name, rawHeaders[index + 1] ?? '']] : []))
}

/** Everything but what speaks of the one connection: the usual names, and those that `Connection` names itself. */
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

/** From what the parser understood, never from what was written: two readers of one message must not disagree where it ends. */
function framingOf({ method = '', headers }: IncomingMessage): string[] {
  if (headers['transfer-encoding'] !== undefined) return ['Transfer-Encoding', 'chunked']
  if (headers['content-length'] !== undefined) return ['Content-Length', headers['content-length']]
  return USUALLY_WITHOUT_BODY.has(method) ? [] : ['Content-Length', '0']
}

/** `ours` are the service's own headers; the node's of the same name are dropped. */
export function headersTowardsClient(response: IncomingMessage, ours: Record<string, string>, isWebsocket = false): string[] {
  const set: Record<string, string> = { ...ours, ...HARMLESS_IN_A_BROWSER }
  const isChunked = response.headers['transfer-encoding'] !== undefined
  const kept = endToEnd(response.rawHeaders).filter(([name]) => {
    const lower = name.toLowerCase()
    return FOR_THE_CLIENT.has(lower) && !Object.hasOwn(set, lower) && !(isChunked && lower === 'content-length')
  })
  return [...Object.entries(set).flat(), ...kept.flat(), ...(isWebsocket ? WEBSOCKET : [])]
}

/** A handshake as RFC 6455 has it. One with a body is none: the bytes of the body would become the first bytes of the conversation. */
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
