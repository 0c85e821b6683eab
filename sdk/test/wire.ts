import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll } from 'vitest'

export type Seen = { method: string; path: string; idempotencyKey: string | undefined; atMs: number }
/**
 * What happens to one request on its way. `lose answer`: the service has done it, and nobody hears. `cut`: it never gets there.
 * `swallow`: nor does it, and the line stays open. Else an answer that somebody in between gives.
 */
export type Fault =
  | 'pass'
  | 'lose answer'
  | 'cut'
  | 'swallow'
  | { status: number; headers?: Record<string, string>; body?: string }

/** The way to a real service, with holes in it. Faults are used up one by one; then everything passes. */
export class Wire {
  readonly seen: Seen[] = []
  faults: Fault[] = []
  /** How many were under way at once, at most. */
  mostAtOnce = 0
  holdMs = 0
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
        this.seen.push({ method, path, idempotencyKey: headers['idempotency-key']?.toString(), atMs: Date.now() })
        const fault = this.faults.shift() ?? 'pass'
        if (fault === 'swallow') return
        if (fault === 'cut') return incoming.socket.destroy()
        if (typeof fault === 'object') return response.writeHead(fault.status, fault.headers).end(fault.body ?? '')
        setTimeout(() => this.#forward(incoming, Buffer.concat(chunks), response, fault), this.holdMs)
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

  /** How many are under way now. */
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
