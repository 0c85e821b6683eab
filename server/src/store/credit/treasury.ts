import type { Database, Sql } from '../db.ts'

export type Treasury = { nodeId: string; status: string }

/** The given node of the treasury's account or, if none is given, its first node. Undefined: credit cannot be bought. */
export async function findTreasury(sql: Sql, nodeId: string | undefined): Promise<Treasury | undefined> {
  const [row] = await sql<Treasury[]>`
    SELECT n.id AS "nodeId", n.status FROM accounts a JOIN nodes n ON n.account_id = a.id
    WHERE a.is_treasury AND n.deleted_at IS NULL AND n.desired_state = 'running' ${nodeId === undefined ? sql`` : sql`AND n.id = ${nodeId}`} ORDER BY n.id LIMIT 1`
  return row
}

export const TREASURY_NAME = 'treasury'

/**
 * False: there is no such node, or its account does not have the treasury's name. There is one treasury: a previous one becomes an ordinary
 * account.
 */
export async function markTreasury(database: Database, nodeId: string): Promise<boolean> {
  return database.begin(async (sql) => {
    await lockTreasury(sql)
    const [account] = await sql<{ id: string; isTreasury: boolean }[]>`
      SELECT a.id, a.is_treasury AS "isTreasury" FROM accounts a JOIN nodes n ON n.account_id = a.id
      WHERE n.id = ${nodeId} AND n.deleted_at IS NULL AND a.name = ${TREASURY_NAME}`
    if (!account) return false
    if (account.isTreasury) return true
    await sql`UPDATE accounts SET is_treasury = false WHERE is_treasury`
    await sql`UPDATE accounts SET is_treasury = true WHERE id = ${account.id}`
    return true
  })
}

/** Held until the end of the transaction, so that two processes that start at once do not create two treasuries. */
export async function lockTreasury(sql: Sql): Promise<void> {
  await sql`SELECT pg_advisory_xact_lock(hashtextextended('treasury', 0))`
}

/** False if one already exists. */
export async function insertTreasuryAccount(sql: Sql, accountId: string, actor: string): Promise<boolean> {
  const [row] = await sql`
    WITH account AS (
      INSERT INTO accounts (id, name, is_treasury) SELECT ${accountId}, ${TREASURY_NAME}, true
      WHERE NOT EXISTS (SELECT 1 FROM accounts WHERE is_treasury) RETURNING id
    )
    INSERT INTO activity (account_id, actor, action) SELECT id, ${actor}, 'account.created' FROM account RETURNING 1`
  return row !== undefined
}
