import { bindHttpAsync } from '../../../protocol/src/x402-binding.ts'
import type { X402Params } from '../types.ts'
import { sha256Bytes } from './digest.ts'
import type { BodyMemory } from './gate/body-memory.ts'

/** What is needed to bind an x402 payment to a request, besides the request. */
export type BindOptions = {
  /** If the seller has configured it: the base of all URLs, or the whole URL of this request. */
  publicUrl: { base: string } | { whole: string } | undefined
  bindHeaders: readonly string[]
} & BodyLimits

export type BodyLimits = {
  maxBodyBytes: number
  /** How long a body may take, in addition to the time for its size. */
  bodyTimeoutMs: number
  signal: AbortSignal | undefined
  memory: BodyMemory
}

/**
 * `too_large`, `too_slow`: the body is too large, or takes too long. `consumed`: the shop has already parsed the body. `busy`:
 * too many bodies are in memory. `no_url`: the host is unknown. `unusable`: x402 cannot bind such a request.
 */
export type Unbound = 'too_large' | 'consumed' | 'busy' | 'too_slow' | 'no_url' | 'unusable'
export type Bound = X402Params | { unbound: Unbound }

/** The bytes or, if they need not be kept, only their hash. */
export type Body = Uint8Array | { sha256: Uint8Array } | 'too_large' | 'consumed' | 'busy' | 'too_slow'

export type HttpRequest = {
  method: string
  /** Path and query. */
  url: string
  /** Scheme and host, from the framework's trusted-proxy setting. */
  origin: string | undefined
  header: (name: string) => string | readonly string[] | null | undefined
  body: (limits: BodyLimits) => Promise<Body>
}

/** The longest URL that the gateway accepts. */
const LONGEST_URL = 1_000

/** The path must be the one that was sent: a framework may have decoded its copy. */
function urlOf({ origin, url }: HttpRequest, publicUrl: BindOptions['publicUrl']): string | undefined {
  if (publicUrl && 'whole' in publicUrl) return publicUrl.whole
  if (publicUrl) return `${publicUrl.base.replace(/\/$/, '')}${url}`
  return origin === undefined ? undefined : `${origin}${url}`
}

/** With other characters, a part of `Host` would count as the path, and two requests could have the same URL. */
const isOrigin = (origin: string | undefined): boolean => /^https?:\/\/[^/?#@\\\s]+$/i.test(origin ?? '')

export async function bindRequest(request: HttpRequest, options: BindOptions): Promise<Bound> {
  const url = urlOf(request, options.publicUrl)
  if (url === undefined) return { unbound: 'no_url' }
  if (url.length > LONGEST_URL || !(options.publicUrl || isOrigin(request.origin))) return { unbound: 'unusable' }
  const body = await request.body(options)
  if (typeof body === 'string') return { unbound: body }
  // A payment for HEAD buys what GET returns.
  const method = request.method === 'HEAD' ? 'GET' : request.method
  const header = (name: string) => request.header(name) ?? undefined
  const content = body instanceof Uint8Array ? { body } : { bodyHash: body.sha256 }
  const binding = await bindHttpAsync({ sha256: sha256Bytes }, { method, url, ...content, header }, options.bindHeaders)
  return binding ? { resource: { url }, ...binding } : { unbound: 'unusable' }
}
