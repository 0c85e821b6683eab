import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { Connection, explainConnect, type StoreAddress } from './connection.ts'
import { measured } from './measured.ts'
import { isStalePlan, Session } from './session.ts'
import type { Sql } from './sql.ts'
import type { Query, Rows } from './statement.ts'
import { StoreUnavailable } from './store-unavailable.ts'

const IDLE_TIMEOUT_MS = 60_000
/**
 * PostgreSQL ends a transaction whose process sends nothing for this long. A process that was paused, or whose machine was, would otherwise
 * keep its locks, and other processes would wait for them.
 */
export const SILENT_TRANSACTION_TIMEOUT_MS = 10_000

type Pooled = Connection & pg.PoolClient

export type PoolUse = { busy: number; idle: number; max: number; waiting: number }

/**
 * Callers never share a connection. On a shared one, a statement could queue behind one that waits for a lock, and so wait for the
 * lock too, even if its own request holds the lock: a deadlock.
 */
export class Pool {
  readonly #pool: pg.Pool
  readonly #inUse = new Set<Pooled>()
  readonly #silentTransactionMs: number

  constructor(address: StoreAddress, maxConnections: number, silentTransactionMs: number) {
    this.#silentTransactionMs = silentTransactionMs
    this.#pool = new pg.Pool({
      Client: class extends Connection {
        constructor() {
          super(address)
        }
      },
      max: maxConnections,
      idleTimeoutMillis: IDLE_TIMEOUT_MS,
    })
    // Without a listener, losing an idle connection would end the process. The pool has dropped the connection, and the next
    // statement opens another.
    this.#pool.on('error', () => undefined)
  }

  run(query: Query): Promise<Rows> {
    return measured(query.text, () => this.#run(query))
  }

  async #run(query: Query): Promise<Rows> {
    for (;;) {
      const connection = await this.#take()
      let isStale = false
      try {
        return (await connection.query(query)).rows
      } catch (error) {
        isStale = isStalePlan(error)
        if (!isStale) throw connection.explain(error)
      } finally {
        this.#release(connection, isStale)
      }
    }
  }

  async runText(text: string): Promise<Rows> {
    return this.#session(({ sql }) => sql.unsafe(text))
  }

  session<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
    return this.#session(({ sql }) => work(sql))
  }

  transaction<T>(mode: string, work: (sql: Sql) => Promise<T>): Promise<T> {
    return this.#session(async (session) => {
      // Not a setting of the connection, because a pooler such as PgBouncer would share the connection with others.
      await session.query(`BEGIN ${mode}; SET LOCAL idle_in_transaction_session_timeout = ${this.#silentTransactionMs}`)
      try {
        const result = await work(session.sql)
        // If a statement failed, PostgreSQL answers COMMIT with ROLLBACK instead of an error.
        const { command } = await session.query('COMMIT')
        if (command !== 'COMMIT') throw new Error('the transaction was rolled back: one of its statements had failed')
        return result
      } catch (error) {
        // Fails only if the connection is lost, and the transaction with it. The first error is the one to report.
        await session.query('ROLLBACK').catch(() => undefined)
        throw error
      }
    })
  }

  use(): PoolUse {
    const { totalCount, idleCount, waitingCount, options } = this.#pool
    return { busy: totalCount - idleCount, idle: idleCount, max: options.max, waiting: waitingCount }
  }

  async end(timeoutMs: number): Promise<void> {
    if (this.#pool.ending) return
    const ended = this.#pool.end()
    await Promise.race([ended, pause(timeoutMs, undefined, { ref: false })])
    await Promise.all([...this.#inUse].map((connection) => connection.end()))
    await ended
  }

  async #session<T>(work: (session: Session) => Promise<T>): Promise<T> {
    const connection = await this.#take()
    const session = new Session(connection)
    try {
      return await work(session)
    } finally {
      await session.idle()
      this.#release(connection, session.isStale)
    }
  }

  async #take(): Promise<Pooled> {
    if (this.#pool.ending) throw new StoreUnavailable(new Error('the service is stopping'))
    try {
      const connection = (await this.#pool.connect()) as Pooled
      this.#inUse.add(connection)
      return connection
    } catch (error) {
      throw explainConnect(error)
    }
  }

  #release(connection: Pooled, isStale: boolean): void {
    this.#inUse.delete(connection)
    connection.release(connection.isLost || isStale)
  }
}
