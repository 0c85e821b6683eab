import { concat, isObject, toHex, utf8Of } from './bytes.ts'
import { jcs } from './jcs.ts'
import type { Primitives } from './primitives.ts'
import type { X402Binding, X402Profile } from './x402.ts'

/** Binds a payment to a request: the hash of everything that decides what is sold, and the names that went into it. */

const DOMAIN = 'x402:exact:lnbtc:bolt11:'
const HASH = /^[0-9a-f]{64}$/
const METHOD = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/
/** The characters of a URI without its fragment. */
const URI = /^[A-Za-z][A-Za-z0-9+.-]*:[A-Za-z0-9\-._~:/?[\]@!$&'()*+,;=%]+$/
const BAD_ESCAPE = /%(?![0-9A-Fa-f]{2})/
const VALUE = /^[\t\x20-\x7e]*$/
/** Names that cannot be bound: their values change between a request and its paid repetition, or are the payment itself. */
const NEVER_BOUND = ['payment-signature']
const NEVER_BOUND_METADATA = ['x402/payment', 'progressToken']

/** May be asynchronous, because some runtimes have no hash function but that of Web Crypto. */
export type Hashing = { sha256: (data: Uint8Array) => Uint8Array | Promise<Uint8Array> }

export type HttpCall = {
  /** Exactly as it was sent: upper and lower case matter. */
  method: string
  /** The public URL with its query, not normalized. */
  url: string
  /** The bytes of the body before anything has parsed them. */
  body?: Uint8Array
  /** The SHA-256 of the body, if it is already known. */
  bodyHash?: Uint8Array
  /** All lines of the header with this lowercase name. */
  header: (name: string) => string | readonly string[] | undefined
}

/** Undefined if the request cannot be bound, for example because of a header that is not ASCII. */
export function bindHttp(
  { sha256 }: Pick<Primitives, 'sha256'>,
  call: HttpCall,
  headers: readonly string[],
): X402Binding | undefined {
  const steps = httpBinding(call, headers)
  let step = steps.next()
  while (!step.done) step = steps.next(sha256(step.value))
  return step.value
}

export async function bindHttpAsync(
  { sha256 }: Hashing,
  call: HttpCall,
  headers: readonly string[],
): Promise<X402Binding | undefined> {
  const steps = httpBinding(call, headers)
  let step = steps.next()
  while (!step.done) step = steps.next(await sha256(step.value))
  return step.value
}

/** Yields what has to be hashed and is given the hash, so that the same steps serve synchronous and asynchronous hashing. */
function* httpBinding(call: HttpCall, headers: readonly string[]): Generator<Uint8Array, X402Binding | undefined, Uint8Array> {
  const requestBindingParams = { headers: [...headers] }
  if (!areParams('http:1', requestBindingParams) || !METHOD.test(call.method) || !isHttpUrl(call.url)) return undefined
  const bodyHash = toHex(call.bodyHash ?? (yield call.body ?? new Uint8Array()))
  const bound: { name: string; valueHash: string }[] = []
  for (const name of headers) {
    const value = headerValue(call.header(name))
    if (value === 'unusable') return undefined
    bound.push({ name, valueHash: toHex(yield presence(value)) })
  }
  const binding = { domain: `${DOMAIN}http:1`, method: call.method, url: call.url, bodyHash, headers: bound }
  return { requestHash: toHex(yield utf8Of(jcs(binding))), requestBindingProfile: 'http:1', requestBindingParams }
}

export type McpCall = {
  /** The URI of the MCP server as it is configured. */
  server: string
  name: string
  /** The arguments as they were sent; undefined if none were sent. */
  arguments?: unknown
  meta?: unknown
}

/** A call of a tool. Undefined if it cannot be bound. */
export async function bindMcp({ sha256 }: Hashing, call: McpCall, metadata: readonly string[]): Promise<X402Binding | undefined> {
  const requestBindingParams = { server: call.server, metadata: [...metadata] }
  const { arguments: given = {}, meta = {} } = call
  if (!areParams('mcp:1', requestBindingParams) || call.name === '' || !isObject(given) || !isObject(meta)) return undefined
  try {
    const binding = {
      domain: `${DOMAIN}mcp:1`,
      server: call.server,
      method: 'tools/call',
      name: call.name,
      arguments: given,
      metadata: await Promise.all(
        metadata.map(async (name) => ({
          name,
          valueHash: toHex(await sha256(presence(Object.hasOwn(meta, name) ? utf8Of(jcs(meta[name])) : undefined))),
        })),
      ),
    }
    return { requestHash: toHex(await sha256(utf8Of(jcs(binding)))), requestBindingProfile: 'mcp:1', requestBindingParams }
  } catch {
    // No canonical form, or nested too deeply.
    return undefined
  }
}

/** Whether these fields of a requirement validly identify a request. */
export function isBinding(extra: Record<string, unknown>): boolean {
  const { requestHash, requestBindingProfile: profile, requestBindingParams: params } = extra
  const isHash = typeof requestHash === 'string' && HASH.test(requestHash)
  return isHash && (profile === 'http:1' || profile === 'mcp:1') && isObject(params) && areParams(profile, params)
}

function areParams(profile: X402Profile, params: Record<string, unknown>): boolean {
  const { headers, server, metadata } = params
  const names = Object.keys(params)
  if (profile === 'http:1')
    return names.length === 1 && areNames(headers, (name) => HEADER_NAME.test(name) && !NEVER_BOUND.includes(name))
  const isName = (name: string): boolean => name !== '' && name.isWellFormed() && !NEVER_BOUND_METADATA.includes(name)
  return names.length === 2 && isUri(server) && areNames(metadata, isName)
}

/** In ascending order of UTF-16 code units, so that there is one list for a set of names. */
function areNames(names: unknown, isName: (name: string) => boolean): boolean {
  return (
    Array.isArray(names) &&
    names.every((name, at) => typeof name === 'string' && isName(name) && (at === 0 || names[at - 1] < name))
  )
}

export const isHttpUrl = (url: unknown): url is string => isUri(url) && /^https?:\/\/[^/?]/i.test(url)

/** Absolute, and without a user name or password. */
function isUri(uri: unknown): uri is string {
  if (typeof uri !== 'string' || !URI.test(uri) || BAD_ESCAPE.test(uri)) return false
  const [, authority = ''] = /^[^:]*:\/\/([^/?]*)/.exec(uri) ?? []
  return !authority.includes('@') && URL.canParse(uri)
}

/** Several lines are joined as RFC 9421 says. */
function headerValue(given: string | readonly string[] | undefined): Uint8Array | undefined | 'unusable' {
  const lines = typeof given === 'string' ? [given] : (given ?? [])
  if (lines.length === 0) return undefined
  if (!lines.every((line) => VALUE.test(line))) return 'unusable'
  return utf8Of(lines.map(trimmed).join(', '))
}

/**
 * Removes only spaces and tabs; `trim` would remove more. A regular expression would take quadratic time for many blanks in the
 * middle.
 */
function trimmed(line: string): string {
  const isBlank = (at: number): boolean => line[at] === ' ' || line[at] === '\t'
  let [from, to] = [0, line.length]
  while (from < to && isBlank(from)) from++
  while (to > from && isBlank(to - 1)) to--
  return line.slice(from, to)
}

/** An absent value and an empty one differ. */
const presence = (value: Uint8Array | undefined): Uint8Array =>
  value === undefined ? Uint8Array.of(0) : concat([Uint8Array.of(1), value])
