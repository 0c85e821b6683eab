import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll } from 'vitest'
import { invoiceOf, nowSeconds } from './invoices.ts'

/** One response of a scripted server; `cut`: it got the request, but the connection breaks. */
export type Reply = { status?: number; headers?: Record<string, string>; body?: string } | 'cut'
export type Got = { method: string; path: string; authorization: string | undefined; headers: IncomingHttpHeaders; body: Buffer }

const open = new Set<Server>()
afterAll(() => {
  for (const server of open) {
    server.close()
    server.closeAllConnections()
  }
})

/** A server whose every response is decided by `reply`. */
export class Scripted {
  readonly got: Got[] = []
  reply: (got: Got) => Reply = () => ({})
  readonly #server = createServer((request, response) => {
    const { method = '', url: path = '', headers } = request
    const got = { method, path, authorization: headers.authorization, headers, body: Buffer.alloc(0) }
    this.got.push(got)
    request.on('data', (chunk) => {
      got.body = Buffer.concat([got.body, chunk])
    })
    request.once('end', () => {
      const reply = this.reply(got)
      if (reply === 'cut') request.socket.destroy()
      else response.writeHead(reply.status ?? 200, reply.headers).end(reply.body ?? '')
    })
  })

  async open(): Promise<this> {
    open.add(this.#server)
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return this
  }

  closeConnections(): void {
    this.#server.closeAllConnections()
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }
}

/** Uses the replies one by one; the last one stays. */
export function inOrder(...replies: Reply[]): () => Reply {
  return () => (replies.length > 1 ? replies.shift() : replies[0]) ?? {}
}

/** phoenixd's responses, as recorded from version 0.8.0. */
export const PREIMAGE = '11'.repeat(32)
export const HASH = createHash('sha256').update(Buffer.from(PREIMAGE, 'hex')).digest('hex')
const json = (value: object): Reply => ({ headers: { 'content-type': 'application/json' }, body: JSON.stringify(value) })
const row = { type: 'outgoing_payment', subType: 'lightning', paymentHash: HASH, sent: 10, fees: 0 }
export const NOT_FOUND: Reply = { status: 404, headers: { 'content-type': 'text/plain; charset=UTF-8' }, body: 'Not found' }
export const PENDING = json({ ...row, isPaid: false, createdAt: 1 })
export const FOUND_PAID = json({ ...row, isPaid: true, preimage: PREIMAGE, fees: 4000, completedAt: 9, createdAt: 1 })
export const failedAt = (completedAt: number): Reply => json({ ...row, isPaid: false, completedAt, createdAt: 1 })
export const SENT = json({ recipientAmountSat: 10, routingFeeSat: 4, paymentHash: HASH, paymentPreimage: PREIMAGE })
export const couldNot = (reason: string): Reply => json({ paymentHash: HASH, reason })

/** An L402 challenge for 10 sat with this payment hash, and an invoice that is valid for an hour. */
export function challengeOf(paymentHash = HASH, timestamp = nowSeconds): { challenge: string; invoice: string } {
  const invoice = invoiceOf(paymentHash, 10, { timestamp })
  return { challenge: `L402 macaroon="AgE=", invoice="${invoice}"`, invoice }
}
