import { setTimeout as pause } from 'node:timers/promises'
import { StartFault } from '../platform/start-fault.ts'
import { isStoreDown } from '../platform/store-down.ts'
import type { Sql } from './db.ts'

const PATIENCE_MS = 30_000
const RETRY_MS = 250

/** Throws while the store is unreachable. */
export async function checkStore(sql: Sql): Promise<void> {
  await sql`SELECT 1`
}

/** Retries for a while: a database that starts at the same time as the service may take longer. */
export async function reachStore(sql: Sql): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS
  for (;;) {
    try {
      return await checkStore(sql)
    } catch (error) {
      const { code } = error as { code?: string }
      if (!isStoreDown(error))
        throw new StartFault(
          78,
          `DATABASE_URL: the server refused the connection (${code ?? 'unknown reason'}); check the user, the password and the name of the database`,
        )
      if (Date.now() > deadline) throw new StartFault(1, `cannot reach PostgreSQL (${code}); check that it is running`)
      await pause(RETRY_MS)
    }
  }
}
