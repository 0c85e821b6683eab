import type { IncomingHttpHeaders } from 'node:http'

/** The name in a `Host` header, without its port: the same to every resolver, and so to every browser. */
export function hostNameOf(header = ''): string {
  let name = header.toLowerCase().replace(/:\d*$/, '')
  while (name.endsWith('.')) name = name.slice(0, -1)
  return name
}

/** What stands before the domain of nodes; undefined for any other host. The domain's port, if it has one, is only for `endpointUrl`. */
export function nodeLabelOf(header: string | undefined, nodeDomain: string | undefined): string | undefined {
  if (nodeDomain === undefined) return undefined
  const [name, suffix] = [hostNameOf(header), `.${hostNameOf(nodeDomain)}`]
  return name.endsWith(suffix) ? name.slice(0, -suffix.length) : undefined
}

/**
 * For fastify's `rewriteUrl`: `https://<label>.<nodeDomain>/x` becomes `/n/node_<label>/x`; any other request keeps its URL. What the
 * client asked for is only ever appended, so that no path under a node's name, however it is written, is one of the service.
 */
export function rewriteNodeHost(
  nodeDomain: string | undefined,
): (request: { url?: string | undefined; headers: IncomingHttpHeaders }) => string {
  return ({ url = '/', headers }) => {
    const label = nodeLabelOf(headers.host, nodeDomain)
    if (label === undefined) return url
    // A name below the domain that no node can have is still none of the service's: `.` is no node id, and answered as such.
    return `/n/${/^[a-z0-9-]+$/.test(label) ? `node_${label}` : '.'}${url}`
  }
}
