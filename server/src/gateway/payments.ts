import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Config } from '../config.ts'
import { crashpoint } from '../crashpoint.ts'
import { once, type Repeatable } from '../idempotency.ts'
import { isId, newId } from '../ids.ts'
import type { Invoice } from '../lightning/bolt11.ts'
import { expiryOf, invoiceFrom, oddInvoice } from '../lightning/invoices.ts'
import type { NodesWord, Settlements } from '../lightning/settlements.ts'
import type { AccessTo } from '../nodes/access.ts'
import { Problem } from '../problems.ts'
import type { MasterKey } from '../secrets.ts'
import type { Sql } from '../store/db.ts'
import {
  claimDelivery,
  type Delivery,
  findPayment,
  findShownPayment,
  insertPayment,
  listPayments,
  markPaid,
  type NewPayment,
  type PaidRow,
  type PaymentFilter,
  type PaymentRow,
  type Proof,
  type Protocol,
  payProved,
  type ShownPayment,
} from '../store/payments.ts'
import { issueL402, judgeL402 } from './l402.ts'
import { headerBeginningOf, issueMpp, judgeMpp, mppReceipt, readMpp } from './mpp.ts'
import { PaidPayments, questionOf } from './paid-payments.ts'
import type { ProtocolKey, ProtocolKeys } from './protocol-keys.ts'

/** Who asks, and for which account. */
type Call = { accountId: string; actor: string }

export type PaymentWish = { nodeId: string; amountSat: number; description: string; protocol?: Protocol }
export type CreatedPayment = { id: string; protocol: Protocol; status: 'payment_required'; challenge: string }
export type PaidPayment = { id: string; protocol: Protocol; status: 'paid'; receipt?: string }
export type RedeemedPayment = PaidPayment & Delivery
export type Redemption = { credential: string; requestId?: string; singleUse?: boolean }

const INVOICE_TIMEOUT_MS = 5_000
/** The payer's node can be quicker to tell its owner than the payee's is to tell us. */
const SETTLEMENT_WAIT_MS = 2_000
const LATEST_SETTLEMENT_MS = 60_000
const FIRST_PAUSE_MS = 25
const LONGEST_PAUSE_MS = 400

export type PaymentsParts = {
  sql: Sql
  config: Config
  masterKeys: MasterKey[]
  network: Invoice['network']
  protocolKeys: ProtocolKeys
  accessTo: AccessTo
  settlements: Settlements
}

/** HTTP 402: challenges that a node of the account is paid for, and the judgement on what comes back. */
export class Payments {
  readonly #parts: PaymentsParts
  readonly #paid = new PaidPayments()

  constructor(parts: PaymentsParts) {
    this.#parts = parts
  }

  async create(call: Call, wish: PaymentWish, repeatable?: Repeatable): Promise<CreatedPayment> {
    const { sql, masterKeys } = this.#parts
    const prepare = (): Promise<NewPayment> => this.#prepare(call, wish)
    const work = async (store: Sql, payment: NewPayment): Promise<CreatedPayment> => {
      if (!(await insertPayment(store, payment))) throw oddInvoice('its payment hash is that of another payment')
      crashpoint('payment: not yet committed')
      return { id: payment.id, protocol: payment.protocol, status: 'payment_required', challenge: payment.challenge }
    }
    // One statement is a transaction of its own.
    const created =
      repeatable?.key === undefined
        ? await work(sql, await prepare())
        : await once(sql, masterKeys, repeatable, 201, { prepare, work })
    crashpoint('payment: committed')
    return created
  }

  /** Everything but keeping it. An invoice that is made and then forgotten harms nobody: nobody was told of it. */
  async #prepare(call: Call, { nodeId, amountSat, description, protocol = 'mpp' }: PaymentWish): Promise<NewPayment> {
    const { config, accessTo, protocolKeys } = this.#parts
    // What is no id names no node, and may hold characters that the store has no place for.
    const node = isId('node', nodeId) ? await accessTo(nodeId) : undefined
    if (!node || node.isDeleted || node.accountId !== call.accountId)
      throw new Problem('node_not_found', 'There is no such node.')
    if (!node.isReady || !node.address)
      throw new Problem('payment_service_unavailable', 'The node is not ready: only a running node can be paid.')
    const id = newId('pay')
    // What can be paid after its credential has lapsed is paid for nothing.
    const lifetimeSeconds =
      protocol === 'l402'
        ? Math.min(config.challengeLifetimeSeconds, config.l402LifetimeSeconds)
        : config.challengeLifetimeSeconds
    const invoice = await invoiceFrom(
      { address: node.address, password: node.password(), network: this.#parts.network },
      {
        amountSat,
        description,
        expirySeconds: lifetimeSeconds,
        externalId: id,
        webhookUrl: `${config.nodeCallbackUrl}/internal/settled/${nodeId}`,
      },
      INVOICE_TIMEOUT_MS,
    )
    crashpoint('payment: invoice made')
    const createdSeconds = Math.floor(node.nowMs / 1000)
    const expiresAtSeconds = expiryOf(invoice, createdSeconds, lifetimeSeconds)
    const paymentHash = Buffer.from(invoice.paymentHash, 'hex')
    const tokenId = protocol === 'l402' ? randomBytes(32) : null
    const key = protocolKeys.current
    const issue = (): string => {
      if (tokenId) {
        const validUntilSeconds = createdSeconds + config.l402LifetimeSeconds
        return issueL402(key.rootKeyOf(id), {
          paymentId: id,
          paymentHash,
          tokenId,
          validUntilSeconds,
          invoice: invoice.serialized,
        })
      }
      const { network } = invoice
      if (network === 'testnet') throw oddInvoice('MPP has no name for its network')
      const terms = {
        amountSat,
        description,
        paymentId: id,
        invoice: invoice.serialized,
        network,
        paymentHash: invoice.paymentHash,
      }
      return issueMpp(key.mpp, new URL(config.publicUrl).host, terms, expiresAtSeconds)
    }
    return {
      id,
      accountId: call.accountId,
      nodeId,
      protocol,
      amountSat,
      description,
      challenge: issue(),
      paymentHash,
      protocolKeyId: key.id,
      tokenId,
      createdAtMs: node.nowMs,
      expiresAtSeconds,
    }
  }

  /**
   * A preimage proves that somebody knew it, and the payee's own node knows it before anyone pays. So the node's word that the invoice
   * was settled is needed too, and the store, not this function, decides who made the transition.
   */
  async validate(call: Call, id: string, credential: string): Promise<PaidPayment> {
    return paidView(await this.#validated(call, id, credential))
  }

  /** The whole payment, when it had to be read. */
  async #validated(call: Call, id: string, credential: string): Promise<PaidRow | PaymentRow> {
    const { sql, protocolKeys } = this.#parts
    // What is no id names no payment, and could run on into the credential.
    if (!isId('pay', id)) throw notFound()
    const question = questionOf(call, id, credential)
    const known = this.#paid.get(question)
    if (known) return known
    // Most credentials are of the present key, and come when their payment is settled: then one statement does it all.
    const proof = proofOf(credential, protocolKeys.current)
    const paid = (proof && (await payProved(sql, call, id, proof))) ?? (await this.#paidByHand(call, id, credential))
    crashpoint('validate: paid')
    const { protocol, receipt } = paid
    if (proof) this.#paid.set(question, { id, protocol, receipt })
    return paid
  }

  async #paidByHand(call: Call, id: string, credential: string): Promise<PaymentRow> {
    let payment = await this.#find(call, id)
    await this.#judge(payment, credential)
    if (!payment.isSettled) payment = await this.#settled(call, payment)
    if (!payment.isPaid) await markPaid(this.#parts.sql, id, call.actor)
    return payment
  }

  async #find(call: Call, id: string): Promise<PaymentRow> {
    const payment = isId('pay', id) && (await findPayment(this.#parts.sql, call.accountId, id))
    if (!payment) throw notFound()
    return payment
  }

  /** Returns when every byte of it is right. */
  async #judge(payment: PaymentRow, credential: string): Promise<void> {
    const key = await this.#parts.protocolKeys.find(payment.protocolKeyId)
    const { id, challenge, paymentHash, amountSat, tokenId, nowMs } = payment
    if (tokenId === null) return judgeMpp(credential, { challenge, paymentHash, amountSat }, key.mpp)
    const root = key.rootKeyOf(id)
    judgeL402(credential, { paymentId: id, paymentHash, tokenId }, root, Math.floor(nowMs / 1000))
  }

  /** The payment as it is once its settlement is recorded; throws when it is not settled. */
  async #settled(call: Call, payment: PaymentRow): Promise<PaymentRow> {
    const isExpired = payment.nowMs >= payment.expiresAtMs
    // Who paid in the last second comes just after it: told 410 they would pay again. Later on nothing can still be on its way.
    const isLongExpired = payment.nowMs >= payment.expiresAtMs + LATEST_SETTLEMENT_MS
    const word = await this.#askNode(payment, isLongExpired ? 0 : SETTLEMENT_WAIT_MS)
    // The node's event may have come meanwhile, also when the node has not answered.
    const again = await this.#find(call, payment.id)
    if (again.isSettled) return again
    if (word !== 'unpaid')
      throw new Problem('payment_service_unavailable', 'The node does not tell whether it was paid. Try again shortly.')
    if (isExpired)
      throw new Problem('payment_expired', 'The challenge has expired, and was not paid.', {
        details: { problem: 'https://paymentauth.org/problems/lightning/expired-invoice' },
      })
    throw new Problem('invalid_payment_credential', 'The node does not report the payment as received yet. Try again shortly.', {
      details: { reason: 'not_settled', problem: 'https://paymentauth.org/problems/verification-failed' },
    })
  }

  async #askNode(payment: PaymentRow, waitMs: number): Promise<NodesWord> {
    const node = await this.#parts.accessTo(payment.nodeId)
    if (!node) return 'unreachable'
    const deadline = performance.now() + waitMs
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
      // However little of the wait is left: an ask that is cut short tells nothing, and would be a 502.
      const word = await this.#parts.settlements.ask(payment, node, SETTLEMENT_WAIT_MS)
      if (word !== 'unpaid' || performance.now() + pauseMs > deadline) return word
      await pause(pauseMs)
    }
  }

  /** Validates, and claims the delivery: so a merchant without a database delivers once. */
  async redeem(call: Call, id: string, { credential, requestId, singleUse }: Redemption): Promise<RedeemedPayment> {
    const payment = await this.#validated(call, id, credential)
    const isOnce = payment.protocol === 'mpp' || singleUse === true
    const delivery = await this.#claim(call, payment, credential, requestId ?? null, isOnce)
    crashpoint('redeem: claimed')
    return { ...paidView(payment), ...delivery }
  }

  async #claim(
    call: Call,
    payment: PaidRow | PaymentRow,
    credential: string,
    requestId: string | null,
    isOnce: boolean,
  ): Promise<Delivery> {
    // Who may deliver again and again only wants to know since when.
    const earlier = !isOnce && 'redeemedAt' in payment && deliveryOf(payment)
    if (earlier) return earlier
    const claim = (): Promise<Delivery | undefined> => claimDelivery(this.#parts.sql, call.accountId, payment.id, requestId)
    const claimed = await claim()
    if (claimed) return claimed
    const found = await this.#find(call, payment.id)
    if (!found.isPaid) {
      // We remember it as paid, and the store does not: it was restored. Told that it is redeemed, its customer would pay again.
      await this.#paidByHand(call, payment.id, credential)
      const again = await claim()
      if (again) return again
    }
    const others = deliveryOf(found)
    if (isOnce || !others) throw new Problem('already_redeemed', 'This payment was redeemed already, by another request.')
    return others
  }

  async get(call: Call, id: string): Promise<ShownPayment & { challenge: string }> {
    const payment = isId('pay', id) && (await findShownPayment(this.#parts.sql, call.accountId, id))
    if (!payment) throw notFound()
    return payment
  }

  /** One more than asked for tells whether there is a next page. */
  async list(call: Call, filter: PaymentFilter): Promise<{ payments: ShownPayment[]; nextCursor: string | null }> {
    const rows = await listPayments(this.#parts.sql, call.accountId, { ...filter, limit: filter.limit + 1 })
    const payments = rows.slice(0, filter.limit)
    return { payments, nextCursor: rows.length > filter.limit ? (payments.at(-1)?.id ?? null) : null }
  }
}

export function receiptOf(settled: {
  protocol: Protocol
  challenge: string
  paymentHash: Buffer
  settledAtMs: number
}): string | null {
  return settled.protocol === 'mpp' ? mppReceipt(settled.challenge, settled.paymentHash, settled.settledAtMs) : null
}

/** Undefined: it is not MPP, or of another key. What is wrong with it is for the judge to say. */
function proofOf(credential: string, key: ProtocolKey): Proof | undefined {
  const claim = readMpp(credential, key.mpp)
  if (claim instanceof Problem) return undefined
  return { challengeBeginning: headerBeginningOf(claim.challenge.id), paymentHash: claim.paymentHash }
}

/** Undefined: it was not claimed yet. */
function deliveryOf({ nodeId, amountSat, description, redeemedAt }: PaymentRow): Delivery | undefined {
  return redeemedAt === null ? undefined : { nodeId, amountSat, description, redeemedAt }
}

function paidView({ id, protocol, receipt }: PaidRow): PaidPayment {
  return { id, protocol, status: 'paid', ...(receipt === null ? {} : { receipt }) }
}

const notFound = (): Problem => new Problem('gateway_payment_not_found', 'There is no such payment.')
