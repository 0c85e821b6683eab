import type { Logger } from '../platform/log.ts'
import { isStoreDown } from '../platform/store-down.ts'
import { CHANGES, type Change, listenForChanges, paymentCursorOf } from '../store/changes.ts'
import type { Database } from '../store/db.ts'

export type Changed = Record<Change, boolean>
type Watcher = (changed: Changed) => void

/** Collects the notifications of one transaction, which arrive one after the other. */
const MOMENT_MS = 20
/** Watchers query what has changed when they are notified, so this limits how often they query. */
const PAUSE_MS = 1_000
const SWEEP_MS = 30_000

type Watched = {
  watchers: Set<Watcher>
  pending: Set<Change>
  /** Reports pending changes when it fires. */
  timer: NodeJS.Timeout | undefined
  cursor: string
}

export type AccountChangesOptions = { sql: Database; log: Logger; pauseMs?: number; sweepMs?: number }

/**
 * Notifies watchers that something in an account has changed, whichever process changed it. A notification is lost if the process that
 * should send it dies, or if the listening connection drops. After a dropped connection, every watcher is notified as if everything had
 * changed. In case a process died, a sweep checks whether the payments of watched accounts have changed since the last sweep.
 */
export class AccountChanges {
  readonly #sql: Database
  readonly #log: Logger
  readonly #pauseMs: number
  readonly #watched = new Map<string, Watched>()
  readonly #sweeper: NodeJS.Timeout
  readonly #unlisten: () => void

  constructor({ sql, log, pauseMs = PAUSE_MS, sweepMs = SWEEP_MS }: AccountChangesOptions) {
    this.#sql = sql
    this.#log = log
    this.#pauseMs = pauseMs
    this.#sweeper = setInterval(() => void this.#sweep(), sweepMs)
    this.#sweeper.unref()
    this.#unlisten = listenForChanges(sql, {
      onChange: (accountId, change) => this.#add(accountId, [change]),
      onStart: () => {
        for (const accountId of this.#watched.keys()) this.#add(accountId, CHANGES)
      },
    })
  }

  /** Every change made after the promise resolves is reported. Returns a function that ends the watch. */
  async watch(accountId: string, watcher: Watcher): Promise<() => void> {
    const cursor = await paymentCursorOf(this.#sql, accountId)
    const watched = this.#watched.get(accountId) ?? { watchers: new Set(), pending: new Set(), timer: undefined, cursor }
    this.#watched.set(accountId, watched)
    watched.watchers.add(watcher)
    return () => {
      watched.watchers.delete(watcher)
      if (watched.watchers.size > 0) return
      clearTimeout(watched.timer)
      if (this.#watched.get(accountId) === watched) this.#watched.delete(accountId)
    }
  }

  /** Reports the first change at once, and all changes during the pause that follows together. */
  #add(accountId: string, changes: readonly Change[]): void {
    const watched = this.#watched.get(accountId)
    if (!watched) return
    for (const change of changes) watched.pending.add(change)
    watched.timer ??= setTimeout(() => this.#tell(watched), MOMENT_MS)
  }

  #tell(watched: Watched): void {
    const { pending, watchers } = watched
    watched.timer = undefined
    if (pending.size === 0) return
    const changed = { nodes: pending.has('nodes'), payments: pending.has('payments'), activity: pending.has('activity') }
    pending.clear()
    watched.timer = setTimeout(() => this.#tell(watched), this.#pauseMs)
    for (const watcher of watchers) watcher(changed)
  }

  async #sweep(): Promise<void> {
    for (const [accountId, watched] of this.#watched)
      try {
        const cursor = await paymentCursorOf(this.#sql, accountId)
        if (cursor !== watched.cursor) this.#add(accountId, ['payments', 'activity'])
        watched.cursor = cursor
      } catch (error) {
        // Nothing is lost: the next sweep compares with the last one that succeeded.
        if (!isStoreDown(error)) this.#log.warn({ err: error }, 'cannot query changes')
        return
      }
  }

  close(): void {
    clearInterval(this.#sweeper)
    this.#unlisten()
    for (const { timer } of this.#watched.values()) clearTimeout(timer)
    this.#watched.clear()
  }
}
