import { newId } from '../ids.ts'
import { Problem } from '../problems.ts'
import { type AccountRow, type CreditEntryRow, findAccount, insertAccount, insertCredit } from '../store/accounts.ts'
import type { Sql } from '../store/db.ts'

export async function createAccount(sql: Sql, name: string, creditSat: number, actor: string): Promise<AccountRow> {
  const id = newId('acct')
  await insertAccount(sql, { id, name, creditMsat: creditSat * 1000, reason: 'First credit', actor })
  return getAccount(sql, id)
}

export async function getAccount(sql: Sql, id: string): Promise<AccountRow> {
  const account = await findAccount(sql, id)
  if (!account) throw new Problem('not_found', 'There is no such account.')
  return account
}

export async function addCredit(
  sql: Sql,
  accountId: string,
  amountSat: number,
  reason: string,
  actor: string,
): Promise<CreditEntryRow> {
  const entry = await insertCredit(sql, { accountId, amountMsat: amountSat * 1000, kind: 'operator', reason, actor })
  if (!entry) throw new Problem('not_found', 'There is no such account.')
  return entry
}
