import { findIncoming } from '../lightning/phoenixd/client.ts'
import type { Logger } from '../platform/log.ts'
import type { NodeAddress } from '../platform/node-agent.ts'
import { isStoreDown } from '../platform/store-down.ts'
import type { NoteChange } from '../store/changes.ts'
import type { Sql } from '../store/db.ts'
import {
  type AnsweredInvoice,
  type DueInvoice,
  hurryInvoice,
  isOpenInvoice,
  listOpenInvoices,
  type OpenInvoice,
  recordAnswers,
  takeDueInvoices,
} from '../store/payments/invoices.ts'
import { BOOKS } from './books.ts'

const SWEEP_MS = 1_000
const ASK_TIMEOUT_MS = 10_000
const ASKS_AT_ONCE = 8
/** Before a node stops: what is not asked by then is asked when it is back. */
const LAST_ASKS_MS = 5_000
const LAST_ASK_TIMEOUT_MS = 2_000
const LAST_ASKS = 1_000
const HINT_TIMEOUT_MS = 2_000
/** Of one node at a time; what comes on top is left to the sweep. */
const MOST_HINTS = 32
/** A node that says unpaid has signed something else, and is asked about that invoice by its events only once in so long. */
const HINT_PAUSE_MS = 1_000

/**
 * unknown: it answered, and has no such invoice, for example because its data was lost. refused: it answered with something else. Neither is
 * to say that nobody paid.
 */
export type NodesWord = 'settled' | 'unpaid' | 'unknown' | 'refused' | 'unreachable'

/** What it takes to ask a node. Without an address it cannot be reached from here at present. */
export type AskableNode = { address: NodeAddress | undefined; password: () => string }

export type SettlementsDeps = {
  sql: Sql
  /** Undefined: no such node. */
  accessTo: (nodeId: string) => Promise<AskableNode | undefined>
  /** Whose nodes to sweep; undefined in a process that only serves. */
  host: string | undefined
  noteChange: NoteChange
  log: Logger
}

/**
 * What nodes tell us about received payments. Their events come once, unrepeated, and only while we listen: they are hints, which make it
 * quick. Only what a node answers when asked counts, and that nothing is lost is the sweep's work, which asks about every open invoice.
 */
export class Settlements {
  readonly #deps: SettlementsDeps
  readonly #busyNodes = new Map<string, Promise<void>>()
  readonly #asks = new Map<string, Promise<NodesWord>>()
  /** By node: the invoices that its events have us ask about, or did a moment ago. */
  readonly #hinted = new Map<string, Set<string>>()
  readonly #timer: NodeJS.Timeout | undefined
  #sweeping = false
  #stopped = false

  constructor(deps: SettlementsDeps) {
    this.#deps = deps
    const { host } = deps
    if (host !== undefined) this.#timer = setInterval(() => void this.#sweep(host), SWEEP_MS)
  }

  /** Asks the node, and keeps what it says. */
  async ask({ nodeId, paymentHash }: OpenInvoice, node: AskableNode, timeoutMs: number): Promise<NodesWord> {
    if (!node.address) return 'unreachable'
    const found = await findIncoming(node.address, node.password(), paymentHash.toString('hex'), timeoutMs)
    if (found.answer !== 'incoming') return found.answer
    if (!found.isPaid) return 'unpaid'
    await this.#settle(nodeId, paymentHash, found.completedAtMs)
    return 'settled'
  }

  /** Who asks the same meanwhile shares the answer: a crowd of requests for one payment is one question to the node. */
  askTogether(invoice: OpenInvoice, node: AskableNode, timeoutMs: number): Promise<NodesWord> {
    const name = `${invoice.nodeId} ${invoice.paymentHash.toString('hex')}`
    const running = this.#asks.get(name)
    if (running) return running
    const asking = this.ask(invoice, node, timeoutMs).finally(() => this.#asks.delete(name))
    this.#asks.set(name, asking)
    return asking
  }

  async #settle(nodeId: string, paymentHash: Buffer, atMs: number | undefined): Promise<void> {
    for (const book of BOOKS) if (await book.settle(this.#deps, nodeId, paymentHash, atMs)) return
  }

  /**
   * A node's event about one of its invoices. Whoever has the node's secret can sign any number of them, about anything: one ask per
   * invoice at a time, and few per node.
   */
  async followHint(invoice: OpenInvoice, node: AskableNode): Promise<void> {
    const { nodeId, paymentHash } = invoice
    const hash = paymentHash.toString('hex')
    const hinted = this.#hinted.get(nodeId) ?? new Set()
    if (hinted.has(hash) || hinted.size >= MOST_HINTS) return this.#hurry(invoice)
    this.#hinted.set(nodeId, hinted.add(hash))
    const forget = (): void => {
      hinted.delete(hash)
      if (hinted.size === 0) this.#hinted.delete(nodeId)
    }
    let pauseMs = 0
    try {
      if (!(await this.#isOpen(invoice))) return
      const word = await this.ask(invoice, node, HINT_TIMEOUT_MS)
      if (word === 'unpaid') pauseMs = HINT_PAUSE_MS
      else if (word !== 'settled') await this.#hurry(invoice)
    } finally {
      if (pauseMs === 0) forget()
      else setTimeout(forget, pauseMs).unref()
    }
  }

  async #isOpen(invoice: OpenInvoice): Promise<boolean> {
    for (const { invoices } of BOOKS) if (await isOpenInvoice(this.#deps.sql, invoices, invoice)) return true
    return false
  }

  /** The next sweep asks. */
  async #hurry(invoice: OpenInvoice): Promise<void> {
    for (const { invoices } of BOOKS) await hurryInvoice(this.#deps.sql, invoices, invoice)
  }

  /** The last occasion for as long as the node is down. Whatever goes wrong here must not keep it from stopping. */
  async askBeforeStop(nodeId: string, address: NodeAddress): Promise<void> {
    const { sql, accessTo, log } = this.#deps
    try {
      const access = await accessTo(nodeId)
      const open = access
        ? (await Promise.all(BOOKS.map(({ invoices }) => listOpenInvoices(sql, invoices, nodeId, LAST_ASKS)))).flat()
        : []
      const deadline = performance.now() + LAST_ASKS_MS
      const askNext = async (): Promise<void> => {
        for (let invoice = open.shift(); invoice && access; invoice = open.shift()) {
          const leftMs = deadline - performance.now()
          if (leftMs <= 0) return
          const answer = await this.ask(invoice, { address, password: access.password }, Math.min(leftMs, LAST_ASK_TIMEOUT_MS))
          if (answer === 'unreachable') return
        }
      }
      await Promise.all(Array.from({ length: ASKS_AT_ONCE }, askNext))
    } catch (error) {
      log.warn({ err: error, nodeId }, 'a node stops before it was asked about its open invoices')
    }
  }

  async #sweep(host: string): Promise<void> {
    if (this.#sweeping) return
    this.#sweeping = true
    const { sql, log } = this.#deps
    try {
      const busy = [...this.#busyNodes.keys()]
      const due = (await Promise.all(BOOKS.map(({ invoices }) => takeDueInvoices(sql, invoices, host, busy)))).flat()
      for (const nodeId of new Set(due.map((invoice) => invoice.nodeId))) {
        const invoices = due.filter((invoice) => invoice.nodeId === nodeId)
        const work: Promise<void> = this.#askAbout(nodeId, invoices)
          .catch((error: unknown) => log.warn({ err: error, nodeId }, 'open invoices are asked about again'))
          .finally(() => this.#busyNodes.delete(nodeId))
        this.#busyNodes.set(nodeId, work)
      }
    } catch (error) {
      if (!isStoreDown(error)) log.warn({ err: error }, 'cannot look for open invoices')
    }
    this.#sweeping = false
  }

  /** A few at a time. One that does not answer at all is not asked about the rest now; what it answers oddly holds up nothing else. */
  async #askAbout(nodeId: string, invoices: DueInvoice[]): Promise<void> {
    const access = await this.#deps.accessTo(nodeId)
    const late: AnsweredInvoice[] = []
    const askNext = async (): Promise<void> => {
      for (let invoice = invoices.shift(); invoice; invoice = invoices.shift()) {
        const answer = access && !this.#stopped ? await this.ask(invoice, access, ASK_TIMEOUT_MS) : 'unreachable'
        if (answer === 'unreachable') invoices.length = 0
        else if (answer !== 'settled' && invoice.isLate)
          late.push({ paymentHash: invoice.paymentHash, isUnpaid: answer === 'unpaid' })
      }
    }
    await Promise.all(Array.from({ length: ASKS_AT_ONCE }, askNext))
    if (late.length > 0) for (const { invoices: book } of BOOKS) await recordAnswers(this.#deps.sql, book, nodeId, late)
  }

  async close(): Promise<void> {
    this.#stopped = true
    clearInterval(this.#timer)
    await Promise.allSettled(this.#busyNodes.values())
  }
}
