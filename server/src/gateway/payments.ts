import { DEFAULT_PAGE_SIZE } from '../../../contract/src/payments.ts'
import { requirementsIn, type X402Requirements } from '../../../protocol/src/x402.ts'
import { isBinding, isHttpUrl } from '../../../protocol/src/x402-binding.ts'
import { type Repeatable, runOnce } from '../idempotency.ts'
import { oddInvoice } from '../lightning/invoices.ts'
import { crashpoint } from '../platform/crashpoint.ts'
import { isId } from '../platform/ids.ts'
import type { MasterKey } from '../platform/secrets.ts'
import { badCursor, noSuchNode, Problem } from '../problems.ts'
import type { NoteChange } from '../store/changes.ts'
import type { Database, Sql } from '../store/db.ts'
import {
  findShownPayment,
  insertPayment,
  listPayments,
  type NewPayment,
  type PaymentDetails,
  type PaymentFilter,
  type Protocol,
  type ShownPayment,
} from '../store/payments/payments.ts'
import {
  type IssuerDeps,
  type NewTerms,
  type PayableNode,
  type ProtocolOptions,
  preparePayment,
  type ReadyNode,
} from './issue.ts'
import { OpenChallenges } from './open-challenges.ts'

/** Who is calling, and for which account. */
export type Call = { accountId: string; actor: string }

export type CreatePaymentParams = NewTerms & { protocol?: Protocol }
export type CreatePaymentBatchParams = NewTerms & { protocols: Protocol[] }
export type ListPaymentsParams = Pick<PaymentFilter, 'status' | 'delivery' | 'nodeId'> & {
  limit?: number
  /** The `nextCursor` of the previous page. */
  cursor?: string
}
export type PaymentPage = { payments: ShownPayment[]; nextCursor: string | null }
export type CreatedPayment = {
  id: string
  protocol: Protocol
  status: 'payment_required'
  challenge: string
  /** x402 only. */
  accepts?: X402Requirements[]
}

export type PaymentsDeps = IssuerDeps & {
  sql: Database
  masterKeys: MasterKey[]
  /** Undefined: no such node. */
  accessTo: (nodeId: string) => Promise<PayableNode | undefined>
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
    const { protocol = 'mpp', ...terms } = params
    requireOptions([protocol], terms)
    let leave = (): void => undefined
    const prepare = async (): Promise<NewPayment> => {
      const node = await this.#readyNode(call, params.nodeId)
      leave = await this.#open.enter(params.nodeId)
      return preparePayment(this.#deps, call, terms, protocol, node)
    }
    try {
      // Without an Idempotency-Key, the work is a single statement and needs no transaction.
      const { sql, masterKeys } = this.#deps
      const created =
        repeatable?.key === undefined
          ? await insert(sql, await prepare())
          : await runOnce(sql, masterKeys, repeatable, 201, { prepare, work: insert })
      this.#noteCreated(call)
      return created
    } finally {
      leave()
    }
  }

  /** A payment in each protocol. If one cannot be created, none is stored: an invoice that nobody has seen simply expires. */
  async createBatch(call: Call, params: CreatePaymentBatchParams, repeatable: Repeatable): Promise<CreatedPayment[]> {
    const { protocols, ...terms } = params
    requireOptions(protocols, terms)
    const leaves: (() => void)[] = []
    const prepare = async (): Promise<NewPayment[]> => {
      const node = await this.#readyNode(call, terms.nodeId)
      for (const _ of protocols) leaves.push(await this.#open.enter(terms.nodeId))
      const prepared = await Promise.allSettled(
        protocols.map((protocol) => preparePayment(this.#deps, call, terms, protocol, node)),
      )
      const failed = prepared.find((one) => one.status === 'rejected')
      if (failed) throw failed.reason
      return prepared.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    }
    const work = async (store: Sql, payments: NewPayment[]): Promise<CreatedPayment[]> => {
      const created: CreatedPayment[] = []
      for (const payment of payments) created.push(await insert(store, payment))
      return created
    }
    try {
      const created = await runOnce(this.#deps.sql, this.#deps.masterKeys, repeatable, 201, { prepare, work })
      this.#noteCreated(call)
      return created
    } finally {
      for (const leave of leaves) leave()
    }
  }

  #noteCreated(call: Call): void {
    crashpoint('payment: committed')
    this.#deps.noteChange(call.accountId, 'payments')
  }

  async #readyNode(call: Call, nodeId: string): Promise<ReadyNode> {
    // An invalid id matches nothing, and may contain bytes that PostgreSQL rejects.
    const node = isId('node', nodeId) ? await this.#deps.accessTo(nodeId) : undefined
    if (!node || node.isDeleted || node.accountId !== call.accountId) throw noSuchNode()
    const { address } = node
    if (!node.isReady || !address)
      throw new Problem(
        'payment_service_unavailable',
        'The node is not ready to receive payments. Start it, or wait until it is ready.',
      )
    return { ...node, address }
  }

  async get(call: Call, id: string): Promise<PaymentDetails> {
    const payment = isId('pay', id) && (await findShownPayment(this.#deps.sql, call.accountId, id))
    if (!payment) throw notFound()
    return payment
  }

  async list(call: Call, params: ListPaymentsParams): Promise<PaymentPage> {
    const { limit = DEFAULT_PAGE_SIZE, cursor, ...filter } = params
    if (cursor !== undefined && !isId('pay', cursor)) throw badCursor()
    // No payment matches an invalid id.
    if (filter.nodeId !== undefined && !isId('node', filter.nodeId)) return { payments: [], nextCursor: null }
    const rows = await listPayments(this.#deps.sql, call.accountId, {
      ...filter,
      ...(cursor === undefined ? {} : { before: cursor }),
      // One extra row shows whether there is a next page.
      limit: limit + 1,
    })
    const payments = rows.slice(0, limit)
    return { payments, nextCursor: rows.length > limit ? (payments.at(-1)?.id ?? null) : null }
  }
}

async function insert(store: Sql, payment: NewPayment): Promise<CreatedPayment> {
  if (!(await insertPayment(store, payment))) throw oddInvoice('its payment hash belongs to another payment')
  crashpoint('payment: inserted')
  const { id, protocol, challenge } = payment
  const accepts = protocol === 'x402' ? { accepts: [requirementsIn(challenge)] } : {}
  return { id, protocol, status: 'payment_required', challenge, ...accepts }
}

function requireOptions(protocols: Protocol[], { mpp, x402 }: ProtocolOptions): void {
  if (mpp && !protocols.includes('mpp')) throw badRequest('The field "mpp" is only for the protocol "mpp".')
  if (!x402 && !protocols.includes('x402')) return
  if (!x402) throw badRequest('The field "x402" is required for the protocol "x402".')
  if (!protocols.includes('x402')) throw badRequest('The field "x402" is only for the protocol "x402".')
  const { resource, requestHash, requestBindingProfile, requestBindingParams } = x402
  if (!isBinding({ requestHash, requestBindingProfile, requestBindingParams }))
    throw badRequest(
      'The field "x402.requestBindingParams" must be { headers } for "http:1" and { server, metadata } for "mcp:1", with each name once and in ascending order.',
    )
  if (requestBindingProfile === 'http:1' && !isHttpUrl(resource.url))
    throw badRequest(
      'The field "x402.resource.url" must be an absolute http or https URL without user information or a fragment.',
    )
}

const badRequest = (message: string): Problem => new Problem('bad_request', message)

export const notFound = (): Problem => new Problem('gateway_payment_not_found', 'There is no such payment.')
