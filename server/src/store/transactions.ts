import { AsyncLocalStorage } from 'node:async_hooks'
import type { Database, Sql } from './db.ts'

type Current = { session: Promise<Sql> | undefined; outcome: Promise<unknown> | undefined; end: (error?: unknown) => void }

/**
 * Whatever is called within `run`, through whatever library, is one transaction. It is opened by the first write: who hashes a password
 * before it (a tenth of a second) would otherwise keep a connection from everybody else meanwhile.
 */
export class Transactions {
  readonly #sql: Database
  readonly #current = new AsyncLocalStorage<Current>()

  constructor(sql: Database) {
    this.#sql = sql
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#current.getStore()) return work()
    const current: Current = { session: undefined, outcome: undefined, end: () => undefined }
    return this.#current.run(current, async () => {
      try {
        const result = await work()
        current.end()
        await current.outcome
        return result
      } catch (error) {
        current.end(error ?? new Error('rolled back'))
        await current.outcome?.catch(() => undefined)
        throw error
      }
    })
  }

  /** The transaction, when one is open: what was written in it must be seen. */
  reader(): Promise<Sql> {
    return this.#current.getStore()?.session ?? Promise.resolve(this.#sql)
  }

  writer(): Promise<Sql> {
    const current = this.#current.getStore()
    if (!current) return Promise.resolve(this.#sql)
    current.session ??= this.#begin(current)
    return current.session
  }

  #begin(current: Current): Promise<Sql> {
    return new Promise((resolve, reject) => {
      const ended = new Promise<void>((commit, rollBack) => {
        current.end = (error) => (error === undefined ? commit() : rollBack(error))
      })
      // It is looked at when the work is done; until then nobody else would.
      ended.catch(() => undefined)
      current.outcome = this.#sql.begin(async (transaction) => {
        resolve(transaction)
        await ended
      })
      current.outcome.catch(reject)
    })
  }
}
