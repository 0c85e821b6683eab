import { setTimeout as pause } from 'node:timers/promises'
import type { Invoice } from '../../../../protocol/src/bolt11.ts'
import type { Config } from '../../config.ts'
import { expiryOf, invoiceFrom, oddInvoice } from '../../lightning/invoices.ts'
import { crashpoint } from '../../platform/crashpoint.ts'
import type { Logger } from '../../platform/log.ts'
import type { NodeAddress } from '../../platform/node-agent.ts'
import { Problem } from '../../problems.ts'
import type { AskableNode } from '../../settlements/askable-node.ts'
import { findTopUp, insertTopUp, openTopUps, type TopUpRow } from '../../store/credit/top-ups.ts'
import { findTreasury, type Treasury } from '../../store/credit/treasury.ts'
import type { Sql } from '../../store/db.ts'

export type TopUp = TopUpRow
/** The part of a 402 response that says how to pay. */
export type Offer = { amountSat: number; invoice: string; expiresAt: number }

export const MAX_TOP_UP_SAT = 10_000_000
const LIFETIME_SECONDS = 3_600
/** An existing invoice is returned again only if the payer still has this long to pay it. */
const LONG_ENOUGH_SECONDS = 1_800
const MAX_OPEN = 50
const INVOICE_TIMEOUT_MS = 5_000
const OFFER_TIMEOUT_MS = 2_000
const POLL_MS = 100
const DESCRIPTION = 'Credit for Boltyard'

type TreasuryNode = AskableNode & { isReady: boolean; nowMs: number }

export type TopUpsDeps = {
  sql: Sql
  config: Config
  network: Invoice['network']
  accessTo: (nodeId: string) => Promise<TreasuryNode | undefined>
  log: Logger
}

/**
 * Sells credit for sats: the treasury's node creates an invoice, and when that node reports the invoice as settled, the account is
 * credited, no matter which process receives the report.
 */
export class TopUps {
  readonly #deps: TopUpsDeps
  readonly #making = new Map<string, Promise<TopUp>>()

  constructor(deps: TopUpsDeps) {
    this.#deps = deps
  }

  async isPossible(): Promise<boolean> {
    return (await this.#treasury()) !== undefined
  }

  async #treasury(): Promise<Treasury | undefined> {
    const { sql, config } = this.#deps
    return config.treasury === 'none' ? undefined : findTreasury(sql, config.treasury.nodeId)
  }

  /**
   * An open top-up for the same amount is returned again: a client that retries, or a user who clicks twice, must not fill the treasury's
   * node with invoices. The number of open top-ups is limited for the same reason.
   */
  async create(accountId: string, amountSat: number, timeoutMs = INVOICE_TIMEOUT_MS): Promise<TopUp> {
    if (!Number.isSafeInteger(amountSat) || amountSat < 1 || amountSat > MAX_TOP_UP_SAT)
      throw new Problem('bad_request', `The field "amountSat" must be a whole number from 1 to ${MAX_TOP_UP_SAT}.`)
    const name = `${accountId} ${amountSat}`
    const making = this.#making.get(name) ?? this.#make(accountId, amountSat, timeoutMs).finally(() => this.#making.delete(name))
    this.#making.set(name, making)
    return making
  }

  async #make(accountId: string, amountSat: number, timeoutMs: number): Promise<TopUp> {
    const { sql, config, network } = this.#deps
    const deadline = performance.now() + timeoutMs
    const treasury = await this.#treasury()
    if (!treasury) throw new Problem('not_found', 'This service does not sell credit. Ask the operator to add credit.')
    const { nodeId } = treasury
    const { open, same } = await openTopUps(sql, { accountId, nodeId, amountSat }, LONG_ENOUGH_SECONDS)
    if (same) return same
    if (open >= MAX_OPEN)
      throw new Problem('limit_reached', `This account has ${open} unpaid top-ups. Pay one of them, or wait until they expire.`)
    const node = await this.#ready(treasury, deadline)
    const invoice = await invoiceFrom(
      { address: node.address, password: node.password(), network },
      {
        amountSat,
        description: DESCRIPTION,
        expirySeconds: LIFETIME_SECONDS,
        externalId: accountId,
        webhookUrl: `${config.nodeCallbackUrl}/internal/settled/${nodeId}`,
      },
      Math.max(1, deadline - performance.now()),
    )
    crashpoint('top-up: invoice made')
    const topUp = await insertTopUp(sql, {
      paymentHash: Buffer.from(invoice.paymentHash, 'hex'),
      accountId,
      nodeId,
      amountSat,
      invoice: invoice.serialized,
      expiresAtSeconds: expiryOf(invoice, Math.floor(node.nowMs / 1000), LIFETIME_SECONDS),
    })
    if (!topUp) throw oddInvoice('its payment hash was already used, or the account was deleted')
    return topUp
  }

  /** Waits for a node that was just created: right after the first start it is not up yet. */
  async #ready(treasury: Treasury, deadline: number): Promise<TreasuryNode & { address: NodeAddress }> {
    for (let { status } = treasury; ; ) {
      const node = await this.#deps.accessTo(treasury.nodeId)
      if (node?.isReady && node.address) return { ...node, address: node.address }
      if (status !== 'provisioning' || performance.now() + POLL_MS > deadline)
        throw new Problem(
          'payment_service_unavailable',
          'The node that receives payments for credit is not ready. Try again shortly.',
        )
      await pause(POLL_MS)
      status = (await this.#treasury())?.status ?? 'gone'
    }
  }

  async find(accountId: string, paymentHash: string): Promise<TopUp> {
    const isHash = /^[0-9a-f]{64}$/.test(paymentHash)
    const topUp = isHash ? await findTopUp(this.#deps.sql, accountId, Buffer.from(paymentHash, 'hex')) : undefined
    if (!topUp) throw new Problem('not_found', 'There is no such top-up.')
    return topUp
  }

  /** For a 402 response, which is sent with or without an offer: undefined if there is no treasury or its node does not respond in time. */
  async offer(accountId: string, missingMsat: number): Promise<Offer | undefined> {
    const missingSat = Math.ceil(missingMsat / 1000)
    if (missingSat > MAX_TOP_UP_SAT || !(await this.isPossible().catch(() => false))) return undefined
    try {
      const { amountSat, invoice, expiresAt } = await this.create(accountId, missingSat, OFFER_TIMEOUT_MS)
      return { amountSat, invoice, expiresAt }
    } catch (error) {
      this.#deps.log.warn({ err: error }, 'cannot create a top-up; the 402 response has no invoice')
      return undefined
    }
  }
}
