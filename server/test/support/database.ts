import { inject } from 'vitest'
import { createDatabase, type Store } from '../../../testing/postgres.ts'
import { type Database, openStore } from '../../src/store/db.ts'
import { track } from './server.ts'

/** A database with all migrations, for tests that need no service. It is removed with the PostgreSQL that all tests share. */
export async function newDatabase(connections = 4): Promise<{ sql: Database; store: Store }> {
  const store = await createDatabase(inject('postgres'))
  return { sql: track(openStore(store, connections)), store }
}
