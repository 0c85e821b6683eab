import type { Database, Sql } from './db.ts'

/** The kinds of changes that pages display. */
export const CHANGES = ['nodes', 'payments', 'activity'] as const
export type Change = (typeof CHANGES)[number]
export type AccountChange = { accountId: string; changes: readonly Change[] }

/** Call after the change has been committed. */
export type NoteChange = (accountId: string, ...changes: Change[]) => void

/** Triggers also send notifications on this channel: for nodes, and for activity other than payments. */
const CHANNEL = 'boltyard_changed'

export async function notifyChanges(sql: Sql, changed: AccountChange[]): Promise<void> {
  const payloads = changed.flatMap(({ accountId, changes }) => changes.map((change) => `${accountId} ${change}`))
  await sql`SELECT pg_notify(${CHANNEL}, payload) FROM unnest(${payloads}::text[]) payload`
}

/** Returns a function that stops listening. */
export function listenForChanges(
  database: Database,
  { onChange, onStart }: { onChange: (accountId: string, change: Change) => void; onStart: () => void },
): () => void {
  const onNotify = (payload: string): void => {
    const [accountId = '', name] = payload.split(' ')
    const change = CHANGES.find((known) => known === name)
    // A newer version may send kinds that this one does not know.
    if (change) onChange(accountId, change)
  }
  return database.listen(CHANNEL, { onNotify, onStart })
}
