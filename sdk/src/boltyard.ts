import { Nodes } from './nodes.ts'
import { Payments } from './payments.ts'
import { type CallOptions, Transport } from './transport.ts'
import type { ApiKey } from './types.ts'

export type BoltyardOptions = {
  /** `SERVICE_API_KEY` unless given. */
  apiKey?: string | undefined
  /** `SERVICE_BASE_URL` unless given, and without it a Boltyard on this machine. */
  baseUrl?: string | undefined
  fetch?: typeof fetch | undefined
  /** For each attempt; 30 s unless given. */
  timeoutMs?: number | undefined
  /** After the first attempt; 3 unless given. */
  maxRetries?: number | undefined
  /** Requests in flight; 4 unless given. */
  maxConcurrency?: number | undefined
}

const LOCAL = 'http://127.0.0.1:8402/v1'

export class Boltyard {
  readonly nodes: Nodes
  readonly payments: Payments
  readonly #transport: Transport

  constructor(options: BoltyardOptions = {}) {
    const apiKey = options.apiKey ?? environment('SERVICE_API_KEY')
    if (!apiKey) throw new TypeError('No API key: give `apiKey`, or set SERVICE_API_KEY.')
    // Anything else in a header is an error that quotes the header, and so the key.
    if (!/^[\x21-\x7e]+$/.test(apiKey))
      throw new TypeError('The API key has a space, a line break or another odd character in it.')
    this.#transport = new Transport({
      apiKey,
      baseUrl: checkedUrl(options.baseUrl ?? environment('SERVICE_BASE_URL') ?? LOCAL),
      // Bound: some runtimes refuse a fetch that is called as another object's method.
      fetch: options.fetch ?? globalThis.fetch.bind(globalThis),
      timeoutMs: options.timeoutMs ?? 30_000,
      maxRetries: options.maxRetries ?? 3,
      maxConcurrency: Math.max(1, options.maxConcurrency ?? 4),
    })
    this.nodes = new Nodes(this.#transport)
    this.payments = new Payments(this.#transport)
  }

  /** Whose key this is, and what it may do. */
  key(options: CallOptions = {}): Promise<ApiKey> {
    return this.#transport.call({ ...options, method: 'GET', path: '/api-key' })
  }
}

function checkedUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash)
    throw new TypeError('The base URL must be like https://boltyard.example/v1, without credentials or a query.')
  return url.href.replace(/\/+$/, '')
}

function environment(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } }
  return process?.env?.[name] || undefined
}
