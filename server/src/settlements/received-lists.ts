import { listReceived, placeAfter, type ReceivedPayment, type ReceivedPlace } from '../lightning/phoenixd/received.ts'
import type { Logger } from '../platform/log.ts'
import type { Sql } from '../store/db.ts'
import { listedNodesOf, unlistInvoices, unsettledAmong } from '../store/payments/invoices.ts'
import type { AskableNode } from './askable-node.ts'
import { BOOKS } from './books.ts'

const LIST_EVERY_MS = 5_000
const LIST_TIMEOUT_MS = 10_000
const REFRESH_EVERY_MS = 15_000
/** A payment may appear in the list a moment after the time at which it was completed. */
const OVERLAP_MS = 5_000
/** The first list begins this long before the oldest invoice was created, because our clock may differ from the node's. */
const CLOCK_MARGIN_MS = 60_000
/** A newly added node is kept until its invoices are marked in the store, which happens when they are due again. */
const KEEP_MS = 30_000
/** After an unusable list, no further list is requested for this long. */
const UNUSABLE_MS = 600_000

export type ReceivedListsDeps = {
  sql: Sql
  accessTo: (nodeId: string) => Promise<AskableNode | undefined>
  settle: (nodeId: string, paymentHash: Buffer, atMs: number) => Promise<void>
  log: Logger
}

/** A list that is being read: its next page, when it was begun and when its newest payment was completed. */
type OpenList = { place: ReceivedPlace; startedMs: number; newestMs: number }
type ListedNode = { fromMs: number; nextAtMs: number; keepUntilMs: number; list?: OpenList | undefined }

/**
 * Asks a node with many open invoices for a list of what it has received, instead of asking about each of them every 15 s. A list can only
 * say that an invoice is paid. An invoice that it misses, for example because the node's clock was set back, is asked about individually
 * after its expiry.
 */
export class ReceivedLists {
  readonly #deps: ReceivedListsDeps
  readonly #nodes = new Map<string, ListedNode>()
  readonly #unusableUntilMs = new Map<string, number>()
  readonly #busy = new Map<string, Promise<void>>()
  #refreshAtMs = 0

  constructor(deps: ReceivedListsDeps) {
    this.#deps = deps
  }

  get nodeIds(): string[] {
    return [...this.#nodes.keys()]
  }

  /** Requests lists from the node until `add` is no longer called for it. `oldestMs`: when its oldest open invoice was created. */
  add(nodeId: string, oldestMs: number): void {
    const nowMs = performance.now()
    if ((this.#unusableUntilMs.get(nodeId) ?? 0) > nowMs) return
    this.#unusableUntilMs.delete(nodeId)
    const known = this.#nodes.get(nodeId)
    if (known) known.keepUntilMs = nowMs + KEEP_MS
    else this.#nodes.set(nodeId, { fromMs: oldestMs - CLOCK_MARGIN_MS, nextAtMs: 0, keepUntilMs: nowMs + KEEP_MS })
  }

  /** Requests the lists that are due. */
  async sweep(host: string): Promise<void> {
    await this.#refresh(host)
    for (const [nodeId, node] of this.#nodes) {
      if (performance.now() < node.nextAtMs || this.#busy.has(nodeId)) continue
      node.nextAtMs = performance.now() + LIST_EVERY_MS
      const work = this.#list(nodeId, node)
        .catch((error: unknown) => this.#deps.log.warn({ err: error, nodeId }, 'cannot list received payments; will retry'))
        .finally(() => this.#busy.delete(nodeId))
      this.#busy.set(nodeId, work)
    }
  }

  /** The store records which invoices depend on lists, including those that another process has marked. */
  async #refresh(host: string): Promise<void> {
    const nowMs = performance.now()
    if (nowMs < this.#refreshAtMs) return
    const listed = await Promise.all(BOOKS.map(({ invoices }) => listedNodesOf(this.#deps.sql, invoices, host)))
    this.#refreshAtMs = nowMs + REFRESH_EVERY_MS
    for (const { nodeId, oldestMs } of listed.flat()) this.add(nodeId, oldestMs)
    for (const [nodeId, { keepUntilMs }] of this.#nodes) if (keepUntilMs < nowMs) this.#nodes.delete(nodeId)
  }

  async #list(nodeId: string, node: ListedNode): Promise<void> {
    const access = await this.#deps.accessTo(nodeId)
    const { address } = access ?? {}
    if (!access || !address) return
    const deadline = performance.now() + LIST_TIMEOUT_MS
    // A list that takes longer than this turn continues in the next one: begun again each time, a long list would never reach its end.
    node.list ??= { place: { fromMs: node.fromMs, offset: 0 }, startedMs: Date.now(), newestMs: 0 }
    const { list } = node
    for (;;) {
      const leftMs = deadline - performance.now()
      if (leftMs <= 0) return
      const page = await listReceived(address, access.password(), list.place, leftMs)
      if (page.answer === 'unreachable') return
      if (page.answer === 'refused') return this.#giveUp(nodeId, page.why)
      await this.#record(nodeId, page.payments)
      list.newestMs = Math.max(list.newestMs, ...page.payments.map(({ completedAtMs }) => completedAtMs))
      if (page.isLastPage) break
      list.place = placeAfter(list.place, page.payments)
    }
    // A time in the future would hide payments that are received before it.
    node.fromMs = Math.max(node.fromMs, Math.min(list.newestMs, list.startedMs) - OVERLAP_MS)
    node.list = undefined
  }

  async #record(nodeId: string, payments: ReceivedPayment[]): Promise<void> {
    if (payments.length === 0) return
    const times = new Map(payments.map(({ paymentHash, completedAtMs }) => [paymentHash, completedAtMs]))
    for (const { invoices } of BOOKS)
      for (const paymentHash of await unsettledAmong(this.#deps.sql, invoices, nodeId, [...times.keys()])) {
        const atMs = times.get(paymentHash.toString('hex'))
        if (atMs !== undefined) await this.#deps.settle(nodeId, paymentHash, atMs)
      }
  }

  async #giveUp(nodeId: string, why: string): Promise<void> {
    this.#deps.log.warn({ nodeId, why }, 'cannot use the list of received payments; asking about each invoice instead')
    this.#nodes.delete(nodeId)
    this.#unusableUntilMs.set(nodeId, performance.now() + UNUSABLE_MS)
    for (const { invoices } of BOOKS) await unlistInvoices(this.#deps.sql, invoices, nodeId)
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#busy.values())
  }
}
