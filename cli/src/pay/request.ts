import { readFileSync } from 'node:fs'
import type { Call } from '../call.ts'
import { Failure, usage } from '../failure.ts'
import { isSystemError, readSecret, reasonOf } from '../files.ts'
import { sanitize } from '../terminal.ts'
import { USER_AGENT } from '../version.ts'
import { wasNeverSent, whyUnreachable } from '../waiting.ts'

const MOST_REDIRECTIONS = 5
/** Methods that are safe to repeat after a lost response. */
const REPEATABLE = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'])
const METHODS = new Set([...REPEATABLE, 'POST', 'PATCH'])

/** The user's request, identical with and without the credential. */
export class PaidRequest {
  url: URL
  readonly method: string
  readonly #headers: Headers
  readonly #body: Buffer | undefined
  readonly #call: Call

  constructor(call: Call) {
    this.#call = call
    this.url = httpUrlIn(call.argument(0))
    this.#headers = headersOf(call.many('header'))
    const file = call.text('data-file')
    this.#body = file === undefined ? undefined : readBody(file)
    this.method = (call.text('method') ?? (this.#body ? 'POST' : 'GET')).toUpperCase()
    if (!METHODS.has(this.method)) throw usage(`--method must be one of ${[...METHODS].join(', ')}.`)
    if (this.#body && ['GET', 'HEAD'].includes(this.method))
      throw usage(`A ${this.method} request has no body. Use another --method with --data-file.`)
  }

  get isRepeatable(): boolean {
    return REPEATABLE.has(this.method)
  }

  send(credential?: string): Promise<Response> {
    const headers = new Headers(this.#headers)
    if (credential !== undefined) headers.set('authorization', credential)
    return fetch(this.url, {
      method: this.method,
      headers,
      redirect: 'manual',
      signal: this.#call.signal,
      ...(this.#body ? { body: this.#body } : {}),
    }).catch((error) => {
      throw this.#call.signal.aborted ? this.#call.signal.reason : error
    })
  }

  unanswered(cause: unknown): Failure {
    const { host } = this.url
    const message = wasNeverSent(cause)
      ? `${host} could not be reached (${whyUnreachable(cause)}).`
      : `${host} did not respond. It may have carried out the request.`
    return new Failure('network', 'connection_failed', message, { cause })
  }

  /** Follows redirects before anything is paid. The credential is only sent to the final address. */
  async ask(): Promise<Response> {
    for (let hops = 0; ; hops++) {
      const response = await this.send().catch((error) => {
        if (this.#call.signal.aborted) throw error
        throw this.unanswered(error)
      })
      const location = response.headers.get('location')
      if (response.status < 300 || response.status >= 400 || location === null) return response
      if (!['GET', 'HEAD'].includes(this.method) || hops === MOST_REDIRECTIONS) return response
      await response.body?.cancel()
      const target = URL.canParse(location, this.url.href) ? new URL(location, this.url) : undefined
      if (!target || !/^https?:$/.test(target.protocol))
        throw new Failure('other', 'bad_redirection', 'The server redirects to an invalid address.')
      if (target.origin !== this.url.origin) for (const name of [...this.#headers.keys()]) this.#headers.delete(name)
      this.url = target
    }
  }
}

/** The URL that the user gave. */
export function httpUrlIn(text: string): URL {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) throw usage('<url> must be a complete http or https URL.')
  const url = new URL(text)
  if (url.username || url.password)
    throw usage('<url> must not contain a password: other users on this machine can see arguments.')
  return url
}

function headersOf(given: string[]): Headers {
  const headers = new Headers({ 'user-agent': USER_AGENT, accept: '*/*' })
  const lines = given.flatMap((one) => (one.startsWith('@') ? readSecret(one.slice(1), 'headers').split(/\r?\n/) : [one]))
  for (const line of lines.filter((one) => one.trim() !== '')) {
    const [, name, value] = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)$/.exec(line) ?? []
    if (name === undefined || value === undefined) throw usage('--header must have the form “Name: value”.')
    if (name.toLowerCase() === 'authorization') throw usage('The Authorization header cannot be set: it carries the credential.')
    headers.append(name, value)
  }
  return headers
}

function readBody(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    if (!isSystemError(error)) throw error
    throw usage(`Cannot read ${sanitize(path)}: ${reasonOf(error)}.`)
  }
}
