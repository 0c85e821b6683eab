import type { IncomingMessage } from 'node:http'
import { BlockList, isIP } from 'node:net'
import { networkOf } from '../config/schema.ts'

/** Who sent a request and which URL they used, as far as the proxies in front of this one are trusted. */
export type Client = {
  address: string | undefined
  scheme: string
  host: string | undefined
  /** For the upstream: the client and the trusted proxies, in order. */
  forwardedFor: string
}
export type ClientOf = (request: IncomingMessage) => Client

type IsTrusted = (address: string, hop: number) => boolean

export function clientOf(trustProxy: false | number | readonly string[], publicUrl: string | undefined): ClientOf {
  const isTrusted = trusting(trustProxy)
  const known = publicUrl === undefined ? undefined : new URL(publicUrl)
  return (request) => {
    const remote = (request.socket.remoteAddress ?? '').replace(/^::ffff:(?=\d+\.)/i, '')
    const isForwarded = isTrusted?.(remote, 0) === true
    const chain = isForwarded ? [remote, ...listIn(request, 'x-forwarded-for').reverse()] : [remote]
    let hop = 0
    while (hop < chain.length - 1 && isTrusted?.(chain[hop] ?? '', hop)) hop++
    const [scheme] = isForwarded ? listIn(request, 'x-forwarded-proto') : []
    const [host] = isForwarded ? listIn(request, 'x-forwarded-host') : []
    return {
      address: chain[hop] || undefined,
      scheme: known?.protocol.slice(0, -1) ?? (scheme?.toLowerCase() === 'https' ? 'https' : 'http'),
      host: known?.host ?? host ?? request.headers.host,
      forwardedFor: chain
        .slice(0, hop + 1)
        .reverse()
        .join(', '),
    }
  }
}

function trusting(trustProxy: false | number | readonly string[]): IsTrusted | undefined {
  if (trustProxy === false) return undefined
  if (typeof trustProxy === 'number') return (_address, hop) => hop < trustProxy
  const list = new BlockList()
  for (const { address, bits, family } of trustProxy.flatMap((one) => networkOf(one) ?? [])) list.addSubnet(address, bits, family)
  return (address) => isIP(address) !== 0 && list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
}

function listIn({ headers }: IncomingMessage, name: string): string[] {
  const value = headers[name]
  return (Array.isArray(value) ? value.join(',') : (value ?? ''))
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '')
}
