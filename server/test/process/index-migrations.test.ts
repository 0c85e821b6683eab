import { createReadStream, createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { restoreBackup } from '../../src/store/backup/restore.ts'
import { writeBackup } from '../../src/store/backup/write.ts'
import { type Database, openStore } from '../../src/store/db.ts'
import { migrate, readMigrations } from '../../src/store/migrate.ts'
import { emptyDatabase } from '../support/commands.ts'
import { eventually, type Store, temporaryDirectory, track } from '../support/server.ts'

/** Migrations that build indexes run without a transaction, while an earlier version serves; they may be interrupted at any statement. */

const all = readMigrations()
const stepwise = all.filter(({ sql }) => sql.startsWith('-- without a transaction'))

const indexOf = async (sql: Database, name: string): Promise<{ oid: number; isValid: boolean } | undefined> =>
  (
    await sql<{ oid: number; isValid: boolean }[]>`
      SELECT indexrelid::int AS oid, indisvalid AS "isValid" FROM pg_index WHERE indexrelid = to_regclass(${name})`
  )[0]

/** A database of an earlier version in which nothing has been built yet. */
async function earlier(): Promise<{ address: Store; sql: Database }> {
  const address = await emptyDatabase()
  const sql = track(openStore(address))
  await migrate(
    sql,
    all.filter(({ version }) => version < (stepwise[0]?.version ?? 0)),
  )
  return { address, sql }
}

/** Runs the migrations until one waits for `table`, which another transaction is using. Then does the work and ends that run. */
async function whileBuilding({ address, sql }: { address: Store; sql: Database }, table: string, work: () => Promise<void>) {
  const migrating = openStore(address)
  await sql.begin(async (using) => {
    await using.unsafe(`LOCK TABLE ${table} IN ROW EXCLUSIVE MODE`)
    const migrated = migrate(migrating).catch(() => undefined)
    const pid = await eventually(async () => {
      const [row] = await sql<{ pid: number }[]>`
        SELECT pid FROM pg_stat_activity
        WHERE datname = ${address.database} AND wait_event_type = 'Lock' AND query LIKE ${`%CREATE INDEX % ON ${table} %`}`
      return row?.pid
    }, `the index on ${table} to wait`)
    await work()
    await sql`SELECT pg_terminate_backend(${pid})`
    await migrated
  })
  await migrating.end()
}

test('reliability 22: a backup made while a migration builds its indexes can be restored', async () => {
  const { address, sql } = await earlier()
  await sql`INSERT INTO accounts (id, name) VALUES ('acct_1', 'Ann')`
  const file = join(temporaryDirectory(), 'boltyard.backup')
  await whileBuilding({ address, sql }, 'event_log', async () => {
    await writeBackup(address, createWriteStream(file))
  })
  const restored = await restoreBackup(await emptyDatabase(), createReadStream(file), async () => undefined)
  expect(restored.rows.accounts).toBe(1)
})

test('a migration that was interrupted keeps the indexes that it has built, and builds an unfinished one again', async () => {
  const database = await earlier()
  const { sql } = database
  await whileBuilding(database, 'gateway_payments', async () => {
    expect(await indexOf(sql, 'gateway_payments_listed')).toMatchObject({ isValid: false })
    expect(await indexOf(sql, 'gateway_payments_of_account')).toMatchObject({ isValid: true })
  })
  const built: (number | undefined)[] = []
  await whileBuilding(database, 'event_log', async () => {
    built.push((await indexOf(sql, 'gateway_payments_listed'))?.oid)
  })
  expect(await indexOf(sql, 'event_log_of_payment')).toMatchObject({ isValid: false })
  await migrate(sql)
  expect(await indexOf(sql, 'gateway_payments_listed')).toEqual({ oid: built[0], isValid: true })
  expect(await indexOf(sql, 'event_log_of_payment')).toMatchObject({ isValid: true })
  expect(await indexOf(sql, 'gateway_payments_of_account')).toBeUndefined()
})

test('a migration without a transaction that changes more than indexes is refused', async () => {
  const sql = track(openStore(await emptyDatabase()))
  const bad = {
    version: 1,
    name: '001-bad.sql',
    sql: '-- without a transaction\nCREATE TABLE one (a int);\nCREATE INDEX CONCURRENTLY IF NOT EXISTS one_a ON one (a);',
  }
  await expect(migrate(sql, [bad])).rejects.toThrow('001-bad.sql runs without a transaction')
  expect(await sql`SELECT to_regclass('one')::text AS one`).toEqual([{ one: null }])
})
