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
import type { AskableNode } from './askable-node.ts'
import { BOOKS } from './books.ts'
import { Receipts } from './receipts.ts'
import { ReceivedLists } from './received-lists.ts'

const SWEEP_MS = 1_000
const ASK_TIMEOUT_MS = 10_000
const ASKS_AT_ONCE = 8
/** A node with more invoices due at once is asked for lists from then on. */
const MOST_DUE_UNLISTED = 8
/** For the check of open invoices before a node stops. Those that were not checked in time are checked when the node is running again. */
const LAST_ASKS_MS = 5_000
const LAST_ASK_TIMEOUT_MS = 2_000
const LAST_ASKS = 1_000
const HINT_TIMEOUT_MS = 2_000
/** Per node; further hints are left to the sweep. */
const MOST_HINTS = 32
/** If a node reports a hinted invoice as unpaid, further events about it are ignored for this long. */
const HINT_PAUSE_MS = 1_000

/**
 * unknown: the node has no such invoice, for example because its data was lost. refused: the node responded with something else. Neither
 * means that the invoice is unpaid.
 */
export type SettlementAnswer = 'settled' | 'unpaid' | 'unknown' | 'refused' | 'unreachable'

export type SettlementsDeps = {
  sql: Sql
  /** Undefined: no such node. */
  accessTo: (nodeId: string) => Promise<AskableNode | undefined>
  /** The host whose nodes are swept; undefined in a process with ROLE=api. */
  host: string | undefined
  noteChange: NoteChange
  log: Logger
}

/**
 * Finds out from nodes which invoices are settled. A node sends each event once, and only while we listen, so events are only hints that
 * speed things up. Only the node's answer to our own query counts, and the sweep, which asks about every open invoice, makes sure that
 * nothing is lost.
 */
export class Settlements {
  readonly #deps: SettlementsDeps
  readonly #busyNodes = new Map<string, Promise<void>>()
  readonly #asks = new Map<string, Promise<SettlementAnswer>>()
  /** By node: invoices that its events made us ask about, now or a moment ago. */
  readonly #hinted = new Map<string, Set<string>>()
  readonly #lists: ReceivedLists
  readonly #receipts: Receipts
  readonly #timer: NodeJS.Timeout | undefined
  #sweeping = false
  #stopped = false

  constructor(deps: SettlementsDeps) {
    this.#deps = deps
    this.#lists = new ReceivedLists({ ...deps, settle: (...payment) => this.#settle(...payment) })
    this.#receipts = new Receipts(deps)
    const { host } = deps
    if (host !== undefined) this.#timer = setInterval(() => void this.#sweep(host), SWEEP_MS)
  }

  /** Asks the node and records a settlement. */
  async ask({ nodeId, paymentHash }: OpenInvoice, node: AskableNode, timeoutMs: number): Promise<SettlementAnswer> {
    if (!node.address) return 'unreachable'
    const found = await findIncoming(node.address, node.password(), paymentHash.toString('hex'), timeoutMs)
    if (found.answer !== 'incoming') return found.answer
    if (!found.isPaid) return 'unpaid'
    await this.#settle(nodeId, paymentHash, found.completedAtMs)
    return 'settled'
  }

  /** Concurrent callers share the answer, so a burst of requests for one payment is one query to the node. */
  askTogether(invoice: OpenInvoice, node: AskableNode, timeoutMs: number): Promise<SettlementAnswer> {
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
   * Handles a node's event about one of its invoices. Anyone with the node's webhook secret can sign any number of events. So
   * there is one query per invoice at a time, and only a few per node.
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

  /** Makes the invoice due for the next sweep. */
  async #hurry(invoice: OpenInvoice): Promise<void> {
    for (const { invoices } of BOOKS) await hurryInvoice(this.#deps.sql, invoices, invoice)
  }

  /** The last chance to ask while the node is up. No error here may keep the node from stopping. */
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
      log.warn({ err: error, nodeId }, 'stopping a node before all its open invoices were checked')
    }
  }

  async #sweep(host: string): Promise<void> {
    if (this.#sweeping) return
    this.#sweeping = true
    const { sql, log } = this.#deps
    try {
      await this.#lists.sweep(host)
      await this.#receipts.sweep(host)
      const nodes = { busyNodes: [...this.#busyNodes.keys()], listedNodes: this.#lists.nodeIds }
      const due = (await Promise.all(BOOKS.map(({ invoices }) => takeDueInvoices(sql, invoices, host, nodes))))
        .flat()
        .filter(({ isListed }) => !isListed)
      for (const nodeId of new Set(due.map((invoice) => invoice.nodeId))) {
        const invoices = due.filter((invoice) => invoice.nodeId === nodeId)
        const early = invoices.filter(({ isLate }) => !isLate).map(({ createdAtMs }) => createdAtMs)
        if (early.length > MOST_DUE_UNLISTED) this.#lists.add(nodeId, Math.min(...early))
        const work: Promise<void> = this.#askAbout(nodeId, invoices)
          .catch((error: unknown) => log.warn({ err: error, nodeId }, 'cannot check open invoices; will retry'))
          .finally(() => this.#busyNodes.delete(nodeId))
        this.#busyNodes.set(nodeId, work)
      }
    } catch (error) {
      if (!isStoreDown(error)) log.warn({ err: error }, 'cannot query open invoices')
    }
    this.#sweeping = false
  }

  /**
   * Asks about a few at a time. If the node does not respond at all, the rest is skipped for now; an unexpected answer about one invoice
   * does not hold up the others.
   */
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
    await Promise.allSettled([...this.#busyNodes.values(), this.#lists.close(), this.#receipts.close()])
  }
}
