import { randomUUID } from 'node:crypto'
import { crashpoint } from '../crashpoint.ts'
import { type Attempt, askUntilFinal, type Delivery, type DeliveryAnswer, type Settlement, settle } from '../delivery.ts'
import type { Journal } from '../journal.ts'
import { CallFailed, JsonClient, type Target } from '../json-client.ts'
import { RequestFault } from '../json-server.ts'
import { decodeInvoice, type Invoice } from '../lightning/bolt11.ts'
import { deliverOver } from '../node/hub-link.ts'
import type { GrantRecord, HubLedger, HubRecord, PayingRecord } from './ledger.ts'

/** Shorter than the time that payers wait for the hub, so that they get "unknown" instead of a timeout. */
const DELIVER_TIMEOUT_MS = 10_000
const CONTROL_TIMEOUT_MS = 10_000

type GrantAnswer = { balanceSat: number } | { status: number; error: string }

/** The network between sandbox nodes: knows their addresses, relays payments, and has a wallet with unlimited funds. */
export class Hub {
  readonly #ledger: HubLedger
  readonly #journal: Journal<HubRecord>
  readonly #client = new JsonClient()
  readonly #stop = new AbortController()
  /** The wallet's running payments by hash. Concurrent requests for the same payment wait for the same result. */
  readonly #paying = new Map<string, { payer: string | undefined; settlement: Promise<Settlement> }>()

  constructor(ledger: HubLedger, journal: Journal<HubRecord>) {
    this.#ledger = ledger
    this.#journal = journal
  }

  async register(nodeId: string, address: Target): Promise<void> {
    const known = this.#ledger.nodes.get(nodeId)
    if (known && known.host === address.host && known.port === address.port && known.token === address.token) return
    await this.#journal.append({ t: 'node', nodeId, ...address })
  }

  async relay(delivery: Delivery): Promise<DeliveryAnswer> {
    crashpoint('hub: before relaying')
    const node = this.#ledger.nodes.get(delivery.recipient)
    if (!node) return { outcome: 'unreachable' }
    const answer = await deliverOver(this.#client, node, '/receive', delivery, DELIVER_TIMEOUT_MS)
    crashpoint('hub: after relaying')
    return answer
  }

  /**
   * Pays as a customer would, and never pays an invoice twice: its payer gets the same preimage again. Other payers are refused, because
   * whoever has the preimage can show that they paid.
   */
  async pay(
    text: string,
    amountSat: number | undefined,
    payer: string | undefined,
  ): Promise<{ paymentHash: string } & Settlement> {
    const invoice = readInvoice(text)
    const { paymentHash } = invoice
    const amountMsat = amountSat === undefined ? invoice.amountMsat : amountSat * 1000
    if (amountMsat === undefined) throw new RequestFault(400, 'the invoice has no amount, so amountSat is required')
    const earlier = this.#ledger.paidByHash.get(paymentHash)
    if (earlier && earlier.payer !== payer) return { paymentHash, reason: 'this invoice has already been paid' }
    if (earlier) return { paymentHash, preimage: earlier.preimage }
    const running = this.#paying.get(paymentHash)
    if (running && running.payer !== payer) return { paymentHash, reason: 'another payment is in progress for that invoice' }
    return { paymentHash, ...(await (running?.settlement ?? this.#startPaying(invoice, amountMsat, payer))) }
  }

  #startPaying(invoice: Invoice, amountMsat: number, payer: string | undefined): Promise<Settlement> {
    const payment: PayingRecord = {
      t: 'paying',
      paymentId: randomUUID(),
      recipient: invoice.nodeId,
      paymentHash: invoice.paymentHash,
      paymentSecret: invoice.paymentSecret,
      amountMsat,
      ...(payer === undefined ? {} : { payer }),
    }
    return this.#track(payment, async () => {
      await this.#journal.append(payment)
      crashpoint('hub: paying is durable')
      return this.#completePayment(payment, false)
    })
  }

  #track(payment: PayingRecord, work: () => Promise<Settlement>): Promise<Settlement> {
    const settlement = work().finally(() => this.#paying.delete(payment.paymentHash))
    this.#paying.set(payment.paymentHash, { payer: payment.payer, settlement })
    return settlement
  }

  async #completePayment(payment: PayingRecord, askedBefore: boolean): Promise<Settlement> {
    const { t: _, payer: __, ...delivery } = payment
    const settlement = await settle(delivery, askedBefore, (attempt) => this.relay(attempt), this.#stop.signal)
    const { paymentId } = payment
    const end: HubRecord =
      'preimage' in settlement ? { t: 'paid', paymentId, preimage: settlement.preimage } : { t: 'unpaid', paymentId }
    // If a payment ended without this record, its payer would be told later that it failed.
    await this.#journal.appendEventually(this.#stop.signal, end)
    return settlement
  }

  /** Gives a node new money. Resolves when the node has received it; fails as soon as that is uncertain, but keeps trying. */
  async fund(nodeId: string, amountSat: number): Promise<{ balanceSat: number }> {
    this.#node(nodeId)
    const grant: GrantRecord = { t: 'grant', fundId: randomUUID(), nodeId, amountSat }
    await this.#journal.append(grant)
    crashpoint('hub: grant is durable')
    const answer = await new Promise<GrantAnswer>((resolve, reject) => {
      const unconfirmed = { status: 502, error: 'the node did not confirm the grant; the hub keeps trying' }
      this.#completeGrant(grant, false, () => resolve(unconfirmed)).then(resolve, reject)
    })
    if ('error' in answer) throw new RequestFault(answer.status, answer.error)
    return answer
  }

  async #completeGrant(grant: GrantRecord, askedBefore: boolean, onUnknown?: () => void): Promise<GrantAnswer> {
    const offline = { status: 502, error: 'the node is offline' }
    const attempt = async (again: boolean): Promise<Attempt<GrantAnswer>> => {
      const node = this.#ledger.nodes.get(grant.nodeId)
      if (!node) return 'unreachable'
      try {
        const { fundId, amountSat } = grant
        const { status, body } = await this.#client.post(node, '/fund', { fundId, amountSat, again }, CONTROL_TIMEOUT_MS)
        // The node has recorded this refusal, so an earlier copy that is still on its way will be refused too.
        if (status === 200 && body.refused !== undefined) return { final: { status: 409, error: String(body.refused) } }
        if (status === 200) return { final: { balanceSat: Number(body.balanceSat) } }
        // Any other refusal is final only on the first attempt, because an earlier copy may still be accepted.
        return again || status >= 500 ? 'unknown' : { final: { status, error: String(body.error) } }
      } catch (error) {
        if (error instanceof CallFailed) return error.mayHaveArrived ? 'unknown' : 'unreachable'
        throw error
      }
    }
    const answer = await askUntilFinal(attempt, askedBefore, offline, this.#stop.signal, onUnknown)
    crashpoint('hub: grant is known')
    const end: HubRecord = { t: 'error' in answer ? 'ungranted' : 'granted', fundId: grant.fundId }
    await this.#journal.appendEventually(this.#stop.signal, end)
    return answer
  }

  /** Resumes what was in progress when the last hub process died. */
  resume(log: (line: string) => void): void {
    const report = (error: unknown): void => {
      if (!this.#stop.signal.aborted)
        log(`an interrupted payment or grant stays pending: ${error instanceof Error ? error.message : String(error)}`)
    }
    for (const payment of this.#ledger.pendingPayments.values()) {
      this.#track(payment, () => this.#completePayment(payment, true)).catch(report)
    }
    for (const grant of this.#ledger.pendingGrants.values()) this.#completeGrant(grant, true).catch(report)
  }

  /** Forwards a control command to a node. A node that crashes on command cannot respond, so a missing response to `crash` is a success. */
  async control(nodeId: string, verb: string, body: Record<string, unknown>): Promise<Record<string, unknown>> {
    const node = this.#node(nodeId)
    try {
      const answer = await this.#client.post(node, `/${verb}`, body, CONTROL_TIMEOUT_MS)
      if (answer.status !== 200) throw new RequestFault(answer.status === 401 ? 502 : answer.status, String(answer.body.error))
      return answer.body
    } catch (error) {
      if (!(error instanceof CallFailed)) throw error
      if (error.mayHaveArrived && (verb === 'crash' || body.fault === 'crash')) return {}
      throw new RequestFault(502, error.mayHaveArrived ? 'the node did not respond' : 'the node is offline')
    }
  }

  #node(nodeId: string): Target {
    const node = this.#ledger.nodes.get(nodeId)
    if (!node) throw new RequestFault(404, 'no node with this id has registered with the hub')
    return node
  }

  close(): void {
    this.#stop.abort()
    this.#client.close()
  }
}

function readInvoice(text: string): Invoice {
  let invoice: Invoice
  try {
    invoice = decodeInvoice(text)
  } catch {
    throw new RequestFault(400, 'invoice is not a BOLT 11 invoice')
  }
  if (invoice.chain !== 'regtest') throw new RequestFault(400, 'invoice is not for the sandbox (lnbcrt)')
  return invoice
}
