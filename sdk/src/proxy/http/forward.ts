import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http'
import type { Delivery } from '../../paywall/gate/delivery.ts'
import { warn } from '../../paywall/trouble.ts'
import { type HeaderList, responseHeaders } from './headers.ts'
import { failure, hasBody, RETRY_AFTER_SECONDS, refusal, respond } from './respond.ts'
import type { Upstream } from './upstream.ts'

/** A request that may pass, and where its response goes. */
export type Passage = {
  request: IncomingMessage
  response: ServerResponse
  /** Path and query. */
  url: string
  headers: HeaderList
  /** Of a paid request. */
  delivery: Delivery | undefined
  firstByteMs: number
  maxBodyBytes: number
}

/**
 * Sends a request to the upstream, and its response to the client. Both are streamed. Resolves when this is over, which can be after the
 * client has left.
 */
export function forward(upstream: Upstream, passage: Passage): Promise<void> {
  return new Promise((resolve) => new Forwarding(upstream, passage, resolve).start())
}

/** Node decodes `chunked`, but no other transfer encoding. */
const isReadable = ({ headers }: IncomingMessage): boolean =>
  (headers['transfer-encoding'] ?? 'chunked').toLowerCase() === 'chunked'

/**
 * If a client stops reading for this long, that may be why the upstream gave up, so the payment is used up. Otherwise one payment
 * could buy many almost complete responses. The time is shorter than most write timeouts, and longer than the pauses of a slow
 * client that reads all the time: the system reports that there is room for more only when a third of its buffer is empty.
 */
const STALL_MS = 10_000
/** More than the buffers between the upstream and this process hold, so bytes beyond this number were sent after the pause. */
const BUFFERED_BYTES = 16_777_216

class Forwarding {
  readonly #upstream: Upstream
  readonly #passage: Passage
  readonly #done: () => void
  #outgoing: ClientRequest | undefined
  #timer: NodeJS.Timeout | undefined
  #bodyBytes = 0
  #hasAnswer = false
  #hasLeft = false
  #stalledAtByte: number | undefined
  #pausedAtMs: number | undefined

  constructor(upstream: Upstream, passage: Passage, done: () => void) {
    this.#upstream = upstream
    this.#passage = passage
    this.#done = done
  }

  start(): void {
    const { request, response, delivery } = this.#passage
    if (response.destroyed) {
      // The upstream has not received the request yet.
      delivery?.release('the customer left before the response')
      response.end()
      return this.#done()
    }
    response.once('close', () => this.#closed())
    this.#send(false)
    if (!hasBody(request)) return
    request.on('data', (chunk: Buffer) => this.#sent(chunk))
    request.once('error', () => this.#outgoing?.destroy())
  }

  #send(isFresh: boolean): void {
    const { request, url, headers } = this.#passage
    const outgoing = this.#upstream.send(request, url, headers, isFresh)
    this.#outgoing = outgoing
    outgoing.once('response', (answer) => this.#receive(answer))
    outgoing.on('error', (error: Error & { code?: string }) => this.#failed(outgoing, error, isFresh))
    // There is no error, for example, if the upstream switches to another protocol without being asked.
    outgoing.once('close', () => {
      if (!this.#hasAnswer) this.#failed(outgoing, new Error('the connection was closed'), isFresh)
    })
    this.#wait()
    if (!hasBody(request)) return void outgoing.end()
    // The upstream may refuse the request before its body comes.
    outgoing.flushHeaders()
    request.pipe(outgoing)
  }

  /** The time starts again with every part of the body: the upstream cannot respond to what it does not have. */
  #wait(): void {
    const { firstByteMs } = this.#passage
    if (this.#timer) return void this.#timer.refresh()
    this.#timer = setTimeout(() => {
      this.#warnOfUndelivered(`The upstream did not respond within ${firstByteMs} ms`)
      this.#refuse(504, `The upstream did not respond within ${firstByteMs} ms.`)
    }, firstByteMs)
  }

  #sent({ length }: Buffer): void {
    const { maxBodyBytes, response } = this.#passage
    this.#bodyBytes += length
    if (this.#bodyBytes > maxBodyBytes) {
      this.#keepPayment()
      response.shouldKeepAlive = false
      this.#abandon(413, `The body may have at most ${maxBodyBytes} bytes.`)
    } else if (!this.#hasAnswer) this.#wait()
  }

  #receive(answer: IncomingMessage): void {
    const { request, response, delivery } = this.#passage
    clearTimeout(this.#timer)
    this.#hasAnswer = true
    answer.once('error', (error) => {
      this.#noteStall(answer)
      const hasStalled = answer.socket.bytesRead - (this.#stalledAtByte ?? -BUFFERED_BYTES) < BUFFERED_BYTES
      // The upstream may also have given up because the request's body was incomplete.
      if (hasStalled || !request.complete) this.#keepPayment()
      this.#cut(error)
    })
    const { statusCode = 502 } = answer
    if (statusCode >= 500) this.#warnOfUndelivered(`The upstream responded with ${statusCode}`)
    // Some upstreams send a body with such a response too, which would be read as the next response on this connection.
    const isBodiless = request.method === 'HEAD' || statusCode === 204 || statusCode === 304
    if (isBodiless && this.#outgoing) this.#outgoing.shouldKeepAlive = false
    if (this.#hasLeft) return this.#finishUnseen(answer)
    if (!isReadable(answer)) return this.#refuse(502, 'The response of the upstream has an unknown Transfer-Encoding.')
    const headers = responseHeaders(answer, delivery !== undefined)
    if (delivery && statusCode >= 500 && answer.headers['retry-after'] === undefined)
      headers.push('retry-after', String(RETRY_AFTER_SECONDS))
    try {
      response.writeHead(statusCode, headers)
    } catch {
      return this.#refuse(502, 'The response of the upstream is malformed.')
    }
    answer.on('pause', () => {
      this.#pausedAtMs ??= performance.now()
    })
    response.on('drain', () => this.#noteStall(answer))
    answer.pipe(response)
    // Do not let the head wait for the body: the first event of a stream may come much later.
    setImmediate(() => {
      if (!response.writableEnded && !response.destroyed) response.flushHeaders()
    })
    response.once('finish', () => {
      if (!request.complete) this.#dropBody()
    })
  }

  /** Called at the end of each pause, because a reset by the upstream is only noticed when reading resumes. */
  #noteStall({ socket }: IncomingMessage): void {
    const pausedMs = this.#pausedAtMs === undefined ? 0 : performance.now() - this.#pausedAtMs
    if (pausedMs > STALL_MS) this.#stalledAtByte = socket.bytesRead
    this.#pausedAtMs = undefined
  }

  /** Uses up the payment if the response ends early because of the customer, who already has part of it. */
  #keepPayment(): void {
    const { response, delivery } = this.#passage
    if (delivery?.hasBegun() && response.statusCode < 400) delivery.deliver()
  }

  #failed(outgoing: ClientRequest, error: Error & { code?: string }, isFresh: boolean): void {
    if (outgoing !== this.#outgoing || this.#hasAnswer) return
    const { request } = this.#passage
    const isStale = outgoing.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE')
    // The upstream closed an idle connection at the moment we used it. Only what is safe to repeat is sent again.
    const isRepeatable = (request.method === 'GET' || request.method === 'HEAD') && !hasBody(request)
    if (isStale && isRepeatable && !isFresh && !this.#hasLeft) return this.#send(true)
    if (!this.#hasLeft)
      warn(`upstream ${error.code}`, `The upstream could not be reached: ${error.code ?? error.message}`, 'proxy')
    this.#refuse(502, 'The upstream could not be reached.')
  }

  /** For a customer who has paid and got nothing. Leaves out the query, which may contain secrets. */
  #warnOfUndelivered(what: string): void {
    const { request, url, delivery } = this.#passage
    if (!delivery) return
    const path = url.split('?')[0]
    const text = `${what} to a paid ${request.method} ${path}. ${delivery.payment.id} can be used again.`
    // One line per payment and minute: a credential that can be reused must not flood the log.
    warn(`${what} ${delivery.payment.id}`, text, 'proxy')
  }

  /** For failures that the customer did not cause: they can send the same credential again. */
  #refuse(status: number, detail: string): void {
    this.#abandon(status, detail, true)
  }

  #abandon(status: number, detail: string, mayPass = false): void {
    const { response } = this.#passage
    this.#dropBody()
    if (response.headersSent) return this.#cut(new Error(detail))
    // After the customer has left, this only ends the delivery.
    respond(response, mayPass ? failure(status, detail) : refusal(status, detail))
    if (this.#hasLeft) this.#done()
  }

  /** Ends the response so that the client notices that it is incomplete. */
  #cut(error: Error): void {
    const { request, response } = this.#passage
    this.#dropBody()
    if (response.writableFinished) return
    // In HTTP/1.0, the end of the connection can be the end of the response.
    if (request.httpVersion === '1.0') response.socket?.resetAndDestroy()
    response.destroy(error)
    // If the customer has left, the status decides whether the payment is used up.
    response.statusCode = 502
    response.end()
    this.#done()
  }

  #closed(): void {
    const { request, response, delivery } = this.#passage
    if (response.writableFinished) {
      clearTimeout(this.#timer)
      return this.#done()
    }
    this.#hasLeft = true
    // Leaving does not release this payment, so the upstream may finish what it has begun.
    const isKept = delivery?.releaseOnDisconnect === false && request.complete && !response.headersSent
    if (isKept) return
    this.#dropBody()
    // The upstream did not get the whole request, so it has nothing to finish.
    if (!request.complete && !response.headersSent) delivery?.release('the customer left before the end of the request')
    // Tells the paywall that nothing more will be written.
    response.end()
    this.#done()
  }

  /** The customer has left, but the status of the response still decides whether the payment is used up. */
  #finishUnseen(answer: IncomingMessage): void {
    const { response } = this.#passage
    response.statusCode = answer.statusCode ?? 502
    answer.resume()
    answer.once('end', () => {
      response.end()
      this.#done()
    })
  }

  /** Stops sending. What the client still sends is read and discarded, so that it can read the response. */
  #dropBody(): void {
    const { request } = this.#passage
    clearTimeout(this.#timer)
    const outgoing = this.#outgoing
    this.#outgoing = undefined
    if (outgoing) request.unpipe(outgoing)
    if (hasBody(request)) request.resume()
    outgoing?.destroy()
  }
}
