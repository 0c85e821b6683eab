import { Agent, request } from 'node:http'
import { credentialOf, invoiceIn, type Protocol, untilKnown } from './gateway.ts'
import { newOwner, type Owner } from './nodes.ts'
import { type Answer, type Key, type Request, type Server, send } from './server.ts'

/** Payments as a shop requests them, a customer pays them and the shop presents them. */

/** Nothing listens on port 2, and only root could, so events sent to it are lost. `fetch` would refuse port 1 without connecting. */
export const NOWHERE = 'http://127.0.0.1:2'

export type Payment = { id: string; protocol: Protocol; challenge: string }
export type Paid = Payment & { credential: string }
type Wish = { amountSat?: number; description?: string; resource?: string; protocol?: Protocol; x402?: object }
export type Shown = {
  status: string
  settledAt: number | null
  paidAt: number | null
  redeemedAt: number | null
  resource: string | null
  expiresAt: number
}

export class Merchant {
  readonly server: Server
  readonly owner: Owner
  readonly key: Key

  constructor(server: Server, owner: Owner, key: Key) {
    this.server = server
    this.owner = owner
    this.key = key
  }

  send(method: string, path: string, options: Request = {}): Promise<Answer> {
    return this.server.send(method, `/v1/gateway/payments${path}`, { token: this.key.key, ...options })
  }

  ask(nodeId: string, wish: Wish = {}, headers: Record<string, string> = {}): Promise<Answer> {
    return this.send('POST', '', { json: { nodeId, amountSat: 10, description: 'test', ...wish }, headers })
  }

  async create(nodeId: string, wish: Wish = {}, headers: Record<string, string> = {}): Promise<Payment> {
    const answer = await untilKnown(() => this.ask(nodeId, wish, headers))
    if (answer.status !== 201) throw new Error(`create: ${answer.status} ${answer.text}`)
    return answer.json()
  }

  /** Pays as the customer; returns the payment with its credential. */
  async pay(payment: Payment): Promise<Paid> {
    const answer = await this.server.operator('POST', '/sandbox/pay', { json: { invoice: invoiceIn(payment.challenge) } })
    if (answer.status !== 200) throw new Error(`pay: ${answer.status} ${answer.text}`)
    return { ...payment, credential: credentialOf(payment, answer.json().preimage) }
  }

  async createPaid(nodeId: string, wish: Wish = {}): Promise<Paid> {
    return this.pay(await this.create(nodeId, wish))
  }

  validate({ id, credential }: Paid): Promise<Answer> {
    return this.send('POST', `/${id}/validate`, { json: { credential } })
  }

  redeem({ id, credential }: Paid, more: object = {}): Promise<Answer> {
    return this.send('POST', `/${id}/redeem`, { json: { credential, ...more } })
  }

  release({ id }: { id: string }, requestId: string, more: object = {}): Promise<Answer> {
    return this.send('POST', `/${id}/release`, { json: { requestId, ...more } })
  }

  /** Confirms deliveries; returns the result of each. */
  async delivered(deliveries: { id: string; requestId: string }[]): Promise<string[]> {
    const answer = await this.send('POST', '/delivered', { json: { deliveries } })
    if (answer.status !== 200) throw new Error(`delivered: ${answer.status} ${answer.text}`)
    return answer.json().deliveries.map(({ result }: { result: string }) => result)
  }

  async get(id: string): Promise<Shown> {
    const answer = await this.send('GET', `/${id}`)
    if (answer.status !== 200) throw new Error(`get: ${answer.status} ${answer.text}`)
    return answer.json()
  }
}

/** In a new account, which also owns the merchant's nodes. */
export async function newMerchant(server: Server, account: { creditSat?: number } = {}): Promise<Merchant> {
  const owner = await newOwner(server, account)
  return new Merchant(server, owner, await server.newKey(['gateway:write'], owner.accountId))
}

/** Keeps its connections open: for thousands of requests, connecting would be most of the work. */
export class Line {
  readonly #agent: Agent
  readonly #port: number
  readonly #token: string

  constructor(server: Server, token: string, connections: number) {
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections })
    this.#port = server.port
    this.#token = token
  }

  post(path: string, json: unknown): Promise<{ status: number; text: string }> {
    const body = JSON.stringify(json)
    const headers = {
      authorization: `Bearer ${this.#token}`,
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(body)),
    }
    return new Promise((resolve, reject) => {
      const outgoing = request({ port: this.#port, host: '127.0.0.1', method: 'POST', path, headers, agent: this.#agent })
      outgoing.on('response', (response) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (chunk: string) => {
          text += chunk
        })
        response.on('error', reject)
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
      })
      outgoing.on('error', reject)
      outgoing.end(body)
    })
  }

  close(): void {
    this.#agent.destroy()
  }
}

/** Does the work for each thing, at most `atOnce` at a time, and returns the results in the order of the things. */
export async function inTurns<T, R>(things: T[], atOnce: number, work: (thing: T, index: number) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  const left = [...things.entries()]
  const next = async (): Promise<void> => {
    for (let one = left.shift(); one; one = left.shift()) results[one[0]] = await work(one[1], one[0])
  }
  await Promise.all(Array.from({ length: atOnce }, next))
  return results
}

/** Sends an event, as a node would, to the route that receives the events of nodes. */
export const report = (server: Server, nodeId: string, body: string | Buffer, headers: Record<string, string>): Promise<Answer> =>
  send(server.port, 'POST', `/internal/settled/${nodeId}`, { body, headers: { 'content-type': 'application/json', ...headers } })
