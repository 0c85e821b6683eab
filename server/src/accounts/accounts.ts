import { isId, newId } from '../platform/ids.ts'
import { Problem } from '../problems.ts'
import { type AccountRow, findAccount, insertAccount } from '../store/accounts.ts'
import { TREASURY_NAME } from '../store/credit/treasury.ts'
import type { Sql } from '../store/db.ts'

/** Also for what cannot be an id: PostgreSQL refuses some texts (a NUL), and a caller must not see the difference. */
export const noSuchAccount = (): Problem => new Problem('not_found', 'There is no such account.')

export const FIRST_ACCOUNT_NAME = 'default'
/** Names by which an operator knows accounts; strangers do not get them. */
export const RESERVED_NAMES: readonly string[] = [FIRST_ACCOUNT_NAME, TREASURY_NAME, 'operator']

export type NewAccount = { name: string; creditSat: number; actor: string; isSelfRegistered: boolean }

export async function createAccount(sql: Sql, { creditSat, ...account }: NewAccount): Promise<AccountRow> {
  const id = newId('acct')
  await insertAccount(sql, { ...account, id, creditMsat: creditSat * 1000, reason: 'First credit' })
  return getAccount(sql, id)
}

export async function getAccount(sql: Sql, id: string): Promise<AccountRow> {
  const account = isId('acct', id) ? await findAccount(sql, id) : undefined
  if (!account) throw noSuchAccount()
  return account
}
