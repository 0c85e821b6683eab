import { isId, newId } from '../ids.ts'
import { Problem } from '../problems.ts'
import { type AccountRow, findAccount, insertAccount } from '../store/accounts.ts'
import type { Sql } from '../store/db.ts'

/** Also for what cannot be an id: PostgreSQL refuses some texts (a NUL), and a caller must not see the difference. */
export const noSuchAccount = (): Problem => new Problem('not_found', 'There is no such account.')

export async function createAccount(sql: Sql, name: string, creditSat: number, actor: string): Promise<AccountRow> {
  const id = newId('acct')
  await insertAccount(sql, { id, name, creditMsat: creditSat * 1000, reason: 'First credit', actor })
  return getAccount(sql, id)
}

export async function getAccount(sql: Sql, id: string): Promise<AccountRow> {
  const account = isId('acct', id) ? await findAccount(sql, id) : undefined
  if (!account) throw noSuchAccount()
  return account
}
