import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook as Verifier } from 'standardwebhooks'
import { afterAll } from 'vitest'
import { eventually } from './eventually.ts'

/** The HTTP server of a webhook's owner. */

export type Received = { method: string; path: string; headers: IncomingHttpHeaders; body: string }
export type SentEvent = { id: string; type: string; accountId: string; createdAt: number; data: Record<string, unknown> }
export type Respond = (response: ServerResponse, request: IncomingMessage, nth: number) => void

const receivers = new Set<Receiver>()
afterAll(async () => {
  for (const receiver of receivers) await receiver.close()
})

export class Receiver {
  readonly received: Received[] = []
  /** Requests in progress: now, and the most at any time. */
  open = 0
  mostOpen = 0
  port = 0
  url = ''
  respond: Respond
  readonly #server: Server

  constructor(respond: Respond) {
    this.respond = respond
    this.#server = createServer(async (request, response) => {
      const { method = '', url: path = '', headers } = request
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      this.received.push({ method, path, headers, body: Buffer.concat(chunks).toString() })
      this.mostOpen = Math.max(this.mostOpen, ++this.open)
      response.once('close', () => this.open--)
      this.respond(response, request, this.received.length)
    })
    receivers.add(this)
  }

  async listen(port = 0): Promise<this> {
    this.#server.listen(port, '127.0.0.1')
    await once(this.#server, 'listening')
    this.port = (this.#server.address() as AddressInfo).port
    this.url = `http://127.0.0.1:${this.port}/hook`
    return this
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve))
    this.#server.closeAllConnections()
    await closed
  }

  ids(): string[] {
    return this.received.map(({ headers }) => String(headers['webhook-id']))
  }

  async until(count: number): Promise<Received[]> {
    await eventually(() => this.received.length >= count, `${count} requests to the receiver, which got ${this.received.length}`)
    return this.received
  }
}

export const ok: Respond = (response) => response.end('thank you')
export const answers =
  (status: number, headers: Record<string, string> = {}): Respond =>
  (response) =>
    response.writeHead(status, headers).end(`status ${status}`)
export const hangs: Respond = () => undefined
/** Handles each of the first requests with one of these; later requests succeed. */
export const inTurn =
  (...first: Respond[]): Respond =>
  (response, request, nth) =>
    (first[nth - 1] ?? ok)(response, request, nth)

export const openReceiver = (respond: Respond = ok, port = 0): Promise<Receiver> => new Receiver(respond).listen(port)

/** Throws unless the request is signed with this secret, as the library of Standard Webhooks sees it. */
export function verified(secret: string, { headers, body }: Received): SentEvent {
  return new Verifier(secret).verify(body, headers as Record<string, string>) as SentEvent
}
