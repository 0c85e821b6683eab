import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { StartFault } from '../platform/start-fault.ts'
import { isStoreDown } from '../platform/store-down.ts'
import type { Database, Sql } from './db.ts'
import { changeIndex, indexSteps } from './index-steps.ts'

const DIRECTORY = fileURLToPath(new URL('./migrations/', import.meta.url))
/** An arbitrary number that must be the same in every version of the service. */
const LOCK = 8_402_001
const OLDEST_POSTGRES = 150_000
/**
 * An earlier version may still be using these tables. This is half of PostgreSQL's deadlock timeout: if the migration and a
 * request wait for each other, the migration gives up and the request does not fail.
 */
const LOCK_TIMEOUT_MS = 500
/**
 * Every tenth attempt waits longer than the deadlock timeout (1 s unless it was changed): only a wait of that length makes PostgreSQL
 * cancel an autovacuum that holds the table, which may otherwise go on for hours.
 */
const LONG_LOCK_TIMEOUT_MS = 1_500
const LONG_EVERY = 10
const LOCK_PATIENCE_MS = 60_000
const LOCK_PAUSE_MS = 250
const NO_LOCK = ['40P01', '55P03']
/** The first line of a migration that only changes indexes, CONCURRENTLY: PostgreSQL does not do that inside a transaction. */
const WITHOUT_TRANSACTION = '-- without a transaction'

export type Migration = { version: number; name: string; sql: string }

export function readMigrations(): Migration[] {
  return readdirSync(DIRECTORY)
    .filter((name) => name.endsWith('.sql'))
    .sort()
    .map((name) => ({ version: Number(name.split('-')[0]), name, sql: readFileSync(DIRECTORY + name, 'utf8') }))
}

/**
 * Runs the migrations that have not run, in order, each in its own transaction, under a lock: if two instances start at once, one waits and
 * finds nothing left to do.
 */
export async function migrate(database: Database, migrations = readMigrations()): Promise<void> {
  await database.session(async (sql) => {
    const [server] = await sql<{ version: string }[]>`SELECT current_setting('server_version_num') AS version`
    if (Number(server?.version) < OLDEST_POSTGRES) throw new StartFault(78, 'DATABASE_URL: PostgreSQL 15 or newer is required')
    await takeLock(sql)
    try {
      await applyAll(sql, migrations)
    } finally {
      // A failed migration leaves its transaction open and our lock held, and the next instance would wait for it. After a lost connection,
      // both are already gone.
      await sql.unsafe('ROLLBACK; RESET lock_timeout; SELECT pg_advisory_unlock_all()').catch((error: unknown) => {
        if (!isStoreDown(error)) throw error
      })
    }
  })
}

/** Polls: a statement that waits holds a snapshot, and an instance that builds an index concurrently waits for all older snapshots. */
async function takeLock(sql: Sql): Promise<void> {
  for (;;) {
    const [row] = await sql<{ isMine: boolean }[]>`SELECT pg_try_advisory_lock(${LOCK}) AS "isMine"`
    if (row?.isMine) return
    await pause(LOCK_PAUSE_MS)
  }
}

async function applyAll(sql: Sql, migrations: Migration[]): Promise<void> {
  await sql`CREATE TABLE IF NOT EXISTS schema_migrations (version int PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())`
  const applied = await appliedVersions(sql)
  const unknown = [...applied].filter((version) => migrations.every((known) => known.version !== version))
  if (unknown.length > 0) {
    const newest = migrations.at(-1)?.version ?? 0
    throw new StartFault(
      78,
      `DATABASE_URL: the database was used by a newer version (schema ${Math.max(...unknown)}; this version supports ${newest}); run that version`,
    )
  }
  // Not only those above the newest one: branches are merged in any order, so a lower number may come later.
  for (const migration of migrations.filter(({ version }) => !applied.has(version))) await apply(sql, migration)
}

async function appliedVersions(sql: Sql): Promise<Set<number>> {
  const rows = await sql<{ version: number }[]>`SELECT version FROM schema_migrations`
  return new Set(rows.map(({ version }) => version))
}

async function apply(sql: Sql, { version, name, sql: statements }: Migration): Promise<void> {
  const isStepwise = statements.startsWith(WITHOUT_TRANSACTION)
  for (const step of isStepwise ? indexSteps(name, statements) : []) await patiently(sql, name, () => changeIndex(sql, step))
  const record = `INSERT INTO schema_migrations (version, name) VALUES (${version}, '${name}')`
  await patiently(sql, name, (attempt) =>
    sql.unsafe(`BEGIN; SET LOCAL lock_timeout = ${lockTimeoutMs(attempt)}; ${isStepwise ? '' : statements}; ${record}; COMMIT`),
  )
}

const lockTimeoutMs = (attempt: number): number => (attempt % LONG_EVERY === 0 ? LONG_LOCK_TIMEOUT_MS : LOCK_TIMEOUT_MS)

/** Retried while the tables are in use: each attempt blocks other users of the tables only briefly. */
async function patiently(sql: Sql, name: string, work: (attempt: number) => Promise<unknown>): Promise<void> {
  let deadline: number | undefined
  for (let attempt = 1; ; attempt++) {
    try {
      await work(attempt)
      return
    } catch (error) {
      if (!NO_LOCK.includes((error as { code?: string }).code ?? '')) throw error
      await sql.unsafe('ROLLBACK')
      // Building an index may take minutes before it fails for the first time.
      deadline ??= Date.now() + LOCK_PATIENCE_MS
      if (Date.now() > deadline)
        throw new StartFault(
          1,
          `DATABASE_URL: migration ${name} cannot lock its tables; end long transactions that use them, and start again`,
        )
      await pause(LOCK_PAUSE_MS)
    }
  }
}

/** Whether exactly the migrations of this version have run. */
export async function isUpToDate(sql: Sql): Promise<boolean> {
  const applied = await appliedVersions(sql)
  const migrations = readMigrations()
  return applied.size === migrations.length && migrations.every(({ version }) => applied.has(version))
}
