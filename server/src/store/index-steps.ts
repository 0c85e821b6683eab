import type { Sql } from './db.ts'

export type IndexStep = { verb: string; index: string; statement: string }

const INDEX_STEP = /^(CREATE|DROP) (?:UNIQUE )?INDEX CONCURRENTLY IF (?:NOT )?EXISTS (\w+)/

/**
 * The statements of a migration that runs without a transaction. A process may end, or a backup may be made, between two of them,
 * so they may change only indexes, which a backup does not contain. Each must be safe to repeat.
 */
export function indexSteps(name: string, statements: string): IndexStep[] {
  const steps = statements
    .replace(/^--.*$/gm, '')
    .split(';')
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '')
  return steps.map((statement) => {
    const [, verb, index] = INDEX_STEP.exec(statement) ?? []
    if (!verb || !index)
      throw new Error(
        `${name} runs without a transaction, so it may only contain INDEX CONCURRENTLY IF (NOT) EXISTS: ${statement}`,
      )
    return { verb, index, statement }
  })
}

/**
 * An index whose creation was interrupted is invalid, so it is rebuilt. A valid one is kept, because building it may take longer than a
 * process is given to start. No lock timeout: this waits for others, but others do not wait for it.
 */
export async function changeIndex(sql: Sql, { verb, index, statement }: IndexStep): Promise<void> {
  await sql.unsafe('SET lock_timeout = 0')
  const [invalid] = await sql`SELECT 1 FROM pg_index WHERE indexrelid = to_regclass(${index}) AND NOT indisvalid`
  if (verb === 'CREATE' && invalid) await sql.unsafe(`DROP INDEX CONCURRENTLY IF EXISTS ${index}`)
  await sql.unsafe(statement)
}
