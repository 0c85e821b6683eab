import { type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { USER_AGENT } from '../version.ts'
import { whyUnreachable } from '../waiting.ts'

export const VISIT_TIMEOUT_MS = 10_000
/** Enough for the discovery document of a large API. */
const MAX_BODY_BYTES = 2 * 1024 * 1024

export type Answer = {
  status: number
  /** Lines of the same header, joined by commas. Empty if there is none. */
  header: (name: string) => string
  body: string
  /** The body was not read to its end: it was not wanted, was too long, or broke off. */
  isCut: boolean
}

/** The server did not give a complete response. */
export class NoAnswer extends Error {}

export type Visit = {
  method: string
  url: URL
  headers?: Record<string, string>
  /** Read the body whatever the status. A buyer who hangs up early may not count as served. */
  readsBody?: true
}

/** All headers that x402 may bind: the request hash covers them, so Node must not add others. */
export function sentHeaders({ url, headers }: Visit): Record<string, string> {
  return { host: url.host, 'user-agent': USER_AGENT, accept: '*/*', 'accept-encoding': 'identity', ...headers }
}

/**
 * One request, without redirects, so that a credential never reaches another server. Each opens a new connection: a server may close a
 * reused one just when a request is sent, which would look like a fault.
 */
export async function visit(what: Visit, stop: AbortSignal): Promise<Answer> {
  const { method, url } = what
  const timeout = AbortSignal.timeout(VISIT_TIMEOUT_MS)
  const signal = AbortSignal.any([stop, timeout])
  const hasBody = !['GET', 'HEAD', 'OPTIONS'].includes(method)
  const headers = { ...sentHeaders(what), connection: 'close', ...(hasBody ? { 'content-length': '0' } : {}) }
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const send = url.protocol === 'https:' ? requestHttps : requestHttp
      send(url, { method, headers, agent: false, signal, setHost: false }).once('response', resolve).on('error', reject).end()
    })
    const status = response.statusCode ?? 0
    const header = (name: string): string => linesOf(response, name).join(', ')
    if (status !== 402) return { status, header, ...(await readLoosely(response, what, stop)) }
    return { status, header, ...(await readBody(response)) }
  } catch (error) {
    if (stop.aborted) throw stop.reason
    const why = timeout.aborted ? `no complete response within ${VISIT_TIMEOUT_MS / 1000} s` : whyUnreachable(error)
    throw new NoAnswer(`${method} ${url.pathname}: ${why}`, { cause: error })
  }
}

/** Not `headers`, which drops the second line of some names. */
function linesOf({ rawHeaders }: IncomingMessage, name: string): string[] {
  return rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === name)
}

type Body = Pick<Answer, 'body' | 'isCut'>

/** The response may be an endless stream, so its body is read only if `readsBody` is set, and may then be incomplete. */
async function readLoosely(response: IncomingMessage, { readsBody }: Visit, stop: AbortSignal): Promise<Body> {
  const cut = { body: '', isCut: true }
  if (readsBody)
    return readBody(response).catch(() => {
      stop.throwIfAborted()
      return cut
    })
  response.destroy()
  return cut
}

async function readBody(response: IncomingMessage): Promise<Body> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of response) {
    bytes += chunk.length
    if (bytes > MAX_BODY_BYTES) {
      response.destroy()
      break
    }
    chunks.push(chunk)
  }
  return { body: Buffer.concat(chunks).toString('utf8'), isCut: bytes > MAX_BODY_BYTES }
}
