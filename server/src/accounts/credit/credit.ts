import type { Config } from '../../config.ts'
import { type Repeatable, runOnce } from '../../idempotency.ts'
import { isId } from '../../platform/ids.ts'
import type { MasterKey } from '../../platform/secrets.ts'
import { noSuchAccount, Problem } from '../../problems.ts'
import {
  type CreditRow,
  findCredit,
  insertCredit,
  type LedgerRow,
  listEntries,
  type WarningChange,
  type WarningLevel,
} from '../../store/credit/credit.ts'
import {
  type LedgerFilter,
  listMatchingEntries,
  listUnposted,
  type Matching,
  sumMatchingEntries,
  type UnpostedRow,
} from '../../store/credit/ledger.ts'
import { findTreasury } from '../../store/credit/treasury.ts'
import type { Database, Sql } from '../../store/db.ts'
import type { SlowReads } from '../../store/slow-reads.ts'
import { csvOfUsage, ledgerCsv, nodeOf, type Usage, usageOf, withNodeNames } from './ledger.ts'

export type CreditSummary = {
  /** Whole satoshis, rounded down. */
  balanceSat: number
  balanceMsat: number
  /** Usage that is not in the ledger yet. Already deducted from both balances above. */
  unpostedMsat: number
  nodesThatCost: number
  /** Null if nothing is charged. */
  runwaySeconds: number | null
  warning: WarningLevel
  /** When nodes will be stopped for lack of credit; null if none will be. */
  stopsAt: number | null
  graceHours: number
  canTopUp: boolean
}

const DAY_SECONDS = 86_400
const SEVERITY: Record<WarningLevel, number> = { none: 0, week: 1, day: 2, empty: 3 }

type Means = { leftMsat: number; costMsatPerDay: number }

export function runwaySeconds({ leftMsat, costMsatPerDay }: Means): number | null {
  if (costMsatPerDay === 0) return null
  return Math.max(0, Math.floor((leftMsat / costMsatPerDay) * DAY_SECONDS))
}

/** An account that has no credit, but also no nodes that cost anything, is not low on credit. */
export function levelOf(means: Means): WarningLevel {
  const seconds = runwaySeconds(means)
  if (means.leftMsat < 0 || (means.leftMsat === 0 && seconds !== null)) return 'empty'
  if (seconds === null || seconds > 7 * DAY_SECONDS) return 'none'
  return seconds > DAY_SECONDS ? 'week' : 'day'
}

export const meansOf = ({ balanceMsat, unpostedMsat, costing }: CreditRow, priceMsatPerDay: number): Means => ({
  leftMsat: balanceMsat - unpostedMsat,
  costMsatPerDay: costing * priceMsatPerDay,
})

/**
 * Each warning level is reported once, when it is reached. Only new credit lowers the level again; otherwise stopping and starting a node
 * would repeat the same warning. Returns undefined if nothing has changed.
 */
export function nextWarning(before: CreditRow, means: Means): WarningChange | undefined {
  const current = levelOf(means)
  const isCredited = before.newestCreditId > before.creditId
  const known = isCredited && SEVERITY[current] < SEVERITY[before.level] ? current : before.level
  const isWorse = SEVERITY[current] > SEVERITY[known]
  const level = isWorse ? current : known
  const wasEmpty = before.emptySince !== null
  const isEmpty = means.leftMsat <= 0 && (wasEmpty || before.running > 0)
  const changes = level !== before.level || isEmpty !== wasEmpty || (isCredited && before.level !== 'none')
  if (!changes) return undefined
  return { level, isEmpty, tells: isWorse ? { level, runwaySeconds: runwaySeconds(means) } : undefined }
}

export type CreditConfig = Pick<Config, 'nodePriceSatPerDay' | 'creditGraceHours' | 'treasury'>
export type CreditDeps = { sql: Database; slowReads: SlowReads; config: CreditConfig; masterKeys: MasterKey[] }
export type CreditEntry = { id: number; amountSat: number; kind: string; reason: string; createdAt: number; creditSat: number }

type OfNode<T> = T & { nodeName: string | null }
export type Ledger = {
  summary: CreditSummary
  entries: OfNode<LedgerRow & { nodeId: string | null }>[]
  /** What `unpostedMsat` of the summary consists of. */
  unposted: OfNode<UnpostedRow>[]
  /** Of all entries that match the filter; null without one, and on later pages. */
  matching: Matching | null
}

export class Credit {
  readonly #deps: CreditDeps

  constructor(deps: CreditDeps) {
    this.#deps = deps
  }

  summary(accountId: string): Promise<CreditSummary> {
    return this.#summary(this.#deps.sql, accountId)
  }

  async #summary(sql: Sql, accountId: string): Promise<CreditSummary> {
    const { nodePriceSatPerDay, creditGraceHours, treasury } = this.#deps.config
    const priceMsatPerDay = nodePriceSatPerDay * 1000
    const [row, takesPayments] = await Promise.all([
      findCredit(sql, accountId, priceMsatPerDay),
      treasury === 'none' ? undefined : findTreasury(sql, treasury.nodeId),
    ])
    if (!row) throw noSuchAccount()
    const means = meansOf(row, priceMsatPerDay)
    const isFree = priceMsatPerDay === 0
    const stops = !isFree && means.leftMsat <= 0 && row.running > 0
    return {
      balanceSat: Math.floor(means.leftMsat / 1000),
      balanceMsat: means.leftMsat,
      unpostedMsat: row.unpostedMsat,
      nodesThatCost: isFree ? 0 : row.costing,
      runwaySeconds: runwaySeconds(means),
      warning: isFree ? 'none' : levelOf(means),
      stopsAt: stops ? (row.emptySince ?? row.now) + creditGraceHours * 3_600 : null,
      graceHours: creditGraceHours,
      canTopUp: takesPayments !== undefined,
    }
  }

  /**
   * The summary and a page of the ledger, newest first; with `before`, only older entries. Everything is read in one snapshot:
   * usage posted between two reads would be missing from both or counted twice.
   */
  async ledger(accountId: string, before: number | undefined, limit: number, filter: LedgerFilter = {}): Promise<Ledger> {
    return this.#snapshot(accountId, async (sql) => {
      const summary = await this.#summary(sql, accountId)
      const isFiltered = Object.values(filter).some((value) => value !== undefined)
      const rows = await (isFiltered
        ? listMatchingEntries(sql, accountId, filter, { before, limit }, summary.balanceMsat + summary.unpostedMsat)
        : listEntries(sql, accountId, before, limit))
      const price = this.#deps.config.nodePriceSatPerDay * 1000
      return {
        summary,
        entries: await withNodeNames(
          sql,
          accountId,
          rows.map((row) => ({ ...row, nodeId: nodeOf(row) })),
        ),
        unposted: price === 0 ? [] : await withNodeNames(sql, accountId, await listUnposted(sql, accountId, price)),
        matching: isFiltered && before === undefined ? await sumMatchingEntries(sql, accountId, filter) : null,
      }
    })
  }

  async usage(accountId: string, from: number): Promise<Usage> {
    return this.#snapshot(accountId, (sql) => usageOf(sql, accountId, from, this.#deps.config.nodePriceSatPerDay * 1000))
  }

  async usageCsv(accountId: string, from: number): Promise<string> {
    return csvOfUsage(await this.usage(accountId, from))
  }

  csv(accountId: string, filter: LedgerFilter = {}): AsyncGenerator<string> {
    return ledgerCsv(this.#deps.sql, accountId, filter)
  }

  #snapshot<T>(accountId: string, read: (sql: Sql) => Promise<T>): Promise<T> {
    return this.#deps.slowReads.run(accountId, read, { isSnapshot: true })
  }

  /**
   * Rejects a deduction that is larger than the balance: only metering may take a balance below zero. A repeat of the same request, after
   * a lost response, gets the entry of the first one.
   */
  async add(accountId: string, amountSat: number, reason: string, actor: string, repeatable = ONCE): Promise<CreditEntry> {
    if (!isId('acct', accountId)) throw noSuchAccount()
    const { sql, masterKeys } = this.#deps
    const entry = { accountId, amountMsat: amountSat * 1000, kind: 'operator', reason, actor }
    return runOnce(sql, masterKeys, repeatable, 201, {
      prepare: async () => undefined,
      work: async (transaction) => {
        const added = await insertCredit(transaction, entry)
        if (added === undefined) throw noSuchAccount()
        if (typeof added === 'number') {
          const balance = `The account’s balance is ${Math.floor(added / 1000)} sat`
          throw new Problem('bad_request', `${balance}, so ${-amountSat} sat cannot be deducted.`)
        }
        const { id, kind, createdAt, balanceAfterMsat } = added
        return { id, amountSat, kind, reason, createdAt, creditSat: Math.floor(balanceAfterMsat / 1000) }
      },
    })
  }
}

/** Without an Idempotency-Key, each request is a new one. */
const ONCE: Repeatable = { key: undefined, callerId: '', secret: '', route: '', body: undefined }
