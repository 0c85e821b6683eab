import { bindHttpAsync } from '../../../protocol/src/x402-binding.ts'
import type { X402Params } from '../types.ts'
import { sha256Bytes } from './digest.ts'

/** What is needed to bind an x402 payment to a request, besides the request. */
export type BindOptions = {
  /** The public URL of the request, if the seller has configured it. */
  publicUrl: string | undefined
  bindHeaders: readonly string[]
  maxBodyBytes: number
  signal: AbortSignal | undefined
}

/** `too_large`: the body. `consumed`: the shop has already parsed the body. `no_url`: the host is unknown. `unusable`: x402 has no form for it. */
export type Unbound = 'too_large' | 'consumed' | 'no_url' | 'unusable'
export type Bound = X402Params | { unbound: Unbound }

export type Body = Uint8Array | 'too_large' | 'consumed'

export type HttpRequest = {
  method: string
  /** Path and query. */
  url: string
  /** Scheme and host, from the framework's trusted-proxy setting. */
  origin: string | undefined
  header: (name: string) => string | readonly string[] | null | undefined
  body: (maxBytes: number, signal: AbortSignal | undefined) => Promise<Body>
}

/** The longest URL that the gateway accepts. */
const LONGEST_URL = 1_000

export async function bindRequest(request: HttpRequest, options: BindOptions): Promise<Bound> {
  const { origin, url: path } = request
  const url = options.publicUrl ?? (origin === undefined ? undefined : `${origin}${path}`)
  if (url === undefined) return { unbound: 'no_url' }
  if (url.length > LONGEST_URL) return { unbound: 'unusable' }
  const body = await request.body(options.maxBodyBytes, options.signal)
  if (typeof body === 'string') return { unbound: body }
  // HEAD asks about GET, and its payment buys what GET returns.
  const method = request.method === 'HEAD' ? 'GET' : request.method
  const header = (name: string) => request.header(name) ?? undefined
  const binding = await bindHttpAsync({ sha256: sha256Bytes }, { method, url, body, header }, options.bindHeaders)
  return binding ? { resource: { url }, ...binding } : { unbound: 'unusable' }
}
