import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll } from 'vitest'
import { paymentIdOf } from '../../sdk/src/index.ts'
import { type Protocol, redeem, untilKnown } from '../../server/test/support/gateway.ts'
import type { Owner } from '../../server/test/support/nodes.ts'

const PRICE_SAT = 250
export const GOODS = 'Sunny, 21 °C\n'

export type Visit = { method: string; path: string; authorization: string | undefined; body: string; header: string | undefined }
/** How the shop responds to a credential. Only `honest` redeems it. */
export type Mood = 'honest' | 'busy' | 'deaf' | 'rude' | 'broken' | 'moved' | 'cut off'

const open = new Set<Merchant>()
afterAll(() => {
  for (const merchant of open) merchant.close()
})

/** A shop that takes real payments: the path (/mpp, /l402, /l402+mpp, /lsat) selects the offers, ?sat= the price. */
export class Merchant {
  readonly visits: Visit[] = []
  asked = 0
  /** Used one by one; after that, the shop is honest. With `isStubborn`, the last one stays. */
  moods: Mood[] = []
  isStubborn = false
  readonly #owner: Owner
  readonly #nodeId: string
  readonly #server: Server

  constructor(owner: Owner, nodeId: string) {
    this.#owner = owner
    this.#nodeId = nodeId
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch((error) => response.writeHead(500).end(String(error)))
    })
    // Only the client closes idle connections. If the server did, it could close one while a delayed request is on its way.
    this.#server.keepAliveTimeout = 0
    open.add(this)
  }

  async open(): Promise<this> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return this
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  url(path: string): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}${path}`
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '', headers } = request
    const { authorization } = headers
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    this.visits.push({
      method,
      path: url,
      authorization,
      body: Buffer.concat(chunks).toString(),
      header: headers['x-test']?.toString(),
    })
    const { pathname, searchParams } = new URL(url, 'http://shop')
    if (pathname === '/free') return void response.end(GOODS)
    if (pathname === '/old') return void response.writeHead(302, { location: '/mpp' }).end()
    if (/^\/\d{3}$/.test(pathname)) return void response.writeHead(Number(pathname.slice(1))).end('so it is')
    if (authorization === undefined) return this.#ask(pathname, Number(searchParams.get('sat') ?? PRICE_SAT), response)
    const mood = (this.isStubborn && this.moods.length === 1 ? this.moods[0] : this.moods.shift()) ?? 'honest'
    if (mood === 'busy') return void response.writeHead(503, { 'retry-after': '1' }).end()
    if (mood === 'rude') return void request.socket.destroy()
    if (mood === 'broken') return void response.writeHead(500).end('oops')
    if (mood === 'moved') return void response.writeHead(302, { location: 'http://127.0.0.1:1/steal' }).end()
    if (mood === 'cut off') {
      response.writeHead(200, { 'content-length': '1000' })
      response.write('Sunny')
      return void setTimeout(() => request.socket.destroy(), 100)
    }
    if (mood === 'deaf') return this.#ask(pathname, Number(searchParams.get('sat') ?? PRICE_SAT), response)
    const answer = await untilKnown(() => redeem(this.#owner, paymentIdOf(authorization) ?? 'pay_none', authorization))
    if (answer.status !== 200) return this.#ask(pathname, PRICE_SAT, response)
    const { receipt } = answer.json()
    response.writeHead(200, receipt === undefined ? {} : { 'payment-receipt': receipt }).end(GOODS)
  }

  async #ask(pathname: string, amountSat: number, response: ServerResponse): Promise<void> {
    this.asked++
    const lines: string[] = []
    for (const offer of pathname.slice(1).split('+')) {
      const protocol: Protocol = offer === 'mpp' ? 'mpp' : 'l402'
      const json = { nodeId: this.#nodeId, amountSat, protocol, description: 'Weather' }
      const answer = await untilKnown(() => this.#owner.send('POST', '/gateway/payments', { json }))
      if (answer.status !== 201) throw new Error(`${answer.status} ${answer.text}`)
      const { challenge } = answer.json()
      lines.push(offer === 'lsat' ? challenge.replace(/^L402/, 'LSAT') : challenge)
    }
    response.writeHead(402, { 'www-authenticate': lines, 'cache-control': 'no-store' }).end('pay first')
  }
}
