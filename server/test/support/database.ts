import { inject } from 'vitest'
import { createDatabase, type Store } from '../../../testing/postgres.ts'
import { type Database, openStore, type Sql } from '../../src/store/db.ts'
import { eventually, track } from './server.ts'

/** A database with all migrations, for tests that need no service. It is removed with the PostgreSQL that all tests share. */
export async function newDatabase(connections = 4): Promise<{ sql: Database; store: Store }> {
  const store = await createDatabase(inject('postgres'))
  return { sql: track(openStore(store, connections)), store }
}

/** Resolves once a statement waits for a lock on this table. Tests of other files use the same PostgreSQL, and wait for their own locks. */
export function lockWaitOn(sql: Sql, table: string): Promise<boolean> {
  return eventually(async () => {
    const waiting = await sql`
      SELECT 1 FROM pg_locks WHERE NOT granted AND relation = ${table}::regclass
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
    return waiting.length > 0
  }, `a statement to wait for ${table}`)
}

/**
 * A transaction whose locks last as long as the test needs them. By default, a transaction ends after ten idle seconds, and a
 * busy machine may need longer to start a process.
 */
export function lockingTransaction<T>(sql: Database, work: (transaction: Sql) => Promise<T>): Promise<T> {
  return sql.begin(async (transaction) => {
    await transaction`SET LOCAL idle_in_transaction_session_timeout = 0`
    return work(transaction)
  })
}
