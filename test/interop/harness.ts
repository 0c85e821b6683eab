import { afterAll, expect } from 'vitest'
import { balanceOf, type Created, callNode, fund, Owner } from '../../server/test/support/nodes.ts'
import { type Server, startServer } from '../../server/test/support/server.ts'
import { Merchant, type Visit } from './merchant.ts'

/** A whole market: the service, a merchant's node and shop, and a customer's node, which is the wallet behind every client. */

export const PRICE_SAT = 500
/** The price, and the routing fee of the customer's node: 4 sat and 0.4 %. */
export const COST_SAT = 506
export const FUNDS_SAT = 100_000

export type Payment = { paymentHash: string; preimage: string }
export type ShownPayment = {
  id: string
  protocol: string
  status: string
  amountSat: number
  settledAt: number | null
  challenge: string
}
export type Trade<T> = {
  result: T
  /** What the customer spent, and what the merchant received. */
  spentSat: number
  earnedSat: number
  /** The payments that the customer's node made. Failed attempts are not included. */
  payments: Payment[]
  /** The payments the merchant requested, in order, as the gateway shows them afterwards. */
  asked: ShownPayment[]
  visits: Visit[]
}

const merchants: Merchant[] = []
afterAll(() => {
  for (const merchant of merchants) merchant.close()
})

export class Market {
  readonly merchant: Merchant
  readonly owner: Owner
  readonly #server: Server
  readonly #till: Created
  readonly #purse: Created
  readonly #payments: Payment[] = []

  private constructor(server: Server, owner: Owner, till: Created, purse: Created, merchant: Merchant) {
    this.#server = server
    this.owner = owner
    this.#till = till
    this.#purse = purse
    this.merchant = merchant
  }

  static async open(): Promise<Market> {
    // Nodes are free, so no treasury node has to start.
    const server = await startServer({ env: { TRUST_PROXY: '1', NODE_PRICE_SAT_PER_DAY: '0' } })
    const newcomer = async (scopes: string[]): Promise<Owner> => new Owner(server, await server.newKey(scopes))
    const [owner, customer] = await Promise.all([newcomer(['nodes:write', 'gateway:write']), newcomer(['nodes:write'])])
    const [till, purse] = await Promise.all([owner.createReady(), customer.createReady()])
    await fund(server, purse, FUNDS_SAT)
    const merchant = await new Merchant(owner, till.node.id, PRICE_SAT).open()
    merchants.push(merchant)
    return new Market(server, owner, till, purse, merchant)
  }

  url(path: string): string {
    return this.merchant.url(path)
  }

  /** Pays from the customer's node. Throws the node's reason if it cannot pay. */
  async pay(invoice: string): Promise<Payment> {
    const { node, credentials } = this.#purse
    const answer = await callNode(node, credentials.password, 'POST', '/payinvoice', `invoice=${invoice}`)
    if (answer.status !== 200) throw new Error(`payinvoice: ${answer.status} ${answer.text}`)
    const { paymentHash, paymentPreimage: preimage, reason } = answer.json()
    if (preimage === undefined) throw new Error(reason)
    this.#payments.push({ paymentHash, preimage })
    return { paymentHash, preimage }
  }

  shown(paymentId: string): Promise<ShownPayment> {
    return this.owner.want(200, 'GET', `/gateway/payments/${paymentId}`)
  }

  /** Runs the action, and reports what the client did and how money moved. */
  async trade<T>(act: () => Promise<T>): Promise<Trade<T>> {
    const { merchant } = this
    const [asked, visits, paid] = [merchant.asked.length, merchant.visits.length, this.#payments.length]
    const [purse, till] = await this.#balances()
    const result = await act()
    const [purseThen, tillThen] = await this.#balances()
    // No log contains credentials or preimages, whichever client sent them. The token is searched for too, because base64 hides the
    // preimage in it.
    const tokens = merchant.visits.map(({ authorization }) => authorization.split(' ').at(-1) ?? '')
    const secrets = [...this.#payments.map(({ preimage }) => preimage), ...tokens]
    const log = this.#server.stdout + this.#server.stderr
    expect(secrets.filter((secret) => log.includes(secret))).toEqual([])
    return {
      result,
      spentSat: purse - purseThen,
      earnedSat: tillThen - till,
      payments: this.#payments.slice(paid),
      asked: await Promise.all(merchant.asked.slice(asked).map((id) => this.shown(id))),
      visits: merchant.visits.slice(visits),
    }
  }

  #balances(): Promise<[purse: number, till: number]> {
    return Promise.all([balanceOf(this.#purse), balanceOf(this.#till)])
  }
}

/** One payment was made and arrived in full, and of all payments requested exactly this one is paid. */
export function expectOneSale(
  { spentSat, earnedSat, payments, asked, visits }: Trade<unknown>,
  protocol: string,
  offers = 1,
): void {
  expect({ spentSat, earnedSat, payments: payments.length, asked: asked.length }).toEqual({
    spentSat: COST_SAT,
    earnedSat: PRICE_SAT,
    payments: 1,
    asked: offers,
  })
  const paid = asked.filter(({ status }) => status === 'paid')
  expect(paid).toMatchObject([{ protocol, amountSat: PRICE_SAT, settledAt: expect.any(Number) }])
  expect(visits).toEqual([{ authorization: expect.any(String), paymentId: paid[0]?.id, status: 200, code: undefined }])
  expect(asked.filter(({ status }) => status === 'payment_required')).toHaveLength(offers - 1)
}

/** No money moved, and every requested payment is still open. */
export function expectNoSale({ spentSat, earnedSat, payments, asked, visits }: Trade<unknown>, offers = 1): void {
  expect({ spentSat, earnedSat, payments, visits }).toEqual({ spentSat: 0, earnedSat: 0, payments: [], visits: [] })
  expect(asked.map(({ status, settledAt }) => [status, settledAt])).toEqual(Array(offers).fill(['payment_required', null]))
}
