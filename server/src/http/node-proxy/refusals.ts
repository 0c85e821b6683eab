import type { IncomingMessage } from 'node:http'
import { Problem } from '../../problems.ts'
import { pairs } from './headers.ts'

/** Requests that are refused before a node or the store is involved. */

/**
 * A server in front of us may disagree about where such a request ends, so that the rest of it could pass for another client's
 * request. node:http accepts HTTP/0.9 (a line feed in a path is enough) and HTTP/2.0 in plain text, and does not decode transfer
 * codings other than chunked. HTTP/1.0 has no chunked coding.
 */
export function isAmbiguous({ httpVersion, headers }: IncomingMessage): boolean {
  const coding = headers['transfer-encoding']?.toLowerCase()
  if (httpVersion === '1.0') return coding !== undefined
  return httpVersion !== '1.1' || (coding ?? 'chunked') !== 'chunked'
}

const ASKED_FOR_HERE = ['same-origin', 'none']

/**
 * A browser that has stored a node's password sends it with requests from any page, and a form can pay without a preflight request. Clients
 * other than browsers send neither `Sec-Fetch-Site` nor `Origin`.
 */
export function refuseOtherSites({ headers }: IncomingMessage): void {
  const site = headers['sec-fetch-site']
  const isFromHere = site === undefined || ASKED_FOR_HERE.includes(String(site))
  if (isFromHere && (headers.origin === undefined || isOriginOf(headers.origin, headers.host))) return
  throw new Problem('forbidden_origin', 'Web pages from other origins cannot call a node. Call it from a server or a script.')
}

/** Both hosts are parsed with the scheme of the origin, which determines the default port. */
function isOriginOf(origin: string, host = ''): boolean {
  if (!URL.canParse(origin)) return false
  const { protocol, host: from } = new URL(origin)
  const own = `${protocol}//${host}`
  return /^https?:$/.test(protocol) && URL.canParse(own) && new URL(own).host === from
}

const API_KEY = 'byk_'

/**
 * A node knows only its own passwords. An API key that is sent here by mistake gives access to the account, so the node must not see it
 * anywhere: on its own, as a Bearer token, as a password or in the query. With two Authorization lines, we cannot know which one the node
 * would read.
 */
export function refuseKeys({ rawHeaders, url = '' }: IncomingMessage): void {
  const headers = pairs(rawHeaders).map(([name, value]) => [name.toLowerCase(), value] as const)
  const credentials = headers.filter(([name]) => name === 'authorization').map(([, value]) => value)
  const isKeyless =
    credentials.length <= 1 &&
    !credentials.some((value) => /(^|,)\s*bearer\b/i.test(value) || basicIn(value).includes(API_KEY)) &&
    // Cookies are not forwarded, and a browser sends those of every port on its host.
    !headers.some(([name, value]) => name !== 'cookie' && value.includes(API_KEY)) &&
    !unescaped(url).includes(API_KEY)
  if (isKeyless) return
  throw new Problem('unauthorized', 'API keys do not work here. Use one of the node’s own passwords with Basic authentication.', {
    headers: { 'www-authenticate': 'Basic' },
  })
}

const basicIn = (value: string): string =>
  /^basic /i.test(value) ? Buffer.from(value.slice('basic '.length), 'base64').toString('latin1') : ''

/** Decoded as a node would; invalid escapes stay as they are. */
const unescaped = (url: string): string =>
  url.replace(/%([0-9a-f]{2})/gi, (_escape, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
