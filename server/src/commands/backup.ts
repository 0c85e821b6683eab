import { createWriteStream, existsSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { Config } from '../config.ts'
import { syncDirectory } from '../platform/data-dir.ts'
import { embeddedAddress } from '../platform/embedded-postgres.ts'
import { StartFault } from '../platform/start-fault.ts'
import { writeBackup } from '../store/backup/write.ts'
import type { StoreAddress } from '../store/db.ts'
import { withEmbedded } from './embedded-store.ts'
import { summaryOf } from './summary.ts'

/** The exit code of `openDataDir` while a service uses the directory. */
const IN_USE = 75

/** Copies the whole database into one file, whether or not the service is running. */
export async function backUp(config: Config, args: string[]): Promise<void> {
  const [file] = args
  if (file === undefined || args.length > 1) throw new StartFault(78, 'usage: backup FILE, or backup - for standard output')
  if (file === '-' && process.stdout.isTTY)
    throw new StartFault(78, 'backup -: standard output is a terminal; use a pipe or a file')
  if (file !== '-' && existsSync(file)) throw new StartFault(78, `${file} already exists, and a backup is never overwritten`)
  const rows = await withStore(config, (address) =>
    file === '-' ? writeBackup(address, process.stdout) : writeFile(address, file),
  )
  const where = file === '-' ? 'standard output' : `${file} (${Math.ceil(statSync(file).size / 1024)} kB)`
  const key = config.masterKey ? 'MASTER_KEY' : join(config.dataDir, 'master.key')
  process.stderr.write(
    [
      `Backup written to ${where}: ${summaryOf(rows)}.`,
      `THE BACKUP DOES NOT CONTAIN THE MASTER KEY. Without that key, nobody can read the recovery words in the backup. Keep a copy of ${key}, but not next to the backup.`,
      'The backup does not contain the data of the nodes themselves either (channels, payment history).\n',
    ].join('\n'),
  )
}

async function withStore<T>(config: Config, work: (address: StoreAddress) => Promise<T>): Promise<T> {
  if (config.store.kind === 'server') return work(config.store.url)
  if (!existsSync(join(config.dataDir, 'postgres', 'data')))
    throw new StartFault(78, `DATA_DIR: ${config.dataDir} has no database to back up`)
  try {
    return await withEmbedded(config, work)
  } catch (error) {
    if (!(error instanceof StartFault && error.exitCode === IN_USE)) throw error
    return work(await embeddedAddress(config.dataDir))
  }
}

/** The file is either complete or absent: an incomplete backup would only be noticed when it is needed. */
async function writeFile(address: StoreAddress, file: string): Promise<Record<string, number>> {
  const part = `${file}.new`
  rmSync(part, { force: true })
  try {
    const rows = await writeBackup(address, createWriteStream(part, { flags: 'wx', mode: 0o600, flush: true }))
    renameSync(part, file)
    syncDirectory(dirname(resolve(file)))
    return rows
  } catch (error) {
    rmSync(part, { force: true })
    throw error
  }
}
