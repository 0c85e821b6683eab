import { listReceived, placeAfter } from '../lightning/phoenixd/received.ts'
import type { Logger } from '../platform/log.ts'
import type { NoteChange } from '../store/changes.ts'
import type { Sql } from '../store/db.ts'
import { type DueList, finishList, keepList, recordReceipts, takeDueLists, type UnfinishedList } from '../store/nodes/receipts.ts'
import type { AskableNode } from './askable-node.ts'

const SWEEP_EVERY_MS = 5_000
const NODES_AT_ONCE = 4
/** Finding due lists costs a look at every node, so many are taken at once. Those that a process does not get to are due again soon. */
const TAKEN_AT_ONCE = 40
const LIST_TIMEOUT_MS = 60_000
const ASK_TIMEOUT_MS = 10_000
/** A payment may appear in the list a moment after the time at which it was completed. */
const OVERLAP_MS = 60_000

export type ReceiptsDeps = {
  sql: Sql
  accessTo: (nodeId: string) => Promise<AskableNode | undefined>
  noteChange: NoteChange
  log: Logger
}

/**
 * Records what nodes receive outside the gateway: through invoices that their owners created, an offer or an address. Nodes
 * send us events only about gateway payments and top-ups, so each node whose balance has changed lists what it has received since
 * its last list, at most every few minutes. Gateway payments and top-ups are in the list too, but are not recorded here again.
 */
export class Receipts {
  readonly #deps: ReceiptsDeps
  readonly #listTimeoutMs: number
  readonly #busy = new Set<Promise<void>>()
  #taken: DueList[] = []
  #nextAtMs = 0
  #stopped = false

  constructor(deps: ReceiptsDeps, listTimeoutMs = LIST_TIMEOUT_MS) {
    this.#deps = deps
    this.#listTimeoutMs = listTimeoutMs
  }

  async sweep(host: string): Promise<void> {
    if (this.#taken.length === 0 && performance.now() >= this.#nextAtMs) {
      this.#taken = await takeDueLists(this.#deps.sql, host, TAKEN_AT_ONCE)
      // If more nodes may be due, they are taken without a pause.
      this.#nextAtMs = this.#taken.length < TAKEN_AT_ONCE ? performance.now() + SWEEP_EVERY_MS : 0
    }
    this.#beginLists()
  }

  #beginLists(): void {
    while (!this.#stopped && this.#busy.size < NODES_AT_ONCE) {
      const list = this.#taken.shift()
      if (!list) return
      const work: Promise<void> = this.#list(list)
        .catch((error: unknown) => this.#deps.log.warn({ err: error, nodeId: list.nodeId }, 'cannot list receipts; will retry'))
        .finally(() => {
          this.#busy.delete(work)
          this.#beginLists()
        })
      this.#busy.add(work)
    }
  }

  async #list({ nodeId, fromMs, unfinished }: DueList): Promise<void> {
    const { sql, accessTo, noteChange } = this.#deps
    const access = await accessTo(nodeId)
    if (!access?.address) return
    const deadline = performance.now() + this.#listTimeoutMs
    let list: UnfinishedList = unfinished ?? { startedMs: Date.now(), newestMs: fromMs, place: { fromMs, offset: 0 } }
    for (;;) {
      if (this.#stopped || performance.now() > deadline) return
      const page = await listReceived(access.address, access.password(), list.place, ASK_TIMEOUT_MS)
      if (page.answer !== 'received') return
      if (page.payments.length > 0) {
        const accountId = await recordReceipts(sql, nodeId, page.payments)
        if (accountId !== undefined) noteChange(accountId, 'payments')
      }
      const newestMs = Math.max(list.newestMs, ...page.payments.map(({ completedAtMs }) => completedAtMs))
      list = { ...list, newestMs }
      if (page.isLastPage) break
      list = { ...list, place: placeAfter(list.place, page.payments) }
      // If this takes too long, the next turn continues from here.
      await keepList(sql, nodeId, list)
    }
    // A time in the future would hide payments that are received before it.
    const untilMs = Math.max(fromMs, Math.min(list.newestMs, list.startedMs) - OVERLAP_MS)
    await finishList(sql, nodeId, untilMs, unfinished === null)
  }

  async close(): Promise<void> {
    this.#stopped = true
    await Promise.allSettled(this.#busy)
  }
}
