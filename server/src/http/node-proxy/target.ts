import type { IncomingHttpHeaders } from 'node:http'
import { nodeLabelOf } from '../hooks/hosts.ts'

/** What a request wants of which node. `nodeId` is undefined when what stands in its place cannot be the id of a node. */
export type NodeTarget = { nodeId: string | undefined; path: string }
export type TargetOf = (request: { url?: string | undefined; headers: IncomingHttpHeaders }) => NodeTarget | undefined

/** The id undecoded: in any other spelling it is not an id. Then everything else, byte for byte. */
const BY_PATH = /^\/n\/([A-Za-z0-9_-]{1,200})(?![^/?])(.*)$/s
const LABEL = /^[a-z0-9-]{1,63}$/

/**
 * Undefined: the request is the service's own. Without a domain for nodes, `/n/<id>/x` is the node's. With one, it is
 * `<label>.<domain>/x` and nothing else, so that no node shares an origin with the service; and on such a name everything is the
 * node's, so that no path, however it is written, reaches the service.
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
