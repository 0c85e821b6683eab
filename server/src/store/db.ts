import type { StoreAddress } from './postgres/connection.ts'
import { Listener, type Subscriber } from './postgres/listener.ts'
import { Pool, type PoolUse, SILENT_TRANSACTION_TIMEOUT_MS } from './postgres/pool.ts'
import { type Sql, sqlOn } from './postgres/sql.ts'

export type { StoreAddress } from './postgres/connection.ts'
export type { Sql } from './postgres/sql.ts'
export type { Fragment } from './postgres/statement.ts'

export interface Database extends Sql {
  /** Commits all of the work or nothing. The work must use the `Sql` it is given. */
  begin<T>(work: (sql: Sql) => Promise<T>): Promise<T>
  /** With a transaction mode other than the default, such as `ISOLATION LEVEL REPEATABLE READ`. */
  beginAs<T>(mode: string, work: (sql: Sql) => Promise<T>): Promise<T>
  /** Keeps one connection for all of the work, without a transaction. */
  session<T>(work: (sql: Sql) => Promise<T>): Promise<T>
  /** Notifies the subscriber of every NOTIFY on the channel. Returns a function that unsubscribes. */
  listen(channel: string, subscriber: Subscriber): () => void
  /** How many of the connections are in use right now. */
  poolUse(): PoolUse
  /** Lets running statements finish within this time, then closes the connections. */
  end(limit?: { timeoutMs: number }): Promise<void>
}

/** Twice as many connections slow each other down: on two cores, fewer first validations finish per second, and the slowest take longer. */
const MAX_CONNECTIONS = 10
const END_TIMEOUT_MS = 5_000

export function openStore(
  address: StoreAddress,
  maxConnections = MAX_CONNECTIONS,
  silentTransactionMs = SILENT_TRANSACTION_TIMEOUT_MS,
): Database {
  const pool = new Pool(address, maxConnections, silentTransactionMs)
  const listener = new Listener(address)
  return Object.assign(sqlOn({ run: (query) => pool.run(query), runText: (text) => pool.runText(text) }), {
    begin: <T>(work: (sql: Sql) => Promise<T>): Promise<T> => pool.transaction('', work),
    beginAs: <T>(mode: string, work: (sql: Sql) => Promise<T>): Promise<T> => pool.transaction(mode, work),
    session: <T>(work: (sql: Sql) => Promise<T>): Promise<T> => pool.session(work),
    listen: (channel: string, subscriber: Subscriber): (() => void) => listener.listen(channel, subscriber),
    poolUse: () => pool.use(),
    end: async ({ timeoutMs } = { timeoutMs: END_TIMEOUT_MS }): Promise<void> => {
      await Promise.all([listener.close(), pool.end(timeoutMs)])
    },
  })
}
