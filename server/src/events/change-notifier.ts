import type { Logger } from '../platform/log.ts'
import { isStoreDown } from '../platform/store-down.ts'
import { type Change, type NoteChange, notifyChanges } from '../store/changes.ts'
import type { Sql } from '../store/db.ts'

const DELAY_MS = 250

/**
 * Notifies all processes of what this one has changed: once per account and interval, however many changes there were. It runs outside the
 * transactions that made the changes, because NOTIFY would make them commit one after the other. If this process dies before it
 * notifies, the sweep of the sequencer still finds the events.
 */
export class ChangeNotifier {
  readonly #sql: Sql
  readonly #log: Logger
  readonly #delayMs: number
  readonly #pending = new Map<string, Set<Change>>()
  #timer: NodeJS.Timeout | undefined

  constructor({ sql, log, delayMs = DELAY_MS }: { sql: Sql; log: Logger; delayMs?: number }) {
    this.#sql = sql
    this.#log = log
    this.#delayMs = delayMs
  }

  readonly note: NoteChange = (accountId, ...changes) => {
    const pending = this.#pending.get(accountId) ?? new Set()
    this.#pending.set(accountId, pending)
    for (const change of changes) pending.add(change)
    this.#timer ??= setTimeout(() => void this.#send(), this.#delayMs)
  }

  async #send(): Promise<void> {
    this.#timer = undefined
    const changed = [...this.#pending].map(([accountId, changes]) => ({ accountId, changes: [...changes] }))
    this.#pending.clear()
    try {
      await notifyChanges(this.#sql, changed)
    } catch (error) {
      if (!isStoreDown(error)) this.#log.warn({ err: error }, 'cannot send change notifications; pages will update later')
    }
  }

  async close(): Promise<void> {
    clearTimeout(this.#timer)
    if (this.#pending.size > 0) await this.#send()
  }
}
