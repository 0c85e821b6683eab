import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll } from 'vitest'

/** A request that was seen on the wire. Retries have the same body. */
export type Seen = { method: string; path: string; idempotencyKey: string | undefined; body: string; atMs: number }
/**
 * What happens to one request in transit. `lose answer`: the service handles it, but the response is lost. `cut`: it never arrives.
 * `swallow`: it never arrives, and the connection stays open. Otherwise, a response from a proxy.
 */
export type Fault =
  | 'pass'
  | 'lose answer'
  | 'cut'
  | 'swallow'
  | { status: number; headers?: Record<string, string>; body?: string }

/**
 * An unreliable connection to a real service. Faults are used one by one; after that, everything passes. A paywall confirms deliveries in
 * the background, so tests with a paywall set `faultsOn` to the requests that their faults are for.
 */
export class Wire {
  readonly seen: Seen[] = []
  faults: Fault[] = []
  faultsOn = /./
  /** The highest number of requests in progress at the same time. */
  mostAtOnce = 0
  holdMs = 0
  /** Like a load balancer while the service restarts: a request is forwarded once the promise it finds here has resolved. */
  ready: Promise<unknown> = Promise.resolve()
  #atOnce = 0
  readonly #target: URL
  readonly #server: Server

  constructor(target: string) {
    this.#target = new URL(target)
    this.#server = createServer((incoming, response) => {
      this.mostAtOnce = Math.max(this.mostAtOnce, ++this.#atOnce)
      response.once('close', () => this.#atOnce--)
      const chunks: Buffer[] = []
      incoming.on('data', (chunk) => chunks.push(chunk))
      incoming.on('end', () => {
        const { method = '', url: path = '', headers } = incoming
        const body = Buffer.concat(chunks)
        this.seen.push({
          method,
          path,
          idempotencyKey: headers['idempotency-key']?.toString(),
          body: body.toString(),
          atMs: Date.now(),
        })
        const fault = (this.faultsOn.test(path) ? this.faults.shift() : undefined) ?? 'pass'
        if (fault === 'swallow') return
        if (fault === 'cut') return incoming.socket.destroy()
        if (typeof fault === 'object') return response.writeHead(fault.status, fault.headers).end(fault.body ?? '')
        const { ready } = this
        const forward = (): void => this.#forward(incoming, body, response, fault)
        setTimeout(() => void ready.then(forward), this.holdMs)
      })
    })
    wires.add(this)
  }

  #forward(incoming: IncomingMessage, body: Buffer, response: ServerResponse, fault: Fault): void {
    const { method = '', url: path = '', headers } = incoming
    const outgoing = request({ host: '127.0.0.1', port: this.#target.port, method, path, headers }, (answer) => {
      if (fault === 'lose answer') {
        answer.resume()
        answer.once('end', () => response.socket?.destroy())
        return
      }
      response.writeHead(answer.statusCode ?? 500, answer.headers)
      answer.pipe(response)
    })
    outgoing.on('error', () => response.socket?.destroy())
    outgoing.end(body)
  }

  /** The number of requests in progress. */
  get underWay(): number {
    return this.#atOnce
  }

  async open(): Promise<this> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return this
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }
}

const wires = new Set<Wire>()
afterAll(() => {
  for (const wire of wires) wire.close()
})
