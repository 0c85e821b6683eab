import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll } from 'vitest'

export type Delivery = { method: string; path: string; headers: IncomingHttpHeaders; body: string }

const open = new Set<Receiver>()
afterAll(async () => {
  for (const receiver of open) await receiver.close()
})

/** Receives webhooks. */
export class Receiver {
  readonly deliveries: Delivery[] = []
  /** Statuses of the next responses; after that, 204. `hang`: no response. */
  answers: (number | 'hang')[] = []
  readonly #server: Server

  constructor() {
    this.#server = createServer(async (request, response) => {
      const { method = '', url: path = '', headers } = request
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      this.deliveries.push({ method, path, headers, body: Buffer.concat(chunks).toString() })
      const answer = this.answers.shift() ?? 204
      if (answer !== 'hang') response.writeHead(answer, answer === 302 ? { location: '/elsewhere' } : {}).end()
    })
    open.add(this)
  }

  async open(port = 0): Promise<this> {
    this.#server.listen(port, '127.0.0.1')
    await once(this.#server, 'listening')
    return this
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/hook`
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve))
    this.#server.closeAllConnections()
    await closed
  }
}
