import { ERRORS } from '../../../../contract/src/errors.ts'
import { isId } from '../../platform/ids.ts'
import type { Logger } from '../../platform/log.ts'
import { requestLogProbe } from '../../platform/probes.ts'
import {
  type LoggedRequest,
  listRequests,
  type RequestFilter,
  type RequestRow,
  recordRequests,
  type UsageRow,
  usageOf,
} from '../../store/api-requests.ts'
import type { Database } from '../../store/db.ts'
import type { SlowReads } from '../../store/slow-reads.ts'
import { Allowance } from './allowance.ts'

const WRITE_EVERY_MS = 1_000
/** What one process keeps in memory until the next write. */
const MOST_WAITING = 2_000
const DAY_MS = 86_400_000
const FEWER_FILTERS = 'Choose another filter, or fewer filters.'
export const USAGE_DAYS = 30

export type LogEntry = Omit<RequestRow, 'atMs'>
export type RequestLogDeps = { sql: Database; slowReads: SlowReads; log: Logger }

/**
 * The log of API requests, and how often each key was used. Requests are collected in memory and written every second, in one
 * transaction. The counts include every request. The log omits requests beyond an account's allowance, so that it can neither
 * slow the service down nor fill the disk.
 */
export class RequestLog {
  readonly #sql: Database
  readonly #slowReads: SlowReads
  readonly #log: Logger
  readonly #timer: NodeJS.Timeout
  readonly #allowance = new Allowance()
  #rows: RequestRow[] = []
  #usage = new Map<string, UsageRow>()
  #dropped = 0
  #writing: Promise<void> | undefined
  #today = { day: '', endsMs: 0 }

  constructor({ sql, slowReads, log }: RequestLogDeps, writeEveryMs = WRITE_EVERY_MS) {
    this.#sql = sql
    this.#slowReads = slowReads
    this.#log = log
    this.#timer = setInterval(() => this.#writeSoon(), writeEveryMs)
    this.#timer.unref()
  }

  record(entry: LogEntry): void {
    const atMs = Date.now()
    const isError = entry.status >= 400
    this.#count(entry.keyId, atMs, isError)
    if (this.#rows.length >= MOST_WAITING || !this.#allowance.take(entry.accountId, isError, atMs)) this.#dropped++
    else this.#rows.push({ ...entry, atMs })
  }

  #count(keyId: string, atMs: number, isError: boolean): void {
    if (atMs >= this.#today.endsMs || atMs < this.#today.endsMs - DAY_MS) {
      const day = new Date(atMs).toISOString().slice(0, 10)
      this.#today = { day, endsMs: Date.parse(day) + DAY_MS }
    }
    const { day } = this.#today
    const counted = this.#usage.get(keyId + day)
    if (counted) {
      counted.requests++
      if (isError) counted.errors++
    } else this.#usage.set(keyId + day, { keyId, day, requests: 1, errors: isError ? 1 : 0 })
  }

  /** If a write takes longer than its interval, no other write begins: they would compete for connections. */
  #writeSoon(): void {
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined
    })
  }

  async #write(): Promise<void> {
    if (this.#dropped > 0) requestLogProbe.report({ dropped: this.#dropped })
    this.#dropped = 0
    if (this.#usage.size === 0) return
    const [rows, usage] = [this.#rows, this.#usage]
    this.#rows = []
    this.#usage = new Map()
    try {
      await recordRequests(this.#sql, rows, [...usage.values()])
    } catch (error) {
      this.#log.warn({ err: error }, 'cannot write the log of API requests')
      this.#dropped += rows.length
      this.#restore(usage)
    }
  }

  /** The counts need little memory and must not be lost, so they are written with the next batch. */
  #restore(usage: Map<string, UsageRow>): void {
    for (const [name, { requests, errors, ...row }] of usage) {
      const counted = this.#usage.get(name) ?? { ...row, requests: 0, errors: 0 }
      this.#usage.set(name, { ...counted, requests: counted.requests + requests, errors: counted.errors + errors })
    }
  }

  async list(
    accountId: string,
    filter: RequestFilter,
    limit: number,
    before?: number,
  ): Promise<(LoggedRequest & { errorMeaning: string | null })[]> {
    // An invalid id matches nothing, and may contain bytes that PostgreSQL rejects.
    if (filter.keyId !== undefined && !isId('key', filter.keyId)) return []
    const rows = await this.#slowReads.run(accountId, (sql) => listRequests(sql, accountId, filter, limit, before), {
      advice: FEWER_FILTERS,
    })
    return rows.map((row) => ({ ...row, errorMeaning: meaningOf(row.errorCode) }))
  }

  async usage(accountId: string): Promise<{ today: string; since: string; days: UsageRow[] }> {
    return usageOf(this.#sql, accountId, USAGE_DAYS)
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#writing
    await this.#write()
  }
}

function meaningOf(code: string | null): string | null {
  return code !== null && code in ERRORS ? ERRORS[code as keyof typeof ERRORS][1] : null
}
