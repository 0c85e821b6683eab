import { type Events, eventsOf } from './events/events.ts'
import { fetchExchange, fetchStream } from './exchange.ts'
import { nodeExchange } from './node-exchange.ts'
import { Nodes } from './nodes.ts'
import { Payments } from './payments.ts'
import { type CallOptions, Transport } from './transport.ts'
import type { ApiKey } from './types.ts'
import { Webhooks } from './webhooks/webhooks.ts'

export type BoltyardOptions = {
  /** Defaults to the environment variable `SERVICE_API_KEY` or `BOLTYARD_API_KEY`. */
  apiKey?: string | undefined
  /** Defaults to the environment variable `SERVICE_BASE_URL` or `BOLTYARD_BASE_URL`, otherwise to a service on this machine. */
  baseUrl?: string | undefined
  /** Replaces the default HTTP client: `node:http` on Node (but `fetch` for the stream of events), the global `fetch` elsewhere. */
  fetch?: typeof fetch | undefined
  /** Time limit for each attempt. Defaults to 30 s. */
  timeoutMs?: number | undefined
  /** Time limit for each call, including retries and the pauses between them; see `CallOptions`. */
  totalTimeoutMs?: number | undefined
  /** Maximum number of retries after the first attempt. Defaults to 3. */
  maxRetries?: number | undefined
  /** Maximum number of concurrent requests. Defaults to 4. Ignored on Cloudflare Workers, which have their own limit. */
  maxConcurrency?: number | undefined
}

/**
 * On Workers, the handler of one request must not resolve a promise that the handler of another request awaits, so calls cannot wait for
 * each other's slots. The platform itself limits each request to six connections.
 */
const IS_WORKERS = 'WebSocketPair' in globalThis
const NO_KEY = IS_WORKERS
  ? 'No API key. A Worker gets its secrets with each request, so create the client in the request handler: `client: new Boltyard({ apiKey: env.SERVICE_API_KEY })`. If you already do, set the secret SERVICE_API_KEY.'
  : 'No API key: pass `apiKey`, or set SERVICE_API_KEY.'
const LOCAL = 'http://127.0.0.1:8402/v1'

export class Boltyard {
  readonly nodes: Nodes
  readonly payments: Payments
  /** What has happened in the account: `for await (const event of boltyard.events())`, or page by page with `events.list()`. */
  readonly events: Events
  /** Where the service sends events. To verify what arrives there, use `verifyWebhook` of `@boltyard/sdk/webhooks`. */
  readonly webhooks: Webhooks
  readonly #transport: Transport

  constructor(options: BoltyardOptions = {}) {
    const apiKey = options.apiKey ?? environment('API_KEY')
    if (!apiKey) throw new TypeError(NO_KEY)
    // An invalid header value would cause an error that quotes the header, and with it the key.
    if (!/^[\x21-\x7e]+$/.test(apiKey))
      throw new TypeError('The API key contains a space, a line break or another invalid character.')
    this.#transport = new Transport({
      apiKey,
      baseUrl: checkedUrl(options.baseUrl ?? environment('BASE_URL') ?? LOCAL),
      exchange: options.fetch ? fetchExchange(options.fetch) : (nodeExchange() ?? fetchExchange(globalFetch)),
      openStream: fetchStream(options.fetch ?? globalFetch),
      timeoutMs: options.timeoutMs ?? 30_000,
      totalTimeoutMs: options.totalTimeoutMs,
      maxRetries: options.maxRetries ?? 3,
      maxConcurrency: IS_WORKERS ? Number.POSITIVE_INFINITY : Math.max(1, options.maxConcurrency ?? 4),
    })
    this.nodes = new Nodes(this.#transport)
    this.payments = new Payments(this.#transport)
    this.events = eventsOf(this.#transport)
    this.webhooks = new Webhooks(this.#transport)
  }

  /** Returns the API key's account and scopes. */
  key(options: CallOptions = {}): Promise<ApiKey> {
    return this.#transport.call({ ...options, method: 'GET', path: '/api-key' })
  }
}

/** Calls the current global `fetch` directly: some runtimes throw if `fetch` is called as a method of another object. */
const globalFetch: typeof fetch = (...request) => globalThis.fetch(...request)

function checkedUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash)
    throw new TypeError('The base URL must look like https://boltyard.example/v1, without credentials or a query.')
  const base = url.href.replace(/\/+$/, '')
  // Otherwise every call would fail with an unexplained 404.
  if (!base.endsWith('/v1')) throw new TypeError(`The base URL must end in /v1. Did you mean ${base}/v1?`)
  return base
}

function environment(name: 'API_KEY' | 'BASE_URL'): string | undefined {
  // Browsers, and Workers by default, have no `process`.
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } }
  return process?.env?.[`SERVICE_${name}`] || process?.env?.[`BOLTYARD_${name}`] || undefined
}
