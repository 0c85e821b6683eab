import type { Sql } from '../db.ts'
import { LEFT_OUT, type Table } from './format.ts'

/** The tables of a backup. A table comes after all tables that it references. */
export async function tablesOf(sql: Sql): Promise<Table[]> {
  const tables = await sql<(Table & { references: string[] })[]>`
    SELECT c.relname AS "table",
      (SELECT array_agg(attname::text ORDER BY attnum) FROM pg_attribute
       WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = '') AS columns,
      ARRAY(SELECT confrelid::regclass::text FROM pg_constraint WHERE contype = 'f' AND conrelid = c.oid AND confrelid <> c.oid) AS "references"
    FROM pg_class c
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND c.relpersistence = 'p' AND c.relname <> ALL (${LEFT_OUT})
    ORDER BY c.relname`
  const ordered: Table[] = []
  while (ordered.length < tables.length) {
    const isListed = (name: string): boolean => ordered.some(({ table }) => table === name)
    const next = tables.find(({ table, references }) => !isListed(table) && references.every(isListed))
    if (!next) throw new Error('tables of the store reference each other in a circle')
    ordered.push({ table: next.table, columns: next.columns })
  }
  return ordered
}
