import { existsSync, lstatSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../config.ts'
import { embeddedAddress } from '../platform/embedded-postgres.ts'
import { StartFault } from '../platform/start-fault.ts'
import { isStoreDown } from '../platform/store-down.ts'
import { Problem } from '../problems.ts'
import { type Database, openStore } from '../store/db.ts'
import { isUpToDate } from '../store/migrate.ts'

/** One connection may hold a lock while the others work. */
const MAX_CONNECTIONS = 3

/** For commands that work beside the service, which starts and stops the nodes. */
export async function withRunningStore<T>(config: Config, work: (sql: Database) => Promise<T>): Promise<T> {
  const { dataDir, store } = config
  // On Kubernetes, nothing of the service is on this machine.
  if (!config.kubernetes) requireOwnDirectory(dataDir)
  const sql = openStore(store.kind === 'server' ? store.url : await embeddedAddress(dataDir), MAX_CONNECTIONS)
  try {
    if (!(await isUpToDate(sql)))
      throw new StartFault(78, 'the database schema does not match this version; start the service of this version first')
    return await work(sql)
  } catch (error) {
    throw faultOf(error)
  } finally {
    await sql.end()
  }
}

function requireOwnDirectory(dataDir: string): void {
  if (!existsSync(join(dataDir, 'host.id'))) throw new StartFault(78, `DATA_DIR: no service has run with ${dataDir}`)
  if (lstatSync(dataDir).uid !== process.getuid?.())
    throw new StartFault(78, `DATA_DIR: ${dataDir} belongs to another user; run this as the service's own user`)
}

/** The error as the operator sees it. */
export function faultOf(error: unknown): StartFault {
  if (error instanceof StartFault) return error
  if (error instanceof Problem) return new StartFault(78, error.message)
  if (isStoreDown(error)) return new StartFault(1, 'cannot reach the database; this command needs a running service')
  return new StartFault(1, `fatal: ${error instanceof Error ? error.message : String(error)}`)
}
