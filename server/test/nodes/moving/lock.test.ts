import { expect, test } from 'vitest'
import { type Database, openStore } from '../../../src/store/db.ts'
import { type RequireLock, withMovesLocked } from '../../../src/store/nodes/moving.ts'
import { newDatabase } from '../../support/database.ts'
import { eventually, track } from '../../support/server.ts'

/** C90: the lock that lets one wallet move at a time, on any number of machines. */

const SILENT_TRANSACTION_MS = 200

const held = { result: 'done' }

/** Ends the connection that has the lock, as a restart of PostgreSQL would. */
async function endHolder(sql: Database): Promise<void> {
  const ended = await sql`
    SELECT pg_terminate_backend(pid) FROM pg_locks
    WHERE locktype = 'advisory' AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
  expect(ended).toHaveLength(1)
}

async function silentTransactions(sql: Database): Promise<number> {
  return (await sql`SELECT 1 FROM pg_stat_activity WHERE state = 'idle in transaction' AND datname = current_database()`).length
}

const until = async (requireLock: RequireLock): Promise<void> => {
  await eventually(
    () =>
      requireLock().then(
        () => false,
        () => true,
      ),
    'the lock to be lost',
  )
}

test('C90: a move holds its lock for as long as it takes, also while it sends nothing', async () => {
  const { store } = await newDatabase()
  const sql = track(openStore(store, 4, SILENT_TRANSACTION_MS))
  const outcome = await withMovesLocked(sql, async (requireLock) => {
    // PostgreSQL ends `other` after SILENT_TRANSACTION_MS. The move's own transaction has been idle for longer, and survives.
    const other = sql.begin(async (transaction) => {
      await transaction`SELECT 1`
      await eventually(async () => (await silentTransactions(sql)) === 1, 'its end')
      await transaction`SELECT 1`
    })
    await expect(other).rejects.toThrow()
    await requireLock()
    expect(await withMovesLocked(sql, async () => 'twice')).toBe('locked')
    return 'done'
  })
  expect(outcome).toEqual(held)
  expect(await withMovesLocked(sql, async () => 'done')).toEqual(held)
})

test('C90: a move that has lost its lock stops before its next step, and another one can begin', async () => {
  const { sql } = await newDatabase()
  const lost = withMovesLocked(sql, async (requireLock) => {
    await endHolder(sql)
    await until(requireLock)
    expect(await withMovesLocked(sql, async () => 'done')).toEqual(held)
    await requireLock()
    return 'never'
  })
  await expect(lost).rejects.toThrow()
})

test('C90: what a move has done counts, even if its lock is lost at the end', async () => {
  const { sql } = await newDatabase()
  const outcome = await withMovesLocked(sql, async (requireLock) => {
    await endHolder(sql)
    await until(requireLock)
    return 'done'
  })
  expect(outcome).toEqual(held)
})
