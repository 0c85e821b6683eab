/**
 * A backup is gzipped text: one line of JSON that describes it, then for each table one line of JSON with its name and columns, its rows as
 * PostgreSQL's COPY writes them and a line with `\.`, and finally one line of JSON with the totals. It contains no SQL: reading a file must
 * not execute what is in it.
 */
export type Head = {
  boltyardBackup: 1
  /** The last migration of the database it was made from. */
  schema: number
  /** All migrations that had run: a lower number may be missing. Absent in earlier backups, where all up to `schema` had run. */
  migrations?: number[]
  /** An ISO 8601 time. */
  createdAt: string
}

export type Table = { table: string; columns: string[] }

export type Totals = {
  rows: Record<string, number>
  /** The last value that each sequence has given out. */
  sequences: Record<string, number>
}

export const END_OF_TABLE = '\\.'

/**
 * Tables that are not in a backup. If sessions and links were in it, one that was used or revoked later would work again after a
 * restore. The restore fills schema_migrations itself. The log of API requests is large and short-lived. Unlogged tables are left
 * out too, because they only contain counters.
 */
export const LEFT_OUT = [
  'api_requests',
  'links',
  'operator_sessions',
  'people_sessions',
  'people_verifications',
  'schema_migrations',
]
