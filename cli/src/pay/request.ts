import { readFileSync } from 'node:fs'
import { PurchaseError } from '../../../sdk/src/buy/errors.ts'
import { RepeatableRequest } from '../../../sdk/src/buy/request.ts'
import type { Call } from '../call.ts'
import { Failure, usage } from '../failure.ts'
import { isSystemError, readSecret, reasonOf } from '../files.ts'
import { sanitize } from '../terminal.ts'
import { USER_AGENT } from '../version.ts'
import { wasNeverSent, whyUnreachable } from '../waiting.ts'
import { explainPurchase } from './wallet.ts'

const METHODS = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'POST', 'PATCH'])

export function requestOf(call: Call): RepeatableRequest {
  const url = httpUrlIn(call.argument(0))
  const headers = headersOf(call.many('header'))
  const file = call.text('data-file')
  const body = file === undefined ? undefined : readBody(file)
  const method = (call.text('method') ?? (body ? 'POST' : 'GET')).toUpperCase()
  if (!METHODS.has(method)) throw usage(`--method must be one of ${[...METHODS].join(', ')}.`)
  if (body && ['GET', 'HEAD'].includes(method))
    throw usage(`A ${method} request has no body. Use another --method with --data-file.`)
  return new RepeatableRequest({ url, method, headers, body, signal: call.signal })
}

/** Follows redirects before anything is paid. */
export function ask(request: RepeatableRequest): Promise<Response> {
  return request.ask().catch((error) => {
    if (request.signal.aborted) throw error
    throw error instanceof PurchaseError ? explainPurchase(error) : unanswered(request, error)
  })
}

export function unanswered({ url: { host } }: RepeatableRequest, cause: unknown): Failure {
  const message = wasNeverSent(cause)
    ? `${host} could not be reached (${whyUnreachable(cause)}).`
    : `${host} did not respond. It may have carried out the request.`
  return new Failure('network', 'connection_failed', message, { cause })
}

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
