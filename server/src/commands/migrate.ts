import type { Config } from '../config.ts'
import { StartFault } from '../platform/start-fault.ts'
import { openStore } from '../store/db.ts'
import { migrate } from '../store/migrate.ts'
import { reachStore } from '../store/reach.ts'

/** For deployments that migrate once before they replace their processes one by one. */
export async function migrateDatabase({ store }: Config): Promise<void> {
  if (store.kind === 'embedded')
    throw new StartFault(78, 'DATABASE_URL: required for migrate; the embedded database is migrated at every start')
  const sql = openStore(store.url, 1)
  try {
    await reachStore(sql)
    await migrate(sql)
  } finally {
    await sql.end()
  }
}
