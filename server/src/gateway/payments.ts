import { randomBytes } from 'node:crypto'
import { DEFAULT_PAGE_SIZE } from '../../../contract/src/payments.ts'
import type { Invoice } from '../../../protocol/src/bolt11.ts'
import { issueL402 } from '../../../protocol/src/l402.ts'
import { issueMpp } from '../../../protocol/src/mpp.ts'
import type { Config } from '../config.ts'
import { type Repeatable, runOnce } from '../idempotency.ts'
import { expiryOf, invoiceFrom, oddInvoice } from '../lightning/invoices.ts'
import { crashpoint } from '../platform/crashpoint.ts'
import { isId, newId } from '../platform/ids.ts'
import type { NodeAddress } from '../platform/node-agent.ts'
import { primitives } from '../platform/primitives.ts'
import type { MasterKey } from '../platform/secrets.ts'
import { badCursor, noSuchNode, Problem } from '../problems.ts'
import type { AskableNode } from '../settlements/askable-node.ts'
import type { NoteChange } from '../store/changes.ts'
import type { Database, Sql } from '../store/db.ts'
import {
  type ExportFilter,
  findShownPayment,
  insertPayment,
  listPayments,
  listPaymentsToExport,
  type NewPayment,
  type PaymentFilter,
  type Protocol,
  type ShownPayment,
} from '../store/payments/payments.ts'
import { OpenChallenges } from './open-challenges.ts'
import { CSV_HEADER, csvLine } from './payments-csv.ts'
import type { ProtocolKeys } from './protocol-keys.ts'

/** Who is calling, and for which account. */
export type Call = { accountId: string; actor: string }

export type CreatePaymentParams = {
  nodeId: string
  amountSat: number
  description: string
  resource?: string
  protocol?: Protocol
}
export type ListPaymentsParams = Pick<PaymentFilter, 'status' | 'delivery' | 'nodeId'> & {
  limit?: number
  /** The `nextCursor` of the previous page. */
  cursor?: string
  /** Only payments that are settled and not delivered. */
  undelivered?: true
}
export type PaymentPage = { payments: ShownPayment[]; nextCursor: string | null }
export type CreatedPayment = { id: string; protocol: Protocol; status: 'payment_required'; challenge: string }

/** What we need to know about a node that receives a payment. */
type PayableNode = AskableNode & {
  accountId: string
  isDeleted: boolean
  isReady: boolean
  /** The current time by the database's clock. */
  nowMs: number
}
type ReadyNode = PayableNode & { address: NodeAddress }

const INVOICE_TIMEOUT_MS = 5_000
const EXPORTED_AT_ONCE = 1_000

export type PaymentsDeps = {
  sql: Database
  config: Config
  masterKeys: MasterKey[]
  network: Invoice['network']
  protocolKeys: ProtocolKeys
  /** Undefined: no such node. */
  accessTo: (nodeId: string) => Promise<PayableNode | undefined>
  /** For a node that did not return an invoice. */
  reportSilence: (nodeId: string) => void
  noteChange: NoteChange
}

/** Creates and reads payments: HTTP 402 challenges that pay a node of the account. */
export class Payments {
  readonly #deps: PaymentsDeps
  readonly #open: OpenChallenges

  constructor(deps: PaymentsDeps) {
    this.#deps = deps
    this.#open = new OpenChallenges(deps.sql, deps.config.maxOpenChallenges)
  }

  async create(call: Call, params: CreatePaymentParams, repeatable?: Repeatable): Promise<CreatedPayment> {
    const { sql, masterKeys } = this.#deps
    let leave = (): void => undefined
    const prepare = async (): Promise<NewPayment> => {
      const node = await this.#readyNode(call, params.nodeId)
      leave = await this.#open.enter(params.nodeId)
      return this.#prepare(call, params, node)
    }
    const work = async (store: Sql, payment: NewPayment): Promise<CreatedPayment> => {
      if (!(await insertPayment(store, payment))) throw oddInvoice('its payment hash belongs to another payment')
      crashpoint('payment: not yet committed')
      return { id: payment.id, protocol: payment.protocol, status: 'payment_required', challenge: payment.challenge }
    }
    try {
      // Without an Idempotency-Key, the work is a single statement and needs no transaction.
      const created =
        repeatable?.key === undefined
          ? await work(sql, await prepare())
          : await runOnce(sql, masterKeys, repeatable, 201, { prepare, work })
      crashpoint('payment: committed')
      this.#deps.noteChange(call.accountId, 'payments')
      return created
    } finally {
      leave()
    }
  }

  async #readyNode(call: Call, nodeId: string): Promise<ReadyNode> {
    // An invalid id matches nothing, and may contain bytes that PostgreSQL rejects.
    const node = isId('node', nodeId) ? await this.#deps.accessTo(nodeId) : undefined
    if (!node || node.isDeleted || node.accountId !== call.accountId) throw noSuchNode()
    const { address } = node
    if (!node.isReady || !address)
      throw new Problem('payment_service_unavailable', 'The node is not ready. Only a ready node can receive payments.')
    return { ...node, address }
  }

  /** Everything except storing the payment. An invoice that is created and then dropped does no harm, because no one has seen it. */
  async #prepare(call: Call, params: CreatePaymentParams, node: ReadyNode): Promise<NewPayment> {
    const { nodeId, amountSat, description, resource = null, protocol = 'mpp' } = params
    const { config, protocolKeys } = this.#deps
    const id = newId('pay')
    // An invoice must not outlive its credential, or a customer could pay for nothing.
    const lifetimeSeconds =
      protocol === 'l402'
        ? Math.min(config.challengeLifetimeSeconds, config.l402LifetimeSeconds)
        : config.challengeLifetimeSeconds
    const invoice = await invoiceFrom(
      { address: node.address, password: node.password(), network: this.#deps.network },
      {
        amountSat,
        description,
        expirySeconds: lifetimeSeconds,
        externalId: id,
        webhookUrl: `${config.nodeCallbackUrl}/internal/settled/${nodeId}`,
      },
      INVOICE_TIMEOUT_MS,
    ).catch((error: unknown) => {
      this.#deps.reportSilence(nodeId)
      throw error
    })
    crashpoint('payment: invoice made')
    const createdSeconds = Math.floor(node.nowMs / 1000)
    const expiresAtSeconds = expiryOf(invoice, createdSeconds, lifetimeSeconds)
    const paymentHash = Buffer.from(invoice.paymentHash, 'hex')
    const tokenId = protocol === 'l402' ? randomBytes(32) : null
    const key = protocolKeys.current
    const issue = (): string => {
      if (tokenId) {
        const validUntilSeconds = createdSeconds + config.l402LifetimeSeconds
        return issueL402(primitives, key.rootKeyOf(id), {
          paymentId: id,
          paymentHash,
          tokenId,
          validUntilSeconds,
          invoice: invoice.serialized,
        })
      }
      const { network } = invoice
      if (network === 'testnet') throw oddInvoice('MPP does not define this network')
      const terms = {
        amountSat,
        description,
        paymentId: id,
        invoice: invoice.serialized,
        network,
        paymentHash: invoice.paymentHash,
      }
      return issueMpp(primitives, key.mpp, new URL(config.publicUrl).host, terms, expiresAtSeconds)
    }
    return {
      id,
      accountId: call.accountId,
      nodeId,
      protocol,
      amountSat,
      description,
      resource,
      challenge: issue(),
      paymentHash,
      protocolKeyId: key.id,
      tokenId,
      createdAtMs: node.nowMs,
      expiresAtSeconds,
    }
  }

  async get(call: Call, id: string): Promise<ShownPayment & { challenge: string }> {
    const payment = isId('pay', id) && (await findShownPayment(this.#deps.sql, call.accountId, id))
    if (!payment) throw notFound()
    return payment
  }

  /** Lines of CSV, read from the store while they are sent. */
  async *csv(call: Call, filter: ExportFilter): AsyncGenerator<string> {
    yield CSV_HEADER
    // No payment matches an invalid id.
    if (filter.nodeId !== undefined && !isId('node', filter.nodeId)) return
    for (let after: string | undefined; ; ) {
      const payments = await listPaymentsToExport(this.#deps.sql, call.accountId, filter, after, EXPORTED_AT_ONCE)
      if (payments.length > 0) yield payments.map(csvLine).join('')
      after = payments.at(-1)?.id
      if (payments.length < EXPORTED_AT_ONCE) return
    }
  }

  async list(call: Call, params: ListPaymentsParams): Promise<PaymentPage> {
    const { limit = DEFAULT_PAGE_SIZE, cursor, undelivered, ...filter } = params
    if (cursor !== undefined && !isId('pay', cursor)) throw badCursor()
    // No payment matches an invalid id.
    if (filter.nodeId !== undefined && !isId('node', filter.nodeId)) return { payments: [], nextCursor: null }
    const rows = await listPayments(this.#deps.sql, call.accountId, {
      ...filter,
      ...(cursor === undefined ? {} : { before: cursor }),
      ...(undelivered ? { delivery: 'none', isSettled: true } : {}),
      // One extra row shows whether there is a next page.
      limit: limit + 1,
    })
    const payments = rows.slice(0, limit)
    return { payments, nextCursor: rows.length > limit ? (payments.at(-1)?.id ?? null) : null }
  }
}

export const notFound = (): Problem => new Problem('gateway_payment_not_found', 'There is no such payment.')
