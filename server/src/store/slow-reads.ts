import { Problem } from '../problems.ts'
import type { Database, Sql } from './db.ts'

const TIMEOUT_MS = 5_000
const MAX_RUNNING = 3
const MAX_WAITING_OF_ACCOUNT = 10
const QUERY_CANCELED = '57014'
/** Shown by `pg_stat_activity`, where an operator looks when the database is busy. */
export const SLOW_READ_NAME = 'boltyard slow read'
const SHORTER_PERIOD = 'Narrow it down, for example to a shorter period.'

/** `advice`: what to do if it takes too long. `isSnapshot`: whether all statements must see the same moment. */
export type SlowReadOptions = { advice?: string; isSnapshot?: boolean }
export type SlowReadLimits = { timeoutMs: number; maxRunning: number; maxWaitingOfAccount: number }

/**
 * Reads whose cost depends on what an account stores and asks for, such as a search. They get few of the connections, so that they do not
 * delay the payments of other accounts: one at a time for each account, a few in all, and none for long. Accounts take turns.
 */
export class SlowReads {
  readonly #database: Database
  readonly #limits: SlowReadLimits
  readonly #running = new Set<string>()
  /** By account. The account whose turn is next comes first. */
  readonly #waiting = new Map<string, (() => void)[]>()

  constructor(database: Database, limits: Partial<SlowReadLimits> = {}) {
    this.#database = database
    this.#limits = {
      timeoutMs: TIMEOUT_MS,
      maxRunning: MAX_RUNNING,
      maxWaitingOfAccount: MAX_WAITING_OF_ACCOUNT,
      ...limits,
    }
  }

  async run<T>(accountId: string, work: (sql: Sql) => Promise<T>, options: SlowReadOptions = {}): Promise<T> {
    const { advice = SHORTER_PERIOD, isSnapshot = false } = options
    await this.#enter(accountId)
    try {
      return await this.#database.beginAs(isSnapshot ? 'ISOLATION LEVEL REPEATABLE READ READ ONLY' : 'READ ONLY', async (sql) => {
        await sql.unsafe(
          `SET LOCAL statement_timeout = ${this.#limits.timeoutMs}; SET LOCAL application_name = '${SLOW_READ_NAME}'`,
        )
        return work(sql)
      })
    } catch (error) {
      throw (error as { code?: unknown }).code === QUERY_CANCELED ? tookTooLong(advice) : error
    } finally {
      this.#running.delete(accountId)
      this.#letNextIn()
    }
  }

  async #enter(accountId: string): Promise<void> {
    const queue = this.#waiting.get(accountId) ?? []
    if (queue.length >= this.#limits.maxWaitingOfAccount) throw tooMany()
    await new Promise<void>((resolve) => {
      queue.push(resolve)
      this.#waiting.set(accountId, queue)
      this.#letNextIn()
    })
  }

  #letNextIn(): void {
    if (this.#running.size >= this.#limits.maxRunning) return
    for (const [accountId, queue] of this.#waiting) {
      if (this.#running.has(accountId)) continue
      const enter = queue.shift()
      // Moves this account to the end, so that other accounts have their turn.
      this.#waiting.delete(accountId)
      if (queue.length > 0) this.#waiting.set(accountId, queue)
      this.#running.add(accountId)
      enter?.()
      return
    }
  }
}

const tookTooLong = (advice: string): Problem =>
  new Problem('service_unavailable', `The query took too long. ${advice}`, { headers: { 'retry-after': '5' } })

const tooMany = (): Problem =>
  new Problem('service_unavailable', 'Too many requests from this account are waiting. Try again in a few seconds.', {
    headers: { 'retry-after': '5' },
  })
