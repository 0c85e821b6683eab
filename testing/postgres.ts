import { execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDataDir } from '../server/src/platform/data-dir.ts'
import { startEmbedded } from '../server/src/platform/embedded-postgres.ts'
import { lookUpUser } from '../server/src/platform/linux.ts'
import { type Database, openStore } from '../server/src/store/db.ts'
import { migrate } from '../server/src/store/migrate.ts'
import { eventually } from './eventually.ts'

/** The location of a database, as the service gets it in its environment. */
export type Store = { host: string; port: number; user: string; password: string; database: string }

/** What all tests of a run share. Plain data, because it is passed to the processes that run the test files. */
export type TestPostgres = {
  /** The location of a template database with all migrations applied. */
  store: Store
  /** A data directory with an embedded PostgreSQL that was set up, migrated and stopped. Never started in place, only copied. */
  preparedDataDir: string
}

/**
 * One PostgreSQL for a whole run. Setting one up costs more than most tests: it copies the binaries, creates the cluster and runs every
 * migration. The shared one does not sync to disk, so tests of power failures or of a killed PostgreSQL use an embedded one.
 */
export async function startTestPostgres(): Promise<{ postgres: TestPostgres; stop: () => Promise<void> }> {
  const directory = mkdtempSync(join(tmpdir(), 'boltyard-postgres-'))
  // If the tests run as root, PostgreSQL runs as another user, who must be able to reach the directories below.
  chmodSync(directory, 0o711)
  const user = process.getuid?.() === 0 ? lookUpUser('postgres', 'nobody') : undefined

  const preparedDataDir = join(directory, 'prepared')
  openDataDir(preparedDataDir, 'shared')
  const embedded = await startEmbedded(preparedDataDir, user, (line) => process.stderr.write(`${line}\n`))
  const sql = await connect(embedded.connection)
  await migrate(sql)
  await sql.end()
  await embedded.stop()

  const place = join(directory, 'shared')
  mkdirSync(place, { mode: 0o700 })
  if (user) chownSync(place, user.uid, user.gid)
  execFileSync('cp', ['-a', join(preparedDataDir, 'postgres', 'data'), join(place, 'data')])
  // `trust` is safe: only PostgreSQL's own user and root can reach the socket. Checking a password doubles the CPU time of a connection.
  writeFileSync(join(place, 'data', 'pg_hba.conf'), 'local all all trust\n')
  const software = join(preparedDataDir, 'software')
  const program = join(software, readdirSync(software)[0] ?? '', 'bin', 'postgres')
  const settings = [
    'listen_addresses=',
    'max_connections=500',
    'timezone=UTC',
    'fsync=off',
    'full_page_writes=off',
    // Autovacuum would visit a hundred databases in turn, although none exists long enough to need it.
    'autovacuum=off',
  ].flatMap((setting) => ['-c', setting])
  const child = spawn(program, ['-D', join(place, 'data'), '-k', place, '-p', '5432', ...settings], {
    ...user,
    cwd: place,
    env: { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC', HOME: place },
    stdio: 'ignore',
  })
  const ended = once(child, 'close')
  await eventually(
    () =>
      readFileSync(join(place, 'data', 'postmaster.pid'), 'utf8')
        .trimEnd()
        .endsWith('ready'),
    'PostgreSQL to start',
  )
  return {
    postgres: { store: { ...embedded.connection, host: place }, preparedDataDir },
    stop: async () => {
      // Immediate shutdown: nothing needs to be saved.
      child.kill('SIGQUIT')
      await ended
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** Retries, because `openStore` gives up after a few seconds, so a stall of the machine would end the whole run. */
async function connect(address: Store): Promise<Database> {
  const sql = openStore(address, 1)
  await eventually(() => sql`SELECT 1`, 'a connection to PostgreSQL')
  return sql
}

/** Creates a database with all migrations applied, in a few milliseconds. */
export async function createDatabase({ store }: TestPostgres): Promise<Store> {
  const database = `test_${randomBytes(8).toString('hex')}`
  // A template must have no connections while it is copied, so connect to another database.
  const sql = await connect({ ...store, database: 'template1' })
  // By default, every page would also be written to the log, which takes twice the CPU time.
  await sql.unsafe(`CREATE DATABASE ${database} TEMPLATE ${store.database} STRATEGY file_copy`)
  await sql.end()
  return { ...store, database }
}

export async function dropDatabase({ store }: TestPostgres, { database }: Store): Promise<void> {
  const sql = await connect({ ...store, database: 'template1' })
  await sql.unsafe(`DROP DATABASE ${database} WITH (FORCE)`)
  await sql.end()
}

/** A data directory whose embedded PostgreSQL only needs to be started. The binaries are hard links, because nothing writes to them. */
export function copyPreparedDataDir({ preparedDataDir }: TestPostgres, dataDir: string): void {
  mkdirSync(dataDir, { recursive: true })
  execFileSync('cp', ['-al', join(preparedDataDir, 'software'), join(dataDir, 'software')])
  for (const name of ['postgres', 'postgres.password'])
    execFileSync('cp', ['-a', join(preparedDataDir, name), join(dataDir, name)])
}
