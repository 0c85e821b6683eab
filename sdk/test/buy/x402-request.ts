import { createHash } from 'node:crypto'

export const sha256 = (data: string | Buffer): string => createHash('sha256').update(data).digest('hex')

/** The members are in the order of the canonical form. Headers must be in ascending order. */
export function requestHashOf(
  method: string,
  url: string,
  body: string | Buffer = '',
  headers: Record<string, string> = {},
): string {
  const bound = Object.entries(headers).map(([name, value]) => ({
    name,
    valueHash: sha256(Buffer.concat([Buffer.of(1), Buffer.from(value)])),
  }))
  return sha256(JSON.stringify({ bodyHash: sha256(body), domain: 'x402:exact:lnbtc:bolt11:http:1', headers: bound, method, url }))
}
