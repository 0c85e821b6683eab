import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { untilKnown } from '../../server/test/support/gateway.ts'
import type { Owner } from '../../server/test/support/nodes.ts'

// The package has no types.
const { importMacaroon } = createRequire(import.meta.url)('macaroon')

/** What is sold. The description has quotes and non-ASCII characters: credentials validate only if clients pass it through unchanged. */
export const GOODS = 'Sunny, 21 °C'
export const DESCRIPTION = 'Weather for Zürich, "today" — 天気'

export type Protocol = 'mpp' | 'l402'
/** One request with a credential: what was presented, and the gateway's answer. */
export type Visit = { authorization: string; paymentId: string | undefined; status: number | undefined; code: string | undefined }

/**
 * A shop on node:http, as small as the documentation says it can be: it stores neither payments nor customers. Its lists are only for the
 * tests.
 *
 * The path selects the offers, in the order of the header lines: /mpp, /l402, /l402+mpp, /mpp+l402; /lsat is L402 under its old name.
 * Queries: sat=<price>; once: redeem instead of only validating; deaf=<status>: ignore the credential and respond with this status.
 */
export class Merchant {
  /** The ids of the payments that the shop requested. */
  readonly asked: string[] = []
  readonly visits: Visit[] = []
  readonly #owner: Owner
  readonly #nodeId: string
  readonly #priceSat: number
  readonly #server: Server

  constructor(owner: Owner, nodeId: string, priceSat: number) {
    this.#owner = owner
    this.#nodeId = nodeId
    this.#priceSat = priceSat
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch((error) => response.writeHead(500).end(String(error)))
    })
    // Only the client closes idle connections. If the server did, it could close one while a delayed request is on its way.
    this.#server.keepAliveTimeout = 0
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

  async #serve({ url = '', headers: { authorization } }: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(url, 'http://merchant')
    const offers = pathname.slice(1).split('+')
    const priceSat = Number(searchParams.get('sat') ?? this.#priceSat)
    if (authorization === undefined) return this.#ask(response, offers, priceSat)

    const paymentId = paymentIdOf(authorization)
    const deaf = searchParams.get('deaf')
    const call = searchParams.has('once') ? 'redeem' : 'validate'
    const answer =
      paymentId === undefined || deaf !== null
        ? undefined
        : await untilKnown(() =>
            this.#owner.send('POST', `/gateway/payments/${paymentId}/${call}`, { json: { credential: authorization } }),
          )
    const { status } = answer ?? {}
    const error = status === 200 ? undefined : answer?.json().error
    this.visits.push({ authorization, paymentId, status, code: error?.code })
    if (status === 200) {
      const { receipt } = answer?.json() ?? {}
      response.writeHead(200, {
        'content-type': 'text/plain; charset=utf-8',
        'cache-control': 'private',
        ...(receipt === undefined ? {} : { 'payment-receipt': receipt }),
      })
      response.end(GOODS)
      return
    }
    if (deaf === '503') {
      response.writeHead(503, { 'retry-after': '1' }).end()
      return
    }
    return this.#ask(response, offers, priceSat)
  }

  /** A gateway payment has one protocol, so two offers are two payments. */
  async #ask(response: ServerResponse, offers: string[], amountSat: number): Promise<void> {
    const lines: string[] = []
    for (const offer of offers) {
      const protocol: Protocol = offer === 'mpp' ? 'mpp' : 'l402'
      const json = { nodeId: this.#nodeId, amountSat, description: DESCRIPTION, protocol }
      const answer = await untilKnown(() => this.#owner.send('POST', '/gateway/payments', { json }))
      if (answer.status !== 201) throw new Error(`${answer.status} ${answer.text}`)
      const { id, challenge } = answer.json()
      this.asked.push(id)
      lines.push(offer === 'lsat' ? challenge.replace(/^L402/, 'LSAT') : challenge)
    }
    const type = 'https://paymentauth.org/problems/payment-required'
    response.writeHead(402, {
      'www-authenticate': lines,
      'cache-control': 'no-store',
      'content-type': 'application/problem+json',
    })
    response.end(JSON.stringify({ type, title: 'Payment Required', status: 402 }))
  }
}

/** Read from the credential alone. The id is a lookup key and proves nothing: the gateway refuses a forged credential. */
function paymentIdOf(authorization: string): string | undefined {
  const [scheme = '', token = ''] = authorization.split(/ +/)
  try {
    const id = /^payment$/i.test(scheme) ? mppPaymentId(token) : /^(l402|lsat)$/i.test(scheme) ? l402PaymentId(token) : undefined
    return id !== undefined && /^pay_\w+$/.test(id) ? id : undefined
  } catch {
    return undefined
  }
}

const jsonOf = (base64url: string) => JSON.parse(Buffer.from(base64url, 'base64url').toString())

const mppPaymentId = (token: string): string | undefined => jsonOf(jsonOf(token).challenge.request).externalId

/** The first `payment_id` caveat: later ones were appended by a holder of the macaroon. */
function l402PaymentId(token: string): string | undefined {
  const caveats: { identifier: Uint8Array }[] = importMacaroon(token.slice(0, token.indexOf(':'))).caveats
  const texts = caveats.map(({ identifier }) => Buffer.from(identifier).toString())
  return texts.find((text) => text.startsWith('payment_id='))?.slice('payment_id='.length)
}
