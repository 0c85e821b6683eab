import { fetchExchange } from './exchange.ts'
import { nodeExchange } from './node-exchange.ts'
import { Nodes } from './nodes.ts'
import { Payments } from './payments.ts'
import { type CallOptions, Transport } from './transport.ts'
import type { ApiKey } from './types.ts'

export type BoltyardOptions = {
  /** `SERVICE_API_KEY` or `BOLTYARD_API_KEY` unless given. */
  apiKey?: string | undefined
  /** `SERVICE_BASE_URL` or `BOLTYARD_BASE_URL` unless given, and without it a Boltyard on this machine. */
  baseUrl?: string | undefined
  /** Carries every request if given. Otherwise it is `node:http` on Node, and the global `fetch` elsewhere. */
  fetch?: typeof fetch | undefined
  /** For each attempt; 30 s unless given. */
  timeoutMs?: number | undefined
  /** For each call, with repeated attempts and the pauses between them; see `CallOptions`. */
  totalTimeoutMs?: number | undefined
  /** After the first attempt; 3 unless given. */
  maxRetries?: number | undefined
  /** Requests in flight; 4 unless given. Cloudflare Workers have a limit of their own, and this one is off there. */
  maxConcurrency?: number | undefined
}

/**
 * There, one request to a Worker must not end what another one waits for, so none of them can wait for its turn. The platform itself lets
 * each have six connections at once.
 */
const IS_WORKERS = 'WebSocketPair' in globalThis
const LOCAL = 'http://127.0.0.1:8402/v1'

export class Boltyard {
  readonly nodes: Nodes
  readonly payments: Payments
  readonly #transport: Transport

  constructor(options: BoltyardOptions = {}) {
    const apiKey = options.apiKey ?? environment('API_KEY')
    if (!apiKey) throw new TypeError('No API key: give `apiKey`, or set SERVICE_API_KEY.')
    // Anything else in a header is an error that quotes the header, and so the key.
    if (!/^[\x21-\x7e]+$/.test(apiKey))
      throw new TypeError('The API key has a space, a line break or another odd character in it.')
    this.#transport = new Transport({
      apiKey,
      baseUrl: checkedUrl(options.baseUrl ?? environment('BASE_URL') ?? LOCAL),
      exchange: options.fetch ? fetchExchange(options.fetch) : (nodeExchange() ?? fetchExchange(globalFetch)),
      timeoutMs: options.timeoutMs ?? 30_000,
      totalTimeoutMs: options.totalTimeoutMs,
      maxRetries: options.maxRetries ?? 3,
      maxConcurrency: IS_WORKERS ? Number.POSITIVE_INFINITY : Math.max(1, options.maxConcurrency ?? 4),
    })
    this.nodes = new Nodes(this.#transport)
    this.payments = new Payments(this.#transport)
  }

  /** Whose key this is, and what it may do. */
  key(options: CallOptions = {}): Promise<ApiKey> {
    return this.#transport.call({ ...options, method: 'GET', path: '/api-key' })
  }
}

/** Looked up at each call, and called as nobody's method, which some runtimes refuse. */
const globalFetch: typeof fetch = (...request) => globalThis.fetch(...request)

function checkedUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash)
    throw new TypeError('The base URL must be like https://boltyard.example/v1, without credentials or a query.')
  const base = url.href.replace(/\/+$/, '')
  // Otherwise every call would be told that nothing is there, and not why.
  if (!base.endsWith('/v1')) throw new TypeError(`The base URL must end in /v1. Did you mean ${base}/v1?`)
  return base
}

function environment(name: 'API_KEY' | 'BASE_URL'): string | undefined {
  // Workers have no `process`.
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } }
  return process?.env?.[`SERVICE_${name}`] || process?.env?.[`BOLTYARD_${name}`] || undefined
}
