import { isIP } from 'node:net'
import { isObject } from '../../../../protocol/src/bytes.ts'
import { isUrlOrPath, MAX_CATEGORIES } from '../../discovery/service.ts'
import { boundHeaders } from '../../paywall/options.ts'
import { type Field, type Fields, flag, listOf, oneOf, text, url, whole } from './fields.ts'

/** The number of satoshis that can ever exist. */
const MOST_SAT = 2_100_000_000_000_000
const PROTOCOLS: readonly unknown[] = ['mpp', 'l402', 'x402']
const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/i
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
/** These headers frame the message, or tell the upstream what was paid. */
const OURS = /^(?:connection|content-length|expect|keep-alive|te|trailer|transfer-encoding|upgrade|x-payment.*)$/i

const isHeaderName = (name: unknown): boolean => typeof name === 'string' && HEADER_NAME.test(name)

export const DEFAULTS: Fields = {
  protocols: {
    allowed: 'a list of mpp, l402 and x402, with at least one of them',
    is: (value) => Array.isArray(value) && value.length > 0 && value.every((one) => PROTOCOLS.includes(one)),
  },
  l402: { fields: { reuse: { ...oneOf('24h', 'never'), isRequired: true } } },
  requiresAuth: flag,
  bindHeaders: {
    allowed: 'a list of at most 20 header names, without headers that carry a payment',
    is: (value) => Array.isArray(value) && value.every(isHeaderName) && isBindable(value),
  },
  priceTolerance: {
    allowed: 'a number that is at least 0 and less than 1',
    is: (value) => typeof value === 'number' && value >= 0 && value < 1,
  },
  holdSeconds: whole(1, 600),
  releaseOnDisconnect: flag,
  html: flag,
  options: oneOf('answer', 'pass'),
  timeouts: { fields: { firstByteMs: whole(1, 86_400_000) } },
}

export const ROUTE: Fields = {
  match: {
    allowed: 'text such as "GET /articles/:id", of at most 500 characters',
    is: (value) => typeof value === 'string' && value.length <= 500,
    isRequired: true,
  },
  amountSat: whole(1, MOST_SAT, ' (satoshis)'),
  priceFrom: url('a URL that returns the price, such as http://127.0.0.1:3000/price', () => true),
  free: { allowed: 'true; leave it out if the route is not free', is: (value) => value === true },
  deny: {
    allowed: 'a status from 400 to 599 other than 402, such as 404',
    is: (value) => Number.isInteger(value) && (value as number) >= 400 && (value as number) <= 599 && value !== 402,
  },
  bind: oneOf('route', 'path', 'url'),
  resource: {
    allowed: 'ASCII text of 1 to 200 characters',
    is: (value) => typeof value === 'string' && /^[\x20-\x7e]{1,200}$/.test(value),
  },
  description: text(500),
  ...DEFAULTS,
}

const link: Field = { allowed: 'a URL, or a path that starts with /', is: isUrlOrPath }

const DISCOVERY: Fields = {
  title: { allowed: 'the name of your service', is: isFilled, isRequired: true },
  description: text(2_000),
  version: { allowed: 'text such as "1.2.0"; a number needs quotation marks', is: isFilled },
  categories: {
    allowed: `a list of at most ${MAX_CATEGORIES} texts`,
    is: (value) => Array.isArray(value) && value.length <= MAX_CATEGORIES && value.every(isFilled),
  },
  docs: { fields: { apiReference: link, homepage: link, llms: link } },
}

export const PROXY: Fields = {
  listen: {
    allowed: 'host:port, such as 0.0.0.0:8080, or a port',
    is: (value) => listenOf(value) !== undefined,
  },
  upstream: {
    ...url(
      'the URL of your program without a path, such as http://127.0.0.1:3000',
      ({ pathname, search }) => pathname + search === '/',
    ),
    isRequired: true,
  },
  node: {
    allowed: 'the id of the node that receives the payments: node_…, not its name',
    is: (value) => typeof value === 'string' && value.startsWith('node_'),
    isRequired: true,
  },
  routes: { each: ROUTE, isRequired: true },
  limits: {
    fields: { openChallengesPerAddress: whole(0, 1_000_000, '; 0 for no limit'), maxBodyBytes: whole(0, 2 ** 31) },
  },
  headers: {
    fields: {
      set: {
        allowed: 'names and values of headers; not those that frame a message, and not x-payment-…',
        is: (value) =>
          isObject(value) &&
          Object.entries(value).every(
            ([name, one]) => HEADER_NAME.test(name) && !OURS.test(name) && typeof one === 'string' && HEADER_VALUE.test(one),
          ),
      },
      remove: listOf('a list of header names', isHeaderName),
    },
  },
  publicUrl: url('the URL that customers use, such as https://api.example.com', ({ href }) => !href.includes('?')),
  discovery: { fields: DISCOVERY },
  openapi: { allowed: 'an OpenAPI 3 document or, in a configuration file, the path of one', is: isObject },
  trustProxy: {
    allowed:
      'false, the number of proxies in front of this one (1 to 10), or a list of their addresses or networks, such as 10.0.0.0/8',
    is: (value) =>
      value === false ||
      (Number.isInteger(value) && (value as number) >= 1 && (value as number) <= 10) ||
      (Array.isArray(value) && value.length > 0 && value.every((one) => networkOf(one) !== undefined)),
  },
  ...DEFAULTS,
}

function isFilled(value: unknown): boolean {
  return typeof value === 'string' && value.trim() !== ''
}

function isBindable(names: string[]): boolean {
  try {
    boundHeaders(names)
    return true
  } catch {
    return false
  }
}

export function listenOf(value: unknown): { host: string; port: number } | undefined {
  const [, host = '127.0.0.1', digits = ''] = /^(?:(.+):)?(\d{1,5})$/.exec(String(value)) ?? []
  const name = /^\[(.+)\]$/.exec(host)?.[1]
  if (digits === '' || Number(digits) > 65_535 || (name !== undefined ? isIP(name) !== 6 : !/^[\w.-]+$/.test(host)))
    return undefined
  return { host: name ?? host, port: Number(digits) }
}

export function networkOf(value: unknown): { address: string; family: 'ipv4' | 'ipv6'; bits: number } | undefined {
  const [, address = '', digits] = /^([0-9A-Fa-f.:]+)(?:\/(\d{1,3}))?$/.exec(String(value)) ?? []
  const version = isIP(address)
  const most = version === 6 ? 128 : 32
  const bits = digits === undefined ? most : Number(digits)
  return version === 0 || bits > most ? undefined : { address, family: version === 6 ? 'ipv6' : 'ipv4', bits }
}
