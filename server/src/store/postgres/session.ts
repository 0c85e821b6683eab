import type pg from 'pg'
import type { Connection } from './connection.ts'
import { measured } from './measured.ts'
import { type Sql, sqlOn } from './sql.ts'
import type { Query } from './statement.ts'

/** One connection for several statements. Concurrent statements run one after the other. */
export class Session {
  readonly sql: Sql
  readonly #connection: Connection
  #last: Promise<unknown> = Promise.resolve()
  #isStale = false

  constructor(connection: Connection) {
    this.#connection = connection
    this.sql = sqlOn({
      run: async (query) => (await this.query(query)).rows,
      // pg returns a list of results if the text contains several statements.
      runText: async (text) => (await this.query(text)).rows ?? [],
    })
  }

  /** The connection has a prepared statement whose tables have changed since. */
  get isStale(): boolean {
    return this.#isStale
  }

  query(query: Query | string): Promise<pg.QueryResult> {
    const result = this.#last
      .then(() => measured(typeof query === 'string' ? query : query.text, () => this.#connection.query(query)))
      .catch((error: unknown) => {
        this.#isStale ||= isStalePlan(error)
        throw this.#connection.explain(error)
      })
    this.#last = result.catch(() => undefined)
    return result
  }

  /** Resolves when every statement sent so far has completed. */
  async idle(): Promise<void> {
    await this.#last
  }
}

/** "cached plan must not change result type": another version of the service has altered a table under a prepared statement. */
export function isStalePlan(error: unknown): boolean {
  const { code, routine } = error as { code?: unknown; routine?: unknown }
  return code === '0A000' && routine === 'RevalidateCachedQuery'
}
