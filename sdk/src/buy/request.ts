import type { CredentialHeader } from '../../../protocol/src/offers.ts'
import type { HttpCall } from '../../../protocol/src/x402-binding.ts'
import { wasNeverSent } from '../unreachable.ts'
import { VERSION } from '../version.ts'
import { pause } from '../waiting.ts'
import type { BuyerCrypto } from './crypto/crypto.ts'
import { PurchaseError } from './errors.ts'
import { withSteadyBoundary } from './form.ts'
import { nodeProcess } from './store/node.ts'

const MAX_REDIRECTIONS = 5
/** Methods that are safe to repeat after a lost response. */
const REPEATABLE = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'])
/** Other methods may change when a redirect is followed. */
const FOLLOWED = ['GET', 'HEAD']
/** How long to keep retrying a server that responds with 503 or 429. */
const PATIENCE_MS = 90_000
const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 8_000

/**
 * `fetch` would add these headers. Their values must be known, because an x402 payment may be bound to them. A browser sets its
 * own `accept-language` and `user-agent`.
 */
const DEFAULTS: Record<string, string> = {
  accept: '*/*',
  ...(nodeProcess ? { 'accept-language': '*', 'user-agent': `boltyard-sdk/${VERSION}` } : {}),
}

type Redirect = NonNullable<RequestInit['redirect']>
export type Credential = { header: CredentialHeader; credential: string }
/** Without a status, the response was lost. */
export type Retry = { status: number | undefined; patienceMs: number }
type Parts = {
  url: URL
  method: string
  headers: Headers
  body: Uint8Array | undefined
  signal: AbortSignal
  redirect?: Redirect
  /** The other options for `fetch`. */
  more?: RequestInit
}

/** A request that is identical with and without the credential. */
export class RepeatableRequest {
  readonly method: string
  readonly body: Uint8Array | undefined
  readonly signal: AbortSignal
  readonly #redirect: Redirect
  readonly #more: RequestInit
  readonly #original: { url: URL; headers: Headers }
  #url: URL
  #headers: Headers

  constructor({ url, method, headers, body, signal, redirect = 'follow', more = {} }: Parts) {
    this.#url = url
    this.method = method
    this.#headers = new Headers({ ...DEFAULTS, ...Object.fromEntries(headers) })
    this.#more = more
    this.#original = { url, headers: this.#headers }
    this.body = body
    this.signal = signal
    this.#redirect = redirect
  }

  /** Takes what `fetch` takes, and reads the body once. A stream cannot be sent twice, so it is refused before anything is sent. */
  static async from(
    crypto: Pick<BuyerCrypto, 'sha256'>,
    input: string | URL | Request,
    init: RequestInit = {},
  ): Promise<RepeatableRequest> {
    if (isStream(init.body))
      throw new PurchaseError(
        'unpaid',
        'body_not_repeatable',
        'The body is a stream, which cannot be sent again after the payment. Pass a string, bytes, a Blob or FormData. Nothing was sent.',
      )
    if (init.integrity || (input instanceof Request && input.integrity))
      throw new TypeError(
        '`integrity` is not supported, because the 402 response has a different body. Remove it, and check the body that you receive.',
      )
    const request = new Request(input, init)
    const { method, redirect } = request
    const signal = signalOf(input, init)
    const headers = new Headers(request.headers)
    const given = request.body === null ? undefined : new Uint8Array(await request.arrayBuffer())
    // A Request may have been made from a form.
    const isForm = init.body instanceof FormData || (input instanceof Request && !init.body)
    const body = given && isForm ? withSteadyBoundary(crypto, headers, given) : given
    const more = { ...(input instanceof Request ? optionsOf(input) : {}), ...init }
    return new RepeatableRequest({ url: new URL(request.url), method, headers, body, signal, redirect, more })
  }

  get url(): URL {
    return this.#url
  }

  isAt(url: string): boolean {
    return withoutFragment(url) === withoutFragment(this.#url.href)
  }

  get isRepeatable(): boolean {
    return REPEATABLE.has(this.method)
  }

  has(header: CredentialHeader): boolean {
    return this.#headers.has(header)
  }

  /** What x402 binds the payment to. */
  get bound(): HttpCall {
    return {
      method: this.method,
      url: withoutFragment(this.#url.href),
      ...(this.body ? { body: this.body } : {}),
      header: (name) => this.#headers.get(name) ?? undefined,
    }
  }

  /** If the target has another origin, the caller's headers are dropped, because they may contain secrets for the first server. */
  moveTo(target: URL): this {
    if (target.origin !== this.#url.origin) {
      this.#headers = new Headers(DEFAULTS)
    }
    this.#url = target
    return this
  }

  /** By default, does not follow redirects, which could send the credential to another server. */
  async send(proof?: Credential, redirect: Redirect = 'manual'): Promise<Response> {
    const headers = new Headers(this.#headers)
    if (proof) headers.set(proof.header, proof.credential)
    const body = this.body as Uint8Array<ArrayBuffer> | undefined
    const init = { ...this.#more, method: this.method, headers, redirect, signal: this.signal, body: body ?? null }
    const response = await fetch(this.#url, init).catch((error) => {
      throw this.signal.aborted ? this.signal.reason : error
    })
    if (response.type !== 'opaqueredirect') return response
    if (!proof) return this.#followed()
    throw new PurchaseError('paid', 'bad_redirection', 'You paid, but the server redirects the paid request elsewhere.')
  }

  /** Browsers hide where a redirect leads, so the browser has to follow it. That is safe, because no credential is sent yet. */
  async #followed(): Promise<Response> {
    if (this.#redirect !== 'follow') throw new TypeError('The server redirects the request.')
    // The browser may send it as a GET, and the price would be that of another request.
    if (!FOLLOWED.includes(this.method))
      throw new TypeError(`The server redirects the ${this.method} request. Send it to the address that it redirects to.`)
    const response = await this.send(undefined, 'follow')
    const target = new URL(response.url)
    if (this.#isUnsafe(target)) {
      await response.body?.cancel()
      throw invalidRedirection()
    }
    this.moveTo(target)
    return response
  }

  /** After a redirect from https to http, anyone on the network path could ask for the payment. */
  #isUnsafe({ protocol, username, password }: URL): boolean {
    const isDowngrade = this.#url.protocol === 'https:' && protocol !== 'https:'
    return isDowngrade || !/^https?:$/.test(protocol) || username !== '' || password !== ''
  }

  /** Begins at the original URL, and follows redirects before anything is paid. */
  async ask(): Promise<Response> {
    this.#url = this.#original.url
    this.#headers = this.#original.headers
    for (let hops = 0; ; hops++) {
      const response = await this.send()
      const location = response.headers.get('location')
      if (response.status < 300 || response.status >= 400 || location === null || this.#redirect === 'manual') return response
      if (!FOLLOWED.includes(this.method) || hops === MAX_REDIRECTIONS) return response
      await response.body?.cancel()
      if (this.#redirect === 'error') throw new TypeError('The server redirects the request.')
      const target = URL.canParse(location, this.#url.href) ? new URL(location, this.#url) : undefined
      if (!target || this.#isUnsafe(target)) throw invalidRedirection()
      this.moveTo(target)
    }
  }

  /**
   * Sends the request with its credential. Retries 429, and 503 if the server says when. Also retries after a lost response or another 503,
   * if the request is safe to repeat: a proxy may have sent that 503 although the server got the request. `onRetry` is called before each
   * pause.
   */
  async present(
    proof: Credential,
    patienceMs = PATIENCE_MS,
    onRetry: (retry: Retry) => void = () => undefined,
  ): Promise<Response> {
    const deadline = performance.now() + patienceMs
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2)) {
      const answer = await this.send(proof).catch((error: unknown) => {
        const isLost = this.isRepeatable || wasNeverSent(error)
        if (this.signal.aborted || !isLost || error instanceof PurchaseError) throw error
        return { error }
      })
      const seconds = 'status' in answer ? Number(answer.headers.get('retry-after') ?? Number.NaN) : Number.NaN
      const isRetried =
        'error' in answer ||
        answer.status === 429 ||
        (answer.status === 503 && (this.isRepeatable || answer.headers.has('retry-after')))
      const waitMs = Number.isFinite(seconds) && seconds >= 0 ? Math.max(seconds * 1000, pauseMs) : pauseMs
      if (!isRetried || performance.now() + waitMs > deadline) {
        if ('error' in answer) throw answer.error
        return answer
      }
      if ('status' in answer) await answer.body?.cancel()
      onRetry({ status: 'status' in answer ? answer.status : undefined, patienceMs })
      await pause(waitMs, this.signal)
    }
  }
}

const withoutFragment = (url: string): string => url.split('#')[0] ?? ''

const invalidRedirection = (): PurchaseError =>
  new PurchaseError('unpaid', 'bad_redirection', 'The server redirects to an invalid address, or from https to http.')

const isStream = (body: unknown): boolean =>
  body instanceof ReadableStream ||
  (typeof body === 'object' &&
    body !== null &&
    Symbol.asyncIterator in body &&
    !(body instanceof Blob) &&
    !ArrayBuffer.isView(body))

/** Only options that differ from the default: some runtimes do not support these options, and throw if they are set. */
function optionsOf({ cache, credentials }: Request): RequestInit {
  return {
    ...(cache && cache !== 'default' ? { cache } : {}),
    ...(credentials && credentials !== 'same-origin' ? { credentials } : {}),
  }
}

/** Keeps a Request as long as its signal: once the Request is garbage-collected, its signal no longer follows the caller's. */
const followers = new WeakMap<AbortSignal, Request>()

/** The caller's own signal, not the signal of a copied Request. */
function signalOf(input: string | URL | Request, init: RequestInit): AbortSignal {
  if (init.signal) return init.signal
  if (!(input instanceof Request) || init.signal === null) return new AbortController().signal
  followers.set(input.signal, input)
  return input.signal
}
