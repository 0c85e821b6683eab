import type { Config } from '../config.ts'
import { openDataDir } from '../platform/data-dir.ts'
import { startEmbedded } from '../platform/embedded-postgres.ts'
import type { StoreAddress } from '../store/db.ts'

/** Runs the embedded PostgreSQL for as long as the work takes. Refused while a service uses DATA_DIR. */
export async function withEmbedded<T>(config: Config, work: (address: StoreAddress) => Promise<T>): Promise<T> {
  const dataDir = openDataDir(config.dataDir, 'exclusive')
  try {
    const embedded = await startEmbedded(config.dataDir, config.postgresUser, (line) => process.stderr.write(`${line}\n`))
    try {
      return await work(embedded.connection)
    } finally {
      await embedded.stop()
    }
  } finally {
    dataDir.release()
  }
}
