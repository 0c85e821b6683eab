import { createHash, randomBytes } from 'node:crypto'
import { invoiceOf } from '../../../cli/test/invoices.ts'
import { type Got, type Reply, Scripted } from '../../../cli/test/scripted.ts'
import { type Buyer, type BuyerOptions, buyer, memoryStore } from '../../src/buy/index.ts'

/** Asks for 10 sat with a new invoice each time, and accepts each credential once. */
export class Seller extends Scripted {
  readonly #preimages = new Map<string, string>()
  readonly #used = new Set<string>()
  /** The invoices that were paid, in order. */
  readonly paid: string[] = []
  goods: (got: Got) => Reply = () => ({ body: 'Sunny' })
  challenge = (invoice: string): string => `L402 macaroon="AgE=", invoice="${invoice}"`

  override reply = (got: Got): Reply => {
    const credential = got.authorization ?? got.headers['payment-authorization']?.toString()
    if (credential === undefined || this.#used.has(credential)) return this.bill()
    this.#used.add(credential)
    return this.goods(got)
  }

  /** Accepts every credential once more. */
  accept(): void {
    this.#used.clear()
  }

  bill(): Reply {
    return { status: 402, headers: { 'www-authenticate': this.challenge(this.newInvoice()) } }
  }

  newInvoice(): string {
    const preimage = randomBytes(32)
    const invoice = invoiceOf(createHash('sha256').update(preimage).digest('hex'), 10)
    this.#preimages.set(invoice, preimage.toString('hex'))
    return invoice
  }

  /** A wallet that pays this seller. */
  pay = async (invoice: string): Promise<string> => {
    this.paid.push(invoice)
    return this.#preimages.get(invoice) ?? ''
  }

  buyer(more: Partial<BuyerOptions> = {}): Buyer {
    return buyer({ wallet: this.pay, maxSatPerRequest: 100, maxSatPerDay: 1_000, store: memoryStore(), ...more })
  }
}

/** The body of the response, the code and outcome of a PurchaseError, or the name and message of another error. */
export const outcomeOf = (response: Promise<Response>): Promise<unknown> =>
  response
    .then((one) => one.text())
    .catch((error) => (error.outcome === undefined ? `${error.name}: ${error.message}` : [error.code, error.outcome]))
