import { afterAll } from 'vitest'
import { MOST_RELEASES } from '../../server/src/store/payments/deliveries.ts'
import { credentialOf, invoiceIn, newMerchant, parametersOf, storeOf } from '../../server/test/support/gateway.ts'
import type { Created, Owner } from '../../server/test/support/nodes.ts'
import { eventually, type Server, startServer } from '../../server/test/support/server.ts'
import { Boltyard } from '../src/boltyard.ts'
import type { PaywallEvent } from '../src/paywall/events.ts'
import type { Protocol } from '../src/types.ts'
import { Wire } from './wire.ts'

/** Longer than any pause of a busy machine: requests only time out in tests of timeouts, which set their own. */
export const PATIENCE_MS = 120_000

/**
 * Paywalls retry until the gateway knows the outcome of each delivery, and print warnings. If the service stopped first, they would do so
 * while later test files run in this process.
 */
const servers = new Set<Server>()
afterAll(async () => {
  for (const server of servers)
    await eventually(async () => {
      const held = await storeOf(server)`
        SELECT 1 FROM paid_payments WHERE held_until IS NOT NULL AND redeem_request_id LIKE '________-____-____-____-____________'
          AND coalesce(cardinality(released_request_ids), 0) < ${MOST_RELEASES}`
      return held.length === 0
    }, 'all deliveries to be confirmed or released')
})

/** The service, a merchant with two nodes, the merchant's connection to the service (`wire`), and a customer with a wallet. */
export class Market {
  readonly server: Server
  readonly owner: Owner
  readonly node: Created
  readonly otherNode: Created
  wire!: Wire
  client!: Boltyard
  events: PaywallEvent[] = []
  paid = 0

  private constructor(server: Server, owner: Owner, [node, otherNode]: [Created, Created]) {
    this.server = server
    this.owner = owner
    this.node = node
    this.otherNode = otherNode
  }

  static async open(env: Record<string, string> = {}): Promise<Market> {
    // Nodes are free, so no treasury node has to start.
    return Market.on(await startServer({ env: { TRUST_PROXY: '1', NODE_PRICE_SAT_PER_DAY: '0', ...env } }))
  }

  /** Opens a market with a new account on a service that is already running. */
  static async on(server: Server): Promise<Market> {
    servers.add(server)
    const owner = await newMerchant(server)
    const nodes = await Promise.all([owner.createReady(), owner.createReady()])
    const market = new Market(server, owner, nodes)
    await market.renew()
    return market
  }

  /** Call it before each test, so that late events and requests of earlier shops do not appear in its records or use up its faults. */
  async renew(): Promise<void> {
    this.wire = await new Wire(this.server.url).open()
    this.client = this.newClient()
    this.events = []
    this.paid = 0
  }

  newClient(apiKey = this.owner.key.key): Boltyard {
    return new Boltyard({ apiKey, baseUrl: this.wire.baseUrl, maxConcurrency: 64, timeoutMs: PATIENCE_MS })
  }

  /** Paywall options: 10 sat, paid to the first node. */
  get terms() {
    const { events } = this
    return {
      client: this.client,
      nodeId: this.node.node.id,
      amountSat: 10,
      // All customers in these tests share one address.
      maxOpenVisits: 0,
      patienceMs: PATIENCE_MS,
      onEvent: (event: PaywallEvent) => events.push(event),
    }
  }

  /** The wallet of every customer. */
  readonly wallet = {
    payInvoice: async ({ invoice }: { invoice: string }): Promise<{ paymentHash: string; preimage: string }> => {
      const answer = await this.server.operator('POST', '/sandbox/pay', { json: { invoice } })
      if (answer.status !== 200) throw new Error(`pay: ${answer.status} ${answer.text}`)
      this.paid++
      return answer.json()
    },
  }

  /** The credential of a customer who has paid this challenge. */
  async credentialFor(challenge: string): Promise<string> {
    const { preimage } = await this.wallet.payInvoice({ invoice: invoiceIn(challenge) })
    return credentialOf({ protocol: protocolOf(challenge), challenge }, preimage)
  }

  /** Requests a resource and pays. Returns the credential without presenting it. */
  async buy(url: string): Promise<string> {
    const answer = await fetch(url)
    if (answer.status !== 402) throw new Error(`${answer.status} ${await answer.text()}`)
    return this.credentialFor(challengesIn(answer)[0] ?? '')
  }
}

export function protocolOf(challenge: string): Protocol {
  if (!challenge.includes(' ')) return 'x402'
  return challenge.startsWith('Payment ') ? 'mpp' : 'l402'
}

/** The challenges in the response, in header order. */
export function challengesIn(answer: Response): string[] {
  return (answer.headers.get('www-authenticate') ?? '').split(/, (?=Payment |L402 )/).filter((text) => text !== '')
}

export const present = (url: string, authorization: string, more: RequestInit = {}): Promise<Response> =>
  fetch(url, { ...more, headers: { authorization } })

export { invoiceIn, parametersOf }

/** Something to wait for. */
export function gate(): { wait: Promise<void>; open: () => void } {
  let open = (): void => undefined
  const wait = new Promise<void>((resolve) => {
    open = resolve
  })
  return { wait, open }
}
