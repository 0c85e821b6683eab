import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { escapeIdentifier } from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { StartFault } from '../../platform/start-fault.ts'
import { openStore, type Sql, type StoreAddress } from '../db.ts'
import { migrate, readMigrations } from '../migrate.ts'
import { Connection } from '../postgres/connection.ts'
import { Session } from '../postgres/session.ts'
import type { Head, Table, Totals } from './format.ts'
import { BackupReader, damaged } from './reader.ts'
import { tablesOf } from './tables.ts'
import { target } from './write.ts'

const BATCH_BYTES = 65_536

export type Restored = { head: Head; rows: Totals['rows'] }

/**
 * Fills an empty store, with all of the backup or with nothing. `check` sees the restored rows before they are committed, and refuses them
 * by throwing.
 */
export async function restoreBackup(
  address: StoreAddress,
  input: Readable,
  check: (sql: Sql) => Promise<void>,
): Promise<Restored> {
  const reader = new BackupReader(input)
  const head = await reader.head()
  const migrations = readMigrations()
  const isKnown = (version: number): boolean => migrations.some((known) => known.version === version)
  if (head.schema > (migrations.at(-1)?.version ?? 0) || !(head.migrations ?? []).every(isKnown))
    throw new StartFault(
      78,
      `this backup was made by a newer version of Boltyard (schema ${head.schema}); restore it with that version`,
    )
  const database = openStore(address, 1)
  const connection = new Connection(address)
  try {
    await refuseUnlessEmpty(database, head)
    // The rows fit the tables as they were when the backup was made. The later migrations then change both.
    await migrate(
      database,
      migrations.filter(({ version }) => head.migrations?.includes(version) ?? version <= head.schema),
    )
    await connection.connect()
    const rows = await fill(connection, reader, check)
    await migrate(database, migrations)
    return { head, rows }
  } finally {
    await connection.end()
    await database.end()
  }
}

async function refuseUnlessEmpty(sql: Sql, { schema }: Head): Promise<void> {
  const [found] = await sql<{ isMigrated: boolean }[]>`SELECT to_regclass('schema_migrations') IS NOT NULL AS "isMigrated"`
  if (!found?.isMigrated) return
  const [current] = await sql<{ version: number | null }[]>`SELECT max(version) AS version FROM schema_migrations`
  if ((current?.version ?? 0) > schema) throw notEmpty('its tables are newer than the backup')
  for (const { table } of await tablesOf(sql))
    if ((await sql`SELECT 1 FROM ${sql(table)} LIMIT 1`).length > 0) throw notEmpty(`it has rows in ${table}`)
}

const notEmpty = (why: string): StartFault => new StartFault(78, `a backup can only be restored into an empty database: ${why}`)

async function fill(connection: Connection, reader: BackupReader, check: (sql: Sql) => Promise<void>): Promise<Totals['rows']> {
  const { sql } = new Session(connection)
  await sql.unsafe('BEGIN')
  const tables = await tablesOf(sql)
  // The locks keep others from adding rows meanwhile. Triggers are disabled because the rows already include their effects.
  for (const { table } of tables)
    await sql.unsafe(`LOCK TABLE ${escapeIdentifier(table)}; ALTER TABLE ${escapeIdentifier(table)} DISABLE TRIGGER USER`)
  const rows: Totals['rows'] = {}
  for (;;) {
    const part = await reader.next()
    if (!('table' in part)) {
      if (!isSame(rows, part.rows) || Object.keys(rows).length < tables.length) throw damaged()
      await setSequences(sql, part.sequences)
      break
    }
    if (part.table in rows || !tables.some((known) => isSameTable(known, part))) throw damaged()
    rows[part.table] = await copyRows(connection, part, reader)
  }
  for (const { table } of tables) await sql.unsafe(`ALTER TABLE ${escapeIdentifier(table)} ENABLE TRIGGER USER`)
  await check(sql)
  await sql.unsafe('COMMIT')
  return rows
}

async function copyRows(connection: Connection, table: Table, reader: BackupReader): Promise<number> {
  const copying = connection.query(copyFrom(`COPY ${target(table)} FROM STDIN`))
  try {
    await pipeline(Readable.from(batches(reader.rows())), copying)
  } catch (error) {
    // PostgreSQL's message may quote a row, so only its code is shown.
    const { code, severity } = error as { code?: string; severity?: string }
    throw severity === undefined
      ? error
      : new StartFault(1, `the backup is damaged: PostgreSQL refused rows of ${table.table} (${code})`)
  }
  return copying.rowCount
}

/** Combines many rows into one write. */
async function* batches(rows: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let batch: Buffer[] = []
  let bytes = 0
  for await (const row of rows) {
    batch.push(row)
    bytes += row.length
    if (bytes < BATCH_BYTES) continue
    yield Buffer.concat(batch)
    batch = []
    bytes = 0
  }
  if (bytes > 0) yield Buffer.concat(batch)
}

async function setSequences(sql: Sql, sequences: Totals['sequences']): Promise<void> {
  const known = await sql<{ name: string }[]>`SELECT sequencename AS name FROM pg_sequences WHERE schemaname = current_schema()`
  for (const [name, value] of Object.entries(sequences)) {
    if (!known.some((sequence) => sequence.name === name) || !Number.isSafeInteger(value) || value < 1) throw damaged()
    await sql`SELECT setval(${escapeIdentifier(name)}::regclass, ${value})`
  }
}

const isSame = (one: Totals['rows'], other: Totals['rows']): boolean =>
  Object.keys(one).length === Object.keys(other).length && Object.entries(one).every(([name, count]) => other[name] === count)

const isSameTable = (one: Table, other: Table): boolean =>
  one.table === other.table &&
  one.columns.length === other.columns.length &&
  one.columns.every((name, at) => other.columns[at] === name)
