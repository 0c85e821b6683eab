import { randomBytes } from 'node:crypto'
import type { BrowserContext } from 'playwright-core'
import { offerIn } from '../../protocol/src/offers.ts'
import type { Service } from '../../testing/service.ts'

/** A person with an account and a session, whose browser or program calls the dashboard's own routes. */
export class Visitor {
  readonly #service: Service
  readonly #cookie: string

  private constructor(service: Service, cookie: string) {
    this.#service = service
    this.#cookie = cookie
  }

  static async signUp(service: Service, email: string): Promise<Visitor> {
    const stranger = new Visitor(service, '')
    const answer = await stranger.#fetch('POST', '/auth/sign-up/email', { email, password: 'correct horse battery' })
    return new Visitor(
      service,
      answer.headers
        .getSetCookie()
        .map((line) => line.split(';')[0])
        .join('; '),
    )
  }

  async call(method: string, path: string, json: unknown = {}): Promise<any> {
    const text = await (await this.#fetch(method, path, json)).text()
    return text && JSON.parse(text)
  }

  async #fetch(method: string, path: string, json: unknown): Promise<Response> {
    const headers = {
      cookie: this.#cookie,
      origin: this.#service.url,
      'content-type': 'application/json',
      'idempotency-key': randomBytes(16).toString('hex'),
    }
    const body = method === 'GET' ? null : JSON.stringify(json)
    const answer = await fetch(`${this.#service.url}/dashboard/api${path}`, { method, headers, body })
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`)
    return answer
  }

  async createReady(json: unknown): Promise<string> {
    const { node } = await this.call('POST', '/nodes', json)
    while ((await this.call('GET', `/nodes/${node.id}`)).status !== 'ready') await new Promise((done) => setTimeout(done, 50))
    return node.id
  }

  charge(nodeId: string, amountSat: number, description: string): Promise<{ id: string; challenge: string }> {
    return this.call('POST', '/payments', { nodeId, amountSat, description, protocol: 'l402' })
  }

  /** Pays like a customer, who comes back with the credential and gets what they paid for. */
  async pay({ id, challenge }: { id: string; challenge: string }): Promise<void> {
    const offer = offerIn(challenge)
    const { preimage } = await this.call('POST', '/sandbox/pay', { invoice: offer.invoiceText })
    await this.call('POST', `/payments/${id}/redeem`, { credential: offer.credentialFor(preimage), requestId: id })
  }

  async enter(context: BrowserContext): Promise<void> {
    const pairs = this.#cookie.split('; ').map((pair) => pair.split(/=(.*)/s))
    await context.addCookies(pairs.map(([name = '', value = '']) => ({ name, value, url: this.#service.url })))
  }
}
