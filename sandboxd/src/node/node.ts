import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { crashpoint } from '../crashpoint.ts'
import { type Delivery, type DeliveryAnswer, type Settlement, settle } from '../delivery.ts'
import { type Journal, JournalUnavailable } from '../journal.ts'
import { encodeInvoice, hasUnsupportedFeature, type Invoice, MAX_AMOUNT_MSAT } from '../lightning/bolt11.ts'
import type { NodeKeys } from '../seed.ts'
import { Faults } from './faults.ts'
import { KeyedMutex } from './keyed-mutex.ts'
import type { ConditionsRecord, Incoming, InvoiceRecord, Ledger, LedgerRecord, Outgoing, SendingRecord } from './ledger.ts'
import { admit, type ChannelUse, type LiquidityPolicy } from './liquidity.ts'

export const DEFAULT_EXPIRY_SECONDS = 86_400

/** Stands for ACINQ's node in the routing hint: the point H of BIP 341, whose private key is unknown. */
const PEER_NODE_ID = '0250929b74c1a04954b78b4b6035e97a5e078a5a0f28ec96d547bfee9ace803ac0'

const RECIPIENT_REJECTED = 'recipient node rejected the payment'
const TEMPORARY_FAILURE = 'a node in the route had a temporary failure'

export type InvoiceRequest = {
  amountMsat: number | undefined
  description: { text: string } | { hash: Uint8Array }
  expirySeconds: number | undefined
  externalId: string | undefined
  webhookUrl: string | undefined
}

export type PayResult = { sent: Outgoing; preimage: string } | { paymentHash: string; reason: string }

/** The trampoline fee: 4 sat + 0.4 %, in whole millisatoshis. */
export function routingFeeMsat(amountMsat: number): number {
  return 4_000 + Math.floor(amountMsat / 250)
}

/** The largest amount the balance can send including the fee; 0 if it does not even cover the fee. */
export function maxSendableMsat(balanceMsat: number): number {
  let amountMsat = Math.max(0, Math.floor(((balanceMsat - 4_000) * 250) / 251))
  while (amountMsat + 1 + routingFeeMsat(amountMsat + 1) <= balanceMsat) amountMsat++
  while (amountMsat > 0 && amountMsat + routingFeeMsat(amountMsat) > balanceMsat) amountMsat--
  return amountMsat
}

export type NodeDeps = {
  keys: NodeKeys
  ledger: Ledger
  journal: Journal<LedgerRecord>
  policy: LiquidityPolicy
  /** Undefined for a node without a network; every recipient is then unreachable. */
  deliver: ((delivery: Delivery) => Promise<DeliveryAnswer>) | undefined
  log: (line: string) => void
  onReceived: (incoming: Incoming) => void
}

export class LightningNode {
  readonly faults = new Faults()
  readonly #deps: NodeDeps
  readonly #mutex = new KeyedMutex()
  readonly #stop = new AbortController()
  /** Payments whose pending record is being written to disk. They already reserve their hash and their money. */
  readonly #starting = new Map<string, number>()
  /** The sum of received amounts that are being written to disk. Without it, concurrent payments could together exceed a limit. */
  #arrivingMsat = 0

  constructor(deps: NodeDeps) {
    this.#deps = deps
  }

  get ledger(): Ledger {
    return this.#deps.ledger
  }

  get nodeId(): string {
    return this.#deps.keys.nodeId
  }

  /** Never goes backward, even if the machine's clock does, because lists are sorted by it. */
  now(): number {
    return Math.max(this.ledger.latestMs, Date.now() + this.ledger.conditions.clockAheadMs)
  }

  get blockHeight(): number | undefined {
    return this.faults.explorer === 'up' ? Math.floor((this.now() - Date.UTC(2024, 0)) / 600_000) : undefined
  }

  get channelIsOffline(): boolean {
    return !this.ledger.conditions.peerUp
  }

  async createInvoice(request: InvoiceRequest): Promise<InvoiceRecord> {
    const preimage = randomBytes(32)
    const paymentHash = createHash('sha256').update(preimage).digest()
    const paymentSecret = randomBytes(32)
    const createdAtMs = this.now()
    const expirySeconds = request.expirySeconds ?? DEFAULT_EXPIRY_SECONDS
    const serialized = encodeInvoice(
      {
        amountMsat: request.amountMsat,
        timestampSeconds: Math.floor(createdAtMs / 1000),
        paymentHash,
        paymentSecret,
        description: request.description,
        expirySeconds,
        routingHint: routingHint(this.nodeId),
      },
      this.#deps.keys.privateKey,
    )
    const record: InvoiceRecord = {
      t: 'invoice',
      paymentHash: paymentHash.toString('hex'),
      preimage: preimage.toString('hex'),
      paymentSecret: paymentSecret.toString('hex'),
      serialized,
      // As in phoenixd, 0 is encoded in the invoice and means any amount.
      ...(request.amountMsat ? { amountMsat: request.amountMsat } : {}),
      ...('text' in request.description ? { description: request.description.text } : {}),
      expirySeconds,
      createdAtMs,
      ...(request.externalId === undefined ? {} : { externalId: request.externalId }),
      ...(request.webhookUrl === undefined ? {} : { webhookUrl: request.webhookUrl }),
    }
    await this.#deps.journal.append(record)
    return record
  }

  async pay(invoice: Invoice, serialized: string, amountMsat: number): Promise<PayResult> {
    const result = await this.#pay(invoice, serialized, amountMsat)
    if ('refused' in result) await this.faults.until(() => this.faults.payments.mode !== 'lose')
    return result
  }

  async #pay(
    invoice: Invoice,
    serialized: string,
    amountMsat: number,
  ): Promise<PayResult | { paymentHash: string; reason: string; refused: true }> {
    const { paymentHash } = invoice
    const refuse = (reason: string) => ({ paymentHash, reason, refused: true as const })
    if (amountMsat <= 0) return refuse('payment amount must be positive')
    if (hasUnsupportedFeature(invoice.features)) return refuse('payment request features not supported')
    // phoenixd needs the block height to choose an expiry for the payment, and waits for it indefinitely.
    await this.faults.until(() => this.blockHeight !== undefined)
    const earlier = this.ledger.outgoingByHash.get(paymentHash) ?? []
    if (earlier.some(({ end }) => end?.t === 'sent')) return refuse('this invoice has already been paid')
    if (earlier.some(({ end }) => !end) || this.#starting.has(paymentHash)) {
      return refuse('another payment is in progress for that invoice')
    }
    const payment: SendingRecord = {
      t: 'sending',
      paymentId: randomUUID(),
      paymentHash,
      paymentSecret: invoice.paymentSecret,
      recipient: invoice.nodeId,
      invoice: serialized,
      amountMsat,
      feeMsat: routingFeeMsat(amountMsat),
      createdAtMs: this.now(),
    }
    const costMsat = amountMsat + payment.feeMsat
    const refusal = this.#refusalToSend(costMsat)
    this.#starting.set(paymentHash, refusal ? 0 : costMsat)
    try {
      if (refusal) {
        await this.#deps.journal.append(payment, {
          t: 'unsent',
          paymentId: payment.paymentId,
          reason: refusal,
          atMs: this.now(),
        })
        return refuse(refusal)
      }
      await this.#deps.journal.append(payment)
    } finally {
      this.#starting.delete(paymentHash)
    }
    crashpoint('payer: pending is durable')
    return this.#complete(payment, false)
  }

  #refusalToSend(costMsat: number): string | undefined {
    if (this.ledger.capacitySat === null) {
      return 'payment could not be sent through existing channels, check individual failures for more details'
    }
    if (this.channelIsOffline) return 'channel is not connected yet, please retry when connected'
    const promisedMsat = [...this.#starting.values()].reduce((sum, msat) => sum + msat, 0)
    if (this.ledger.balanceMsat - promisedMsat < costMsat) return 'not enough funds in wallet to afford payment'
    return undefined
  }

  /** Called when the deduction from the balance is durable. Resolves only when the payment has succeeded or failed. */
  async #complete(payment: SendingRecord, askedBefore: boolean): Promise<PayResult> {
    await this.faults.until(() => this.faults.payments.mode !== 'hold')
    const settlement = await this.#settle(payment, askedBefore)
    crashpoint('payer: answer is known')
    const outgoing = await this.#recordEnd(payment, settlement)
    crashpoint('payer: end is durable')
    if ('preimage' in settlement) return { sent: outgoing, preimage: settlement.preimage }
    return { paymentHash: payment.paymentHash, reason: settlement.reason }
  }

  async #settle(payment: SendingRecord, askedBefore: boolean): Promise<Settlement> {
    const { payments } = this.faults
    if (payments.mode === 'fail' && !askedBefore) return { reason: payments.reason }
    const { paymentId, recipient, paymentHash, paymentSecret, amountMsat } = payment
    const delivery = { paymentId, recipient, paymentHash, paymentSecret, amountMsat }
    const settlement = await settle(delivery, askedBefore, (attempt) => this.#deliver(attempt), this.#stop.signal)
    return 'reason' in settlement && askedBefore ? { reason: 'wallet restarted while a payment was ongoing' } : settlement
  }

  async #deliver(delivery: Delivery): Promise<DeliveryAnswer> {
    if (this.channelIsOffline || !this.#deps.deliver) return { outcome: 'unreachable' }
    return this.#deps.deliver(delivery)
  }

  async #recordEnd(payment: SendingRecord, settlement: Settlement): Promise<Outgoing> {
    const { paymentId } = payment
    const atMs = this.now()
    const end: LedgerRecord =
      'preimage' in settlement
        ? { t: 'sent', paymentId, preimage: settlement.preimage, atMs }
        : { t: 'unsent', paymentId, reason: settlement.reason, atMs }
    await this.#deps.journal.appendEventually(this.#stop.signal, end)
    return this.ledger.outgoing.get(paymentId) ?? { payment }
  }

  /** Resumes payments that were pending when the last process died, by asking the recipients for the outcome. */
  resumePending(): void {
    for (const { payment, end } of [...this.ledger.outgoing.values()]) {
      if (end) continue
      this.#complete(payment, true).catch((error: unknown) => {
        if (!this.#stop.signal.aborted) this.#deps.log(`payment ${payment.paymentId} stays pending: ${String(error)}`)
      })
    }
  }

  /** The recipient's side of a payment: exactly one payment id can pay an invoice, and a retry always gets the same result. */
  receive(delivery: Delivery): Promise<DeliveryAnswer> {
    return this.#mutex.take(delivery.paymentHash, () =>
      // Incoming payments spend fee credit, and concurrent ones must not spend it twice.
      this.ledger.conditions.feeCredit ? this.#mutex.take('fee credit', () => this.#receive(delivery)) : this.#receive(delivery),
    )
  }

  async #receive(delivery: Delivery): Promise<DeliveryAnswer> {
    if (this.channelIsOffline || delivery.recipient !== this.nodeId) return { outcome: 'unreachable' }
    const incoming = this.ledger.incoming.get(delivery.paymentHash)
    if (incoming?.received?.paymentId === delivery.paymentId) return { outcome: 'paid', preimage: incoming.invoice.preimage }
    if (this.ledger.refused.has(delivery.paymentId)) return { outcome: 'refused', reason: RECIPIENT_REJECTED }
    try {
      if (!incoming || this.#rejects(incoming, delivery)) return await this.#refuse(delivery, RECIPIENT_REJECTED)
      const { amountMsat } = delivery
      const admission = admit(amountMsat, this.#channelUse(), this.ledger.conditions.feeCredit, this.#deps.policy)
      if (!admission.admitted) {
        this.#deps.log(admission.consoleLine)
        return await this.#refuse(delivery, TEMPORARY_FAILURE)
      }
      const { admitted: _, ...terms } = admission
      this.#arrivingMsat += amountMsat
      try {
        await this.#deps.journal.append({
          t: 'received',
          paymentHash: delivery.paymentHash,
          paymentId: delivery.paymentId,
          amountMsat,
          ...terms,
          atMs: this.now(),
        })
      } finally {
        this.#arrivingMsat -= amountMsat
      }
    } catch (error) {
      // Nothing was written, so this attempt has not arrived. A payer who is unsure about an earlier one keeps retrying.
      if (error instanceof JournalUnavailable) return { outcome: 'unreachable' }
      throw error
    }
    crashpoint('recipient: paid is durable')
    this.#deps.log(`received lightning payment: ${Math.floor(delivery.amountMsat / 1000)} sat`)
    this.#deps.onReceived(incoming)
    return { outcome: 'paid', preimage: incoming.invoice.preimage }
  }

  #rejects({ invoice, received }: Incoming, delivery: Delivery): boolean {
    const wantedMsat = invoice.amountMsat ?? delivery.amountMsat
    return (
      received !== undefined ||
      invoice.paymentSecret !== delivery.paymentSecret ||
      this.now() > invoice.createdAtMs + invoice.expirySeconds * 1000 ||
      delivery.amountMsat < wantedMsat ||
      delivery.amountMsat > wantedMsat * 2 ||
      this.#channelUse().usedMsat + delivery.amountMsat > MAX_AMOUNT_MSAT
    )
  }

  async #refuse({ paymentId, again }: Delivery, reason: string): Promise<DeliveryAnswer> {
    if (again) await this.#deps.journal.append({ t: 'refused', paymentId })
    return { outcome: 'refused', reason }
  }

  #channelUse(): ChannelUse {
    const { balanceMsat, pendingMsat, capacitySat, feeCreditMsat } = this.ledger
    return { usedMsat: balanceMsat + pendingMsat + this.#arrivingMsat, capacitySat, feeCreditMsat }
  }

  /**
   * Adds money from the faucet. The same fundId counts only once. Returns false if the balance would be too large. If `again` is true,
   * this refusal is final: an earlier copy of the same grant may still arrive, and must be refused too.
   */
  fund(fundId: string, amountMsat: number, again: boolean): Promise<boolean> {
    return this.#mutex.take(`fund ${fundId}`, async () => {
      if (this.ledger.funded.has(fundId)) return true
      if (this.ledger.refused.has(fundId)) return false
      if (this.#channelUse().usedMsat + amountMsat > MAX_AMOUNT_MSAT) {
        if (!again) return false
        await this.#deps.journal.append({ t: 'refused', paymentId: fundId })
        crashpoint('recipient: refused is durable')
        return false
      }
      const admission = admit(amountMsat, this.#channelUse(), false, this.#deps.policy)
      const capacitySat = (admission.admitted && admission.capacitySat) || Math.ceil(amountMsat / 1000)
      this.#arrivingMsat += amountMsat
      try {
        await this.#deps.journal.append({ t: 'funded', fundId, amountMsat, capacitySat })
      } finally {
        this.#arrivingMsat -= amountMsat
      }
      crashpoint('recipient: funded is durable')
      return true
    })
  }

  changeConditions(change: Partial<Omit<ConditionsRecord, 't'>>): Promise<void> {
    return this.#mutex.take('conditions', async () => {
      await this.#deps.journal.append({ ...this.ledger.conditions, ...change })
      this.faults.wake()
    })
  }

  /** Returns false and leaves the clock unchanged if it would be further ahead than the limit. */
  advanceClock(seconds: number, limitSeconds: number): Promise<boolean> {
    return this.#mutex.take('clock', async () => {
      const clockAheadMs = this.ledger.conditions.clockAheadMs + seconds * 1000
      if (clockAheadMs > limitSeconds * 1000) return false
      await this.changeConditions({ clockAheadMs })
      return true
    })
  }

  /** Pending payments stay pending; the next start resolves them. */
  stop(): void {
    this.#stop.abort()
  }
}

/** phoenixd's synthetic routing hint for a node without a channel: its peer, a short channel id derived from its key, default fees. */
function routingHint(nodeId: string): Buffer {
  const hint = Buffer.alloc(51)
  Buffer.from(PEER_NODE_ID, 'hex').copy(hint, 0)
  hint.writeUInt8(0xff, 33)
  Buffer.from(nodeId, 'hex').subarray(-7).copy(hint, 34)
  hint.writeUInt32BE(1000, 41)
  hint.writeUInt32BE(100, 45)
  hint.writeUInt16BE(144, 49)
  return hint
}
