import type { IncomingMessage } from 'node:http'
import type { Config } from '../../config.ts'
import { isLoopback } from '../../platform/loopback.ts'
import { Problem } from '../../problems.ts'

/** The name in a `Host` header, without its port, in the form that resolvers and browsers consider equal. */
export function hostNameOf(header = ''): string {
  let name = header.toLowerCase().replace(/:\d*$/, '')
  while (name.endsWith('.')) name = name.slice(0, -1)
  return name
}

/** The label before the nodes' domain; undefined for any other host. The domain's port, if it has one, is only for `endpointUrl`. */
export function nodeLabelOf(header: string | undefined, nodeDomain: string | undefined): string | undefined {
  if (nodeDomain === undefined) return undefined
  const [name, suffix] = [hostNameOf(header), `.${hostNameOf(nodeDomain)}`]
  return name.endsWith(suffix) ? name.slice(0, -suffix.length) : undefined
}

/**
 * Prevents DNS rebinding: if someone points a name at this machine, a browser treats their page as ours. So we only respond to names the
 * deployment knows. A request with two Host lines is refused, because a server in front of us may have read the other one.
 */
export function requireKnownHost(config: Config): (request: IncomingMessage, route: string | undefined) => Problem | undefined {
  const known = new Set([new URL(config.publicUrl).hostname, ...config.allowedHosts])
  const callback = new URL(config.nodeCallbackUrl).hostname
  const isKnown = (header: string, route = ''): boolean => {
    const name = hostNameOf(header)
    return (
      known.has(name) ||
      (isLoopback(config.host) && isLoopback(name)) ||
      nodeLabelOf(header, config.nodeDomain) !== undefined ||
      (name === callback && route.startsWith('/internal/'))
    )
  }
  return ({ headers, rawHeaders }, route) => {
    if (headers.host !== undefined && isKnown(headers.host, route) && hostLines(rawHeaders) === 1) return undefined
    return new Problem(
      'misdirected_request',
      'This service is not configured for this host name. Use the host of PUBLIC_URL, or add this name to ALLOWED_HOSTS.',
    )
  }
}

function hostLines(rawHeaders: string[]): number {
  let lines = 0
  for (let index = 0; index < rawHeaders.length; index += 2)
    if (rawHeaders[index]?.length === 4 && rawHeaders[index]?.toLowerCase() === 'host') lines++
  return lines
}
