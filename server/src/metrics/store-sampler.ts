import { setTimeout as pause } from 'node:timers/promises'
import type { Database } from '../store/db.ts'
import { countWaiting } from '../store/events/deliveries.ts'
import { outboxLagSeconds } from '../store/events/outbox.ts'
import { countNodesByPhase, type LedgerTotal, ledgerTotals, reconcileLagSeconds } from '../store/stats.ts'
import type { Instruments } from './instruments.ts'

/** Prometheus gives up on a scrape after 10 s by default, and then has no metrics at all. */
const STORE_TIMEOUT_MS = 2_000
/** Computing the totals reads the whole ledger. */
const LEDGER_EVERY_MS = 60_000

type Sampled = Omit<
  Instruments,
  'requests' | 'droppedRequests' | 'nodeCalls' | 'steps' | 'redisUp' | 'watchStaleness' | 'orphanedNodes'
>
type Sample = {
  nodes: Awaited<ReturnType<typeof countNodesByPhase>>
  lagSeconds: number
  eventLagSeconds: number
  deliveries: Awaited<ReturnType<typeof countWaiting>>
  ledger: LedgerTotal[]
}

/**
 * Sets the gauges whose values are read at each scrape, not counted. While the store is down, those read from it are missing: old values
 * would look current.
 */
export class StoreSampler {
  readonly #sql: Database
  readonly #gauges: Sampled
  #reading: Promise<Sample> | undefined
  #ledger: { totals: LedgerTotal[]; readAtMs: number } | undefined

  constructor(sql: Database, gauges: Sampled) {
    this.#sql = sql
    this.#gauges = gauges
  }

  async sample(): Promise<void> {
    const { storeUp, connections, waiting, maxConnections, nodes, reconcileLag, eventLag, deliveries, deliveryAge, ledger } =
      this.#gauges
    const pool = this.#sql.poolUse()
    connections.set({ state: 'busy' }, pool.busy)
    connections.set({ state: 'idle' }, pool.idle)
    waiting.set(pool.waiting)
    maxConnections.set(pool.max)

    const sample = await this.#inTime()
    for (const gauge of [nodes, reconcileLag, eventLag, deliveries, deliveryAge, ledger]) gauge.reset()
    storeUp.set(sample ? 1 : 0)
    if (!sample) {
      for (const gauge of [reconcileLag, eventLag, deliveries, deliveryAge]) gauge.remove()
      return
    }
    for (const { status, phase, count } of sample.nodes) nodes.set({ status, phase }, count)
    reconcileLag.set(sample.lagSeconds)
    eventLag.set(sample.eventLagSeconds)
    deliveries.set(sample.deliveries.count)
    deliveryAge.set(sample.deliveries.oldestSeconds)
    for (const { kind, sat } of sample.ledger) ledger.set({ kind }, sat)
  }

  async #inTime(): Promise<Sample | undefined> {
    // A scrape shares the query of an earlier one that is still running: if the store hangs, scrapes must not take up its connections one
    // by one.
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined
    })
    const timer = new AbortController()
    try {
      return await Promise.race([this.#reading, pause(STORE_TIMEOUT_MS, undefined, { signal: timer.signal })])
    } catch {
      return undefined
    } finally {
      timer.abort()
    }
  }

  async #read(): Promise<Sample> {
    const [nodes, lagSeconds, eventLagSeconds, deliveries] = await Promise.all([
      countNodesByPhase(this.#sql),
      reconcileLagSeconds(this.#sql),
      outboxLagSeconds(this.#sql),
      countWaiting(this.#sql),
    ])
    if (!this.#ledger || performance.now() - this.#ledger.readAtMs > LEDGER_EVERY_MS)
      this.#ledger = { totals: await ledgerTotals(this.#sql), readAtMs: performance.now() }
    return { nodes, lagSeconds, eventLagSeconds, deliveries, ledger: this.#ledger.totals }
  }
}
