import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll } from 'vitest'
import { eventually } from '../../../testing/eventually.ts'

type Published = { id: string; type: string; createdAt: number; accountId: string; data: Record<string, unknown> }
export type Refusal = { status: number; headers?: Record<string, string>; body?: string }

/** A small service with the events API that loses connections on demand. Cursors are `c0`, `c1`, …: the number of events before them. */
export class EventsApi {
  readonly events: Published[] = []
  /** The queries of all requests, in order. */
  readonly asked: Record<string, string>[] = []
  readonly keys = new Set<string | undefined>()
  /** Responses to the next streams, one by one. After that, streams are opened. */
  refusals: Refusal[] = []
  readonly #open = new Set<ServerResponse>()
  readonly #server: Server

  constructor() {
    this.#server = createServer((request, response) => this.#serve(request, response))
    apis.add(this)
  }

  async open(port = 0): Promise<this> {
    this.#server.listen(port, '127.0.0.1')
    await once(this.#server, 'listening')
    return this
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${this.port}/v1`
  }

  publish(type: string, data: Record<string, unknown> = {}): Published {
    const event = { id: `evt_${this.events.length + 1}`, type, createdAt: 1_800_000_000, accountId: 'acct_1', data }
    this.events.push(event)
    for (const response of this.#open) response.write(messageOf(event, this.events.length))
    return event
  }

  /** Sends these bytes to all open streams. */
  write(text: string | Uint8Array): void {
    for (const response of this.#open) response.write(text)
  }

  connected(count = 1): Promise<unknown> {
    return eventually(() => this.#open.size === count, `${count} open streams`)
  }

  /** Resets the connections, as a crash or a network failure does. */
  cut(): void {
    for (const response of this.#open) response.socket?.resetAndDestroy()
    this.#open.clear()
  }

  /** Ends the responses, as the service does when it shuts down. */
  end(): void {
    for (const response of this.#open) response.end()
    this.#open.clear()
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve))
    this.#server.closeAllConnections()
    await closed
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://api')
    const query = Object.fromEntries(searchParams)
    this.asked.push(query)
    this.keys.add(request.headers.authorization)
    const refusal = this.refusals.shift()
    if (refusal)
      return void response.writeHead(refusal.status, { 'content-type': 'application/json', ...refusal.headers }).end(refusal.body)
    const from = query.cursor === undefined ? undefined : Number(query.cursor.slice(1))
    if (pathname === '/v1/events') return this.#list(response, from ?? 0, Number(query.limit ?? 50), query.types)
    if (pathname !== '/v1/events/stream') return void response.writeHead(404).end()
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-store' })
    response.flushHeaders()
    // The position at which the stream starts, in a message without data.
    response.write(`id: c${from ?? this.events.length}\n\n`)
    for (let at = from ?? this.events.length; at < this.events.length; at++)
      response.write(messageOf(this.events[at] as Published, at + 1))
    this.#open.add(response)
    response.once('close', () => this.#open.delete(response))
  }

  /** Looks at `limit` events, so with a filter a page may be empty although later ones are not. */
  #list(response: ServerResponse, from: number, limit: number, types?: string): void {
    const looked = this.events.slice(from, from + limit)
    const events = looked.filter(({ type }) => types === undefined || types.split(',').includes(type))
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ events, nextCursor: `c${from + looked.length}` }))
  }
}

const messageOf = (event: Published, cursor: number): string =>
  `id: c${cursor}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`

export const refusalOf = (status: number, code: string, more: object = {}, headers: Record<string, string> = {}): Refusal => ({
  status,
  headers,
  body: JSON.stringify({ error: { code, message: `It is ${code}.`, ...more } }),
})

const apis = new Set<EventsApi>()
afterAll(async () => {
  for (const api of apis) await api.close()
})
