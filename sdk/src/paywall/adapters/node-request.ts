import type { Body, BodyLimits } from '../binding.ts'
import { BodyBuffer } from '../body-buffer.ts'
import { sha256Bytes } from '../digest.ts'
import type { PaymentFields } from '../visit.ts'

export type NodeHeaders = {
  authorization?: string | undefined
  accept?: string | undefined
  [name: string]: string | string[] | undefined
}

/** The parts of node:http's request we use, so that users do not have to install its types. */
export type NodeRequest = {
  headers: NodeHeaders
  headersDistinct?: Record<string, string[] | undefined> | undefined
  httpVersionMajor?: number
  /** Set by frameworks and parsers that keep the bytes of the body. */
  rawBody?: unknown
  complete?: boolean
  readableEnded?: boolean
  readableDidRead?: boolean
  readableLength?: number
  /** HTTP/2 only. */
  stream?: { endAfterHeaders?: boolean } | undefined
  _readableState?: { ended?: boolean } | undefined
  read(): unknown
  unshift(chunk: Uint8Array): unknown
  resume(): unknown
  on(event: 'readable', listener: () => void): unknown
  once(event: 'end' | 'close', listener: () => void): unknown
  removeListener(event: 'readable', listener: () => void): unknown
}

export function paymentFieldsOf(headers: NodeHeaders): PaymentFields {
  return {
    authorization: headers.authorization,
    paymentAuthorization: line(headers['payment-authorization']),
    paymentSignature: line(headers['payment-signature']),
    acceptPayment: line(headers['accept-payment']),
    accept: headers.accept,
  }
}

/** Node joins the lines of most headers itself. */
const line = (value: string | string[] | undefined): string | undefined => (Array.isArray(value) ? value.join(', ') : value)

/** The separate lines of a header, if Node still has them. */
export const linesOf = ({ headers, headersDistinct }: NodeRequest, name: string): string | string[] | undefined =>
  headersDistinct?.[name] ?? headers[name]

/** Bodies that were read and put back. A second paywall in front of the same handler must not treat them as consumed. */
const readBodies = new WeakMap<NodeRequest, Body>()
const touched = new WeakSet<NodeRequest>()

/**
 * The hash of the body, whose bytes stay in the stream for the handler. Rejects if the customer disconnects. The stream must not emit `end`
 * before the bytes are put back, so it is never read when it is empty.
 */
export async function bodyOf(request: NodeRequest, limits: BodyLimits): Promise<Body> {
  const { rawBody, headers } = request
  const { maxBodyBytes: maxBytes, memory } = limits
  if (rawBody instanceof Uint8Array) return rawBody.length > maxBytes ? 'too_large' : rawBody
  const known = readBodies.get(request)
  if (known !== undefined) return known
  if (!hasBody(request)) return new Uint8Array()
  if (Number(headers['content-length'] ?? 0) > maxBytes) return 'too_large'
  if (request.readableEnded || request.readableDidRead) return 'consumed'
  // A listener would make an empty stream emit `end` now, and a handler that listens later would wait for it forever.
  if (isComplete(request) && !request.readableLength) return new Uint8Array()
  touched.add(request)
  // The memory is free once the handler has read the body, or the connection is closed.
  request.once('end', () => memory.release())
  request.once('close', () => memory.release())
  const bytes = await readAll(request, new BodyBuffer(maxBytes, memory), limits)
  // Only the hash is kept, so that the memory is free once the handler has read the bytes.
  const body = bytes instanceof Uint8Array ? { sha256: await sha256Bytes(bytes) } : bytes
  readBodies.set(request, body)
  return body
}

function hasBody({ headers, httpVersionMajor = 1, stream }: NodeRequest): boolean {
  if (httpVersionMajor >= 2) return stream?.endAfterHeaders !== true
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

const isComplete = ({ complete, _readableState }: NodeRequest): boolean => complete === true || _readableState?.ended === true

function readAll(request: NodeRequest, buffer: BodyBuffer, { signal, bodyTimeoutMs }: BodyLimits): Promise<Body> {
  return new Promise((resolve, reject) => {
    let stopTimer = (): void => undefined
    const end = (body: Body | undefined): void => {
      stopTimer()
      request.removeListener('readable', read)
      signal?.removeEventListener('abort', leave)
      if (body === undefined) reject(signal?.reason)
      else resolve(body)
    }
    const leave = (): void => end(undefined)
    const read = (): void => {
      while ((request.readableLength ?? 0) > 0) {
        const chunk = request.read()
        // After a call of `setEncoding`, the stream returns text instead of bytes.
        if (!(chunk instanceof Uint8Array)) return end('consumed')
        const refusal = buffer.add(chunk)
        if (refusal) return end(refusal)
      }
      if (!isComplete(request)) return
      const { bytes } = buffer
      if (bytes.length > 0) request.unshift(bytes)
      end(bytes)
    }
    if (signal?.aborted) return leave()
    signal?.addEventListener('abort', leave, { once: true })
    stopTimer = buffer.expect(bodyTimeoutMs, () => end('too_slow'))
    request.on('readable', read)
    if (request.complete) read()
  })
}

/** After a refusal: Node discards an unread body, but not the rest of a partly read one, which would block the connection. */
export function discardBody(request: NodeRequest): void {
  if (touched.has(request)) request.resume()
}
