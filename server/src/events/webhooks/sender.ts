import { request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import type { Attempt } from '../../store/events/deliveries.ts'
import { type AddressGuard, AddressRefused } from './address-guard.ts'
import { retryAfterSeconds } from './schedule.ts'

export const TIMEOUT_MS = 15_000
const KEPT_RESPONSE_BYTES = 1024

export type SentRequest = { url: string; headers: Record<string, string>; body: string }
export type Result = Omit<Attempt, 'at'> & { isSuccess: boolean; isGone: boolean; retryAfterSeconds: number | undefined }

/** Makes one request. A failure is returned as the result of the attempt. Rejects only if `stop` is aborted. */
export async function sendOnce(guard: AddressGuard, sent: SentRequest, stop: AbortSignal): Promise<Result> {
  const startedAt = performance.now()
  const deadline = AbortSignal.any([stop, AbortSignal.timeout(TIMEOUT_MS)])
  const finish = (result: Partial<Result>): Result => ({
    status: null,
    response: null,
    error: null,
    isSuccess: false,
    isGone: false,
    retryAfterSeconds: undefined,
    durationMs: Math.round(performance.now() - startedAt),
    ...result,
  })
  try {
    // A signal that is already aborted emits no event, which `beforeAbort` would wait for.
    deadline.throwIfAborted()
    const url = guard.checkUrl(sent.url)
    const addresses = await beforeAbort(guard.addressesOf(url), deadline)
    const response = await post(url, addresses, sent, deadline)
    const { statusCode: status = 0, headers } = response
    const isSuccess = status >= 200 && status < 300
    return finish({
      status,
      response: await beginningOf(response),
      error: isSuccess ? null : failureOf(status),
      isSuccess,
      isGone: status === 410,
      retryAfterSeconds: status === 429 || status === 503 ? retryAfterSeconds(headers['retry-after'], headers.date) : undefined,
    })
  } catch (error) {
    stop.throwIfAborted()
    return finish({ error: deadline.aborted ? `No response within ${TIMEOUT_MS / 1000} seconds.` : reasonOf(error) })
  }
}

/**
 * Connects only to these addresses: a name could have others by now. Uses a new connection, because the receiver may close an
 * idle one at any time.
 */
function post(url: URL, addresses: string[], { headers, body }: SentRequest, signal: AbortSignal): Promise<IncomingMessage> {
  const checked = addresses.map((address) => ({ address, family: isIP(address) }))
  const lookup: LookupFunction = (_host, { all }, done) => {
    const [first] = checked
    if (all) done(null, checked)
    else done(null, first?.address ?? '', first?.family)
  }
  const options: RequestOptions = {
    method: 'POST',
    agent: false,
    lookup,
    signal,
    headers: {
      ...headers,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      'user-agent': 'Boltyard-Webhooks/1',
      connection: 'close',
    },
  }
  return new Promise((resolve, reject) => {
    const outgoing = (url.protocol === 'https:' ? httpsRequest : httpRequest)(url, options)
    outgoing.once('response', resolve)
    // The listener stays, because the connection can also fail after the response has begun.
    outgoing.on('error', reject)
    // If the receiver sends a 101 that was not requested, Node.js emits neither a response nor an error: it only closes the connection.
    outgoing.once('close', () => reject(new Error('closed without a response')))
    outgoing.end(body)
  })
}

/** The status already decides the result. So if the rest of the response is cut off or too slow, its beginning is enough. */
async function beginningOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of response) {
      chunks.push(chunk as Buffer)
      bytes += (chunk as Buffer).length
      if (bytes >= KEPT_RESPONSE_BYTES) break
    }
  } catch (error) {
    if (!isOfConnection(error)) throw error
  } finally {
    response.destroy()
  }
  // PostgreSQL cannot store NUL.
  return new TextDecoder().decode(Buffer.concat(chunks).subarray(0, KEPT_RESPONSE_BYTES)).replaceAll('\0', '\ufffd')
}

async function beforeAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
  return Promise.race([work, aborted])
}

const codeOf = (error: unknown): string | undefined => {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' ? code : undefined
}
const isOfConnection = (error: unknown): boolean => codeOf(error) !== undefined || (error as Error).name === 'AbortError'

function failureOf(status: number): string {
  if (status >= 300 && status < 400) return `The response was ${status}. Redirects are not followed.`
  return `The response was ${status}.`
}

/** Only the code: the message could contain an address of the operator's network. */
function reasonOf(error: unknown): string {
  if (error instanceof AddressRefused) return error.message
  const code = codeOf(error)
  if (code === 'ENOTFOUND' || code === 'ENODATA') return 'The host name has no address.'
  return code === undefined ? 'The connection failed.' : `The connection failed (${code}).`
}
