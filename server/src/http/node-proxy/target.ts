import type { IncomingHttpHeaders } from 'node:http'
import { nodeLabelOf } from '../hooks/hosts.ts'

/** The node and path a request is for. `nodeId` is undefined if the part in its place cannot be a node id. */
export type NodeTarget = { nodeId: string | undefined; path: string }
export type TargetOf = (request: { url?: string | undefined; headers: IncomingHttpHeaders }) => NodeTarget | undefined

/** The id is not decoded: in any other spelling it is not an id. The rest is kept byte for byte. */
const BY_PATH = /^\/n\/([A-Za-z0-9_-]{1,200})(?![^/?])(.*)$/s
const LABEL = /^[a-z0-9-]{1,63}$/

/**
 * Undefined: the request is for the service. Without a domain for nodes, `/n/<id>/x` is for the node. With one, only `<label>.<domain>/x`
 * is, so that no node shares an origin with the service. On such a name every request is for the node, so that no path, in any spelling,
 * reaches the service.
 */
export function nodeTargets(nodeDomain: string | undefined): TargetOf {
  if (nodeDomain === undefined)
    return ({ url = '/' }) => {
      if (!url.startsWith('/n/')) return undefined
      const [, nodeId, rest = ''] = BY_PATH.exec(url) ?? []
      return { nodeId, path: absolute(rest) }
    }
  return ({ url = '/', headers }) => {
    const label = nodeLabelOf(headers.host, nodeDomain)
    if (label === undefined) return undefined
    const isNode = LABEL.test(label) && /^[/?]/.test(url)
    return { nodeId: isNode ? `node_${label}` : undefined, path: absolute(url) }
  }
}

const absolute = (path: string): string => (path.startsWith('/') ? path : `/${path}`)
