import { isId, newId } from '../platform/ids.ts'
import { noSuchAccount } from '../problems.ts'
import { type AccountRow, findAccount, insertAccount, listAccounts } from '../store/accounts.ts'
import { type ActivityRow, listActivity } from '../store/activity.ts'
import type { ActivityFilter } from '../store/activity-search.ts'
import { TREASURY_NAME } from '../store/credit/treasury.ts'
import type { Sql } from '../store/db.ts'
import { type ListParams, listPage } from '../store/operator/lists.ts'
import { type OverviewRow, overviewOf } from '../store/overview.ts'
import type { SlowReads } from '../store/slow-reads.ts'
import { type ActivityPage, activityPage, activitySubjects, type PageOptions } from './activity.ts'
import type { Credit, CreditSummary } from './credit/credit.ts'

export const FIRST_ACCOUNT_NAME = 'default'
/** Names that operators use to recognize accounts; people who sign up cannot take them. */
export const RESERVED_NAMES: readonly string[] = [FIRST_ACCOUNT_NAME, TREASURY_NAME, 'operator']

export type Account = Omit<AccountRow, 'creditMsat'> & { creditSat: number }
export type AccountDetail = Account & Pick<CreditSummary, 'runwaySeconds' | 'stopsAt'> & { creditLeftSat: number }
export type Overview = Omit<OverviewRow, 'attention'> & {
  credit: CreditSummary
  attention: OverviewRow['attention'] & { updates: number }
}
export type NewAccount = { name: string; creditSat: number; actor: string; isSelfRegistered: boolean }

/** Runs in the caller's transaction, if there is one, so that a person and their account are created together. */
export async function createAccount(sql: Sql, { creditSat, ...account }: NewAccount): Promise<{ id: string }> {
  const id = newId('acct')
  await insertAccount(sql, { ...account, id, creditMsat: creditSat * 1000, reason: 'First credit' })
  return { id }
}

export type AccountsDeps = {
  sql: Sql
  slowReads: SlowReads
  credit: Credit
  signupCreditSat: number
  countUpdates: (accountId: string) => Promise<number>
}

export class Accounts {
  readonly #deps: AccountsDeps

  constructor(deps: AccountsDeps) {
    this.#deps = deps
  }

  async create({ name, creditSat }: { name: string; creditSat?: number }, actor: string): Promise<Account> {
    const { sql, signupCreditSat } = this.#deps
    const { id } = await createAccount(sql, { name, creditSat: creditSat ?? signupCreditSat, actor, isSelfRegistered: false })
    return this.get(id)
  }

  async list(params: ListParams): Promise<{ accounts: Account[]; nextCursor: string | null }> {
    const { items, nextCursor } = await listPage(params, 'acct', (page) => listAccounts(this.#deps.sql, page))
    return { accounts: items.map(accountOf), nextCursor }
  }

  /** `creditLeftSat` is the balance that the owner sees: unposted usage is already deducted. */
  async detail(id: string): Promise<AccountDetail> {
    const account = await this.get(id)
    const { balanceSat, runwaySeconds, stopsAt } = await this.#deps.credit.summary(id)
    return { ...account, creditLeftSat: balanceSat, runwaySeconds, stopsAt }
  }

  async find(id: string): Promise<Account | undefined> {
    // An invalid id matches nothing, and may contain bytes that PostgreSQL rejects.
    const row = isId('acct', id) ? await findAccount(this.#deps.sql, id) : undefined
    return row && accountOf(row)
  }

  async get(id: string): Promise<Account> {
    const account = await this.find(id)
    if (!account) throw noSuchAccount()
    return account
  }

  /** Newest first. With `before`, only entries older than the entry with that id. */
  async activity(id: string, limit: number, before?: number): Promise<ActivityRow[]> {
    const rows = isId('acct', id) ? await listActivity(this.#deps.sql, id, limit, before) : []
    if (rows.length === 0) await this.get(id)
    return rows
  }

  /** A page for the dashboard: with names and, if `isFolded`, the payments of one node within an hour as one entry. */
  searchActivity(id: string, filter: ActivityFilter, options: PageOptions): Promise<ActivityPage> {
    return this.#deps.slowReads.run(id, (sql) => activityPage(sql, id, filter, options))
  }

  activitySubjects(id: string) {
    return activitySubjects(this.#deps.sql, id)
  }

  /** `from`: in Unix seconds. */
  async overview(id: string, from?: number): Promise<Overview> {
    const { sql, credit, countUpdates } = this.#deps
    const [overview, summary, updates] = await Promise.all([overviewOf(sql, id, from), credit.summary(id), countUpdates(id)])
    return { credit: summary, ...overview, attention: { ...overview.attention, updates } }
  }
}

const accountOf = ({ creditMsat, ...account }: AccountRow): Account => ({ ...account, creditSat: Math.floor(creditMsat / 1000) })
