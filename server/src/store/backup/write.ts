import { Readable, type Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { escapeIdentifier } from 'pg'
import { to as copyTo } from 'pg-copy-streams'
import type { StoreAddress } from '../db.ts'
import { Connection } from '../postgres/connection.ts'
import { Session } from '../postgres/session.ts'
import { END_OF_TABLE, type Head, type Table, type Totals } from './format.ts'
import { tablesOf } from './tables.ts'

/** Writes the store as it is at one moment, while others continue to use it. Returns the number of rows of each table. */
export async function writeBackup(address: StoreAddress, out: Writable): Promise<Totals['rows']> {
  const connection = new Connection(address)
  await connection.connect()
  try {
    const rows: Totals['rows'] = {}
    await pipeline(Readable.from(contentsOf(connection, rows)), createGzip(), out)
    return rows
  } finally {
    await connection.end()
  }
}

async function* contentsOf(connection: Connection, rows: Totals['rows']): AsyncGenerator<Buffer | string> {
  const { sql } = new Session(connection)
  await sql.unsafe('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
  const [head] = await sql<Omit<Head, 'boltyardBackup'>[]>`
    SELECT max(version) AS schema, json_agg(version ORDER BY version) AS migrations,
           to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS "createdAt"
    FROM schema_migrations`
  yield line({ boltyardBackup: 1, ...head })
  for (const table of await tablesOf(sql)) {
    yield line(table)
    const copying = connection.query(copyTo(`COPY ${target(table)} TO STDOUT`))
    yield* copying
    rows[table.table] = copying.rowCount
    yield `${END_OF_TABLE}\n`
  }
  const sequences = await sql<{ name: string; value: number }[]>`
    SELECT sequencename AS name, last_value AS value FROM pg_sequences WHERE schemaname = current_schema() AND last_value IS NOT NULL`
  const totals: Totals = { rows, sequences: Object.fromEntries(sequences.map(({ name, value }) => [name, value])) }
  yield line(totals)
  await sql.unsafe('COMMIT')
}

const line = (value: object): string => `${JSON.stringify(value)}\n`

/** What COPY reads or writes. */
export const target = ({ table, columns }: Table): string =>
  `${escapeIdentifier(table)} (${columns.map((column) => escapeIdentifier(column)).join(', ')})`
