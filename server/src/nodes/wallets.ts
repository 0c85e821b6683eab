import { invoiceExpiresAtSeconds, normalizedInvoice, readInvoice } from '../../../protocol/src/bolt11.ts'
import { invoiceFrom } from '../lightning/invoices.ts'
import { balanceOf, getInfo, inboundOf, isAborted, type NoAnswer } from '../lightning/phoenixd/client.ts'
import {
  findIncomingPayment,
  findOutgoingPayment,
  getBalance,
  getLightningAddress,
  getOffer,
  listIncoming,
  listOutgoing,
  newestFirst,
  payInvoice,
  type WalletPayment,
} from '../lightning/phoenixd/wallet.ts'
import { isId } from '../platform/ids.ts'
import type { NodeAddress } from '../platform/node-agent.ts'
import { noSuchNode, Problem } from '../problems.ts'
import { logActivity } from '../store/activity.ts'
import type { Sql } from '../store/db.ts'
import { recordBalance } from '../store/nodes/funds.ts'
import { recordReceipts } from '../store/nodes/receipts.ts'
import { wakeNode } from '../store/nodes/steps.ts'
import { paymentIdsOf } from '../store/payments/invoices.ts'
import type { AccessTo, NodeAccess } from './access.ts'
import type { Network } from './lightning-id.ts'
import { type Call, ownNode } from './own-node.ts'

export type NodeLive = {
  isReachable: boolean
  balanceSat: number | null
  feeCreditSat: number | null
  channels: { usable: number; total: number } | null
  inboundSat: number | null
  blockHeight: number | null
  version: string | null
}
export type NodeSent = {
  outcome: 'sent' | 'already_sent' | 'failed' | 'unknown'
  reason: string | null
  amountSat: number | null
  feeSat: number | null
}

/** Times are in Unix seconds; null means unknown or not applicable. */
export type NodePayment = {
  direction: 'in' | 'out'
  paymentHash: string | null
  amountSat: number
  feeMsat: number
  description: string | null
  isPaid: boolean
  createdAt: number
  expiresAt: number | null
  completedAt: number | null
  gatewayPaymentId: string | null
}

/** Reusable addresses: anyone can pay to them any number of times. */
export type NodeReceiving = {
  offer: string | null
  lightningAddress: string | null
  /** The node has no Lightning address, because it has no channel yet. */
  needsChannel: boolean
}

const NOTHING_KNOWN: NodeLive = {
  isReachable: false,
  balanceSat: null,
  feeCreditSat: null,
  channels: null,
  inboundSat: null,
  blockHeight: null,
  version: null,
}

const LOOK_TIMEOUT_MS = 3_000
const INVOICE_TIMEOUT_MS = 5_000
/** Longer than a payment takes, and shorter than the two minutes after which an idle connection is closed. */
const PAY_TIMEOUT_MS = 110_000
/** Clocks of two machines may differ by this much. */
const CLOCK_SKEW_MS = 10_000
const LISTED = 50
const HASH = /^[0-9a-f]{64}$/

export type WalletsDeps = { sql: Sql; accessTo: AccessTo; network: Network }

/**
 * A node's money, as its owner sees it in the dashboard. Every call uses the password selected by `accessMode`, the only one a request can
 * open. With the restricted password, the node itself refuses to send.
 */
export class Wallets {
  readonly #deps: WalletsDeps

  constructor(deps: WalletsDeps) {
    this.#deps = deps
  }

  /** An unresponsive node is not an error: the page shows that the node is unreachable, and unknown values are null. */
  async live(call: Call, nodeId: string): Promise<NodeLive> {
    const node = await this.#find(call, nodeId)
    const { address } = node
    if (!address) return NOTHING_KNOWN
    const password = node.password()
    const [seen, held] = await Promise.all([
      getInfo(address, password, LOOK_TIMEOUT_MS),
      getBalance(address, password, LOOK_TIMEOUT_MS),
    ])
    if (seen.answer !== 'info') {
      // The node list and counts show the reconciler's last observation, which may be minutes old. So check the node again now.
      await wakeNode(this.#deps.sql, nodeId)
      return NOTHING_KNOWN
    }
    const { info } = seen
    // Computed from the same answer as the channel states. The node reports its own sum in a separate answer, which can still be zero after
    // the peer has reconnected and the channels look healthy.
    const balanceSat = balanceOf(info) ?? null
    if (balanceSat !== null) await recordBalance(this.#deps.sql, nodeId, balanceSat, node.nowMs)
    const channels = info.channels.filter((channel) => !isAborted(channel))
    return {
      isReachable: true,
      balanceSat,
      feeCreditSat: balanceSat !== null && held.answer === 'balance' ? held.feeCreditSat : null,
      channels: { usable: channels.filter(({ state }) => state === 'Normal').length, total: channels.length },
      inboundSat: inboundOf(info) ?? null,
      blockHeight: info.blockHeight ?? null,
      version: info.version,
    }
  }

  async payments(call: Call, nodeId: string): Promise<NodePayment[]> {
    const { address, password, nowMs } = await this.#running(call, nodeId)
    const lists = await Promise.all([
      listIncoming(address, password, LISTED, LOOK_TIMEOUT_MS),
      listOutgoing(address, password, LISTED, nowMs, LOOK_TIMEOUT_MS),
    ])
    const payments = lists.flatMap((list) => {
      if (list.answer !== 'payments') throw silent(list)
      return list.payments
    })
    await this.#recordReceipts(nodeId, payments)
    const newest = payments.sort(newestFirst).slice(0, LISTED)
    const hashes = newest.flatMap(({ direction, paymentHash }) => (direction === 'in' && paymentHash ? [paymentHash] : []))
    const ids = await paymentIdsOf(this.#deps.sql, nodeId, hashes)
    return newest.map((payment) => {
      const { direction, paymentHash } = payment
      return { ...paymentOf(payment), gatewayPaymentId: (direction === 'in' && ids.get(paymentHash ?? '')) || null }
    })
  }

  async receiving(call: Call, nodeId: string): Promise<NodeReceiving> {
    const { address, password } = await this.#running(call, nodeId)
    const [offer, lightning] = await Promise.all([
      getOffer(address, password, LOOK_TIMEOUT_MS),
      getLightningAddress(address, password, LOOK_TIMEOUT_MS),
    ])
    return {
      offer: offer.answer === 'offer' ? offer.offer : null,
      lightningAddress: lightning.answer === 'address' ? lightning.address : null,
      needsChannel: lightning.answer === 'no channel',
    }
  }

  async createInvoice(
    call: Call,
    nodeId: string,
    params: { amountSat?: number; description: string },
  ): Promise<{ paymentHash: string; invoice: string }> {
    const { address, password } = await this.#running(call, nodeId)
    const { amountSat, description } = params
    const payee = { address, password, network: this.#deps.network }
    const invoice = await invoiceFrom(payee, { amountSat, description }, INVOICE_TIMEOUT_MS)
    return { paymentHash: invoice.paymentHash, invoice: invoice.serialized }
  }

  async invoice(call: Call, nodeId: string, paymentHash: string): Promise<{ isPaid: boolean; receivedSat: number }> {
    const { address, password } = await this.#running(call, nodeId)
    const found = HASH.test(paymentHash)
      ? await findIncomingPayment(address, password, paymentHash, LOOK_TIMEOUT_MS)
      : { answer: 'unknown' as const }
    if (found.answer === 'unknown') throw new Problem('not_found', 'The node has no such invoice.')
    if (found.answer !== 'payment') throw silent(found)
    await this.#recordReceipts(nodeId, [found.payment])
    const { isPaid, amountSat } = found.payment
    return { isPaid, receivedSat: isPaid ? amountSat : 0 }
  }

  /** Payments that a page shows as received are included in the account's sums at once, not only after the next regular listing. */
  async #recordReceipts(nodeId: string, payments: WalletPayment[]): Promise<void> {
    const receipts = payments.flatMap(({ direction, isPaid, paymentHash, amountSat, completedAtMs }) =>
      direction === 'in' && isPaid && paymentHash && completedAtMs ? [{ paymentHash, amountSat, completedAtMs }] : [],
    )
    if (receipts.length > 0) await recordReceipts(this.#deps.sql, nodeId, receipts)
  }

  /**
   * Sends the payment to the node once. If the outcome is unclear, looks it up and reports what the node knows, because a caller who gets
   * "failed" pays again. A failure recorded before this request belongs to an earlier attempt.
   */
  async pay(call: Call, nodeId: string, params: { invoice: string; amountSat?: number }): Promise<NodeSent> {
    const { sql } = this.#deps
    const { accessMode } = await ownNode(sql, call, nodeId)
    // Only for a clear message: the password stored for such a node cannot send anyway.
    if (accessMode !== 'full') throw cannotSend()
    const { address, password, nowMs } = await this.#running(call, nodeId)
    const payment = this.#checked(params, nowMs)
    await logActivity(sql, call.accountId, call.actor, 'node.pay', nodeId)
    const startedMs = Date.now()
    const sent = await payInvoice(address, password, payment, PAY_TIMEOUT_MS)
    if (sent.answer === 'sent') return { outcome: 'sent', reason: null, amountSat: sent.amountSat, feeSat: sent.feeSat }
    if (sent.answer === 'failed' && !isOfEarlierRequest(sent.reason))
      return { ...NOTHING_SENT, outcome: 'failed', reason: sent.reason }
    if (sent.answer === 'wrong password')
      throw new Problem('invalid_node_state', 'The node does not let the service send payments. Nothing was sent.')
    if (sent.answer === 'refused' || sent.answer === 'unreachable') throw silent(sent)
    const found = await findOutgoingPayment(address, password, payment.paymentHash, LOOK_TIMEOUT_MS)
    const known = found.answer === 'payment' ? found.payment : undefined
    if (known?.isPaid) {
      // If the node did not answer, only the time it recorded shows whether this request paid, and its clock may be behind ours.
      const isEarlier = sent.answer === 'failed' || known.createdAtMs < startedMs - CLOCK_SKEW_MS
      const outcome = isEarlier ? 'already_sent' : 'sent'
      return { outcome, reason: null, amountSat: known.amountSat, feeSat: Math.floor(known.feeMsat / 1000) }
    }
    if (sent.answer === 'uncertain' && known?.completedAtMs !== undefined && known.createdAtMs >= startedMs)
      return { ...NOTHING_SENT, outcome: 'failed', reason: 'the node gave no reason' }
    return {
      ...NOTHING_SENT,
      outcome: 'unknown',
      reason:
        sent.answer === 'failed'
          ? sent.reason
          : 'The node did not respond in time. Do not pay again yet: if the payment was sent, it will appear in the list of payments.',
    }
  }

  /** Checks what the node does not: it pays invoices of any network, and ignores whether they have expired. */
  #checked(params: { invoice: string; amountSat?: number }, nowMs: number) {
    const serialized = normalizedInvoice(params.invoice)
    const invoice = readInvoice(serialized)
    if (!invoice) throw new Problem('bad_request', 'This is not a Lightning invoice.')
    const { network, amountMsat, paymentHash } = invoice
    if (network !== this.#deps.network) throw new Problem('bad_request', 'The invoice is for a different network than the node.')
    if (invoiceExpiresAtSeconds(invoice) * 1000 <= nowMs) throw new Problem('bad_request', 'The invoice has expired.')
    if (amountMsat === undefined && params.amountSat === undefined)
      throw new Problem('bad_request', 'The invoice has no amount, so the field "amountSat" is required.')
    if (amountMsat !== undefined && params.amountSat !== undefined && params.amountSat * 1000 !== amountMsat)
      throw new Problem('bad_request', 'The field "amountSat" differs from the amount of the invoice.')
    return { invoice: serialized, paymentHash, amountSat: amountMsat === undefined ? params.amountSat : undefined }
  }

  async #find(call: Call, nodeId: string): Promise<NodeAccess> {
    // An invalid id matches nothing, and may contain bytes that PostgreSQL rejects.
    const node = isId('node', nodeId) ? await this.#deps.accessTo(nodeId) : undefined
    if (!node || node.isDeleted || node.accountId !== call.accountId) throw noSuchNode()
    return node
  }

  async #running(call: Call, nodeId: string): Promise<{ address: NodeAddress; password: string; nowMs: number }> {
    const { address, password, nowMs } = await this.#find(call, nodeId)
    if (!address)
      throw new Problem(
        'payment_service_unavailable',
        'The node cannot be reached from here. Start it if it is stopped; otherwise try again shortly.',
      )
    return { address, password: password(), nowMs }
  }
}

const paymentOf = ({
  createdAtMs,
  expiresAtMs,
  completedAtMs,
  paymentHash,
  description,
  ...payment
}: WalletPayment): Omit<NodePayment, 'gatewayPaymentId'> => ({
  ...payment,
  paymentHash: paymentHash ?? null,
  description: description ?? null,
  createdAt: Math.floor(createdAtMs / 1000),
  expiresAt: expiresAtMs === undefined ? null : Math.floor(expiresAtMs / 1000),
  completedAt: completedAtMs === undefined ? null : Math.floor(completedAtMs / 1000),
})

const NOTHING_SENT = { amountSat: null, feeSat: null }

/** These refusals say nothing about the payment itself, which an earlier request has made or may still make. */
const isOfEarlierRequest = (reason: string): boolean =>
  reason === 'another payment is in progress for that invoice' || reason === 'this invoice has already been paid'

const cannotSend = (): Problem =>
  new Problem(
    'invalid_node_state',
    'The dashboard has limited access to this node: it can create invoices but not send payments. To send, call the node’s own API with its full password.',
  )

const silent = (answer: NoAnswer): Problem =>
  answer.answer === 'refused'
    ? new Problem('payment_service_unavailable', 'The node rejected the request.', { cause: new Error(answer.why) })
    : new Problem('payment_service_unavailable', 'The node did not respond. Try again shortly.')
