import { CHANGES, type Change, listenForChanges } from '../store/changes.ts'
import type { Database } from '../store/db.ts'
import { listenForEvents } from '../store/events/feed.ts'

export type Changed = Record<Change, boolean>
type Watcher = (changed: Changed) => void

/** Collects the notifications of one change: a hint from the process that made it, and soon afterwards its event. */
const MOMENT_MS = 100
/** Watchers query what has changed when they are notified, so this limits how often they query. */
const PAUSE_MS = 1_000

type Watched = {
  watchers: Set<Watcher>
  pending: Set<Change>
  /** Reports pending changes when it fires. */
  timer: NodeJS.Timeout | undefined
}

export type AccountChangesOptions = { sql: Database; pauseMs?: number }

/**
 * Notifies watchers that something in an account has changed, whichever process changed it. The process that changed a payment
 * sends a hint, which is lost if that process dies first. The payment's event is never lost, but an open transaction can delay
 * it. So watchers are notified of both. After the listening connection was lost, watchers are notified as if everything had
 * changed.
 */
export class AccountChanges {
  readonly #pauseMs: number
  readonly #watched = new Map<string, Watched>()
  readonly #unlisten: (() => void)[]

  constructor({ sql, pauseMs = PAUSE_MS }: AccountChangesOptions) {
    this.#pauseMs = pauseMs
    this.#unlisten = [
      listenForEvents(sql, {
        // Only hints about payments can be lost: other changes send their notification in their own transaction.
        onAdded: (accountId) => this.#add(accountId, ['payments', 'activity']),
        // Both channels share a connection. The channel below starts to listen last, so its `onStart` covers both.
        onStart: () => undefined,
      }),
      listenForChanges(sql, {
        onChange: (accountId, change) => this.#add(accountId, [change]),
        onStart: () => {
          for (const accountId of this.#watched.keys()) this.#add(accountId, CHANGES)
        },
      }),
    ]
  }

  /** Reports every change from now on. Returns a function that ends the watch. */
  watch(accountId: string, watcher: Watcher): () => void {
    const watched = this.#watched.get(accountId) ?? { watchers: new Set(), pending: new Set(), timer: undefined }
    this.#watched.set(accountId, watched)
    watched.watchers.add(watcher)
    return () => {
      watched.watchers.delete(watcher)
      if (watched.watchers.size > 0) return
      clearTimeout(watched.timer)
      if (this.#watched.get(accountId) === watched) this.#watched.delete(accountId)
    }
  }

  /** Reports the first change after MOMENT_MS. Changes during the PAUSE_MS that follows are reported together. */
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

  close(): void {
    for (const unlisten of this.#unlisten) unlisten()
    for (const { timer } of this.#watched.values()) clearTimeout(timer)
    this.#watched.clear()
  }
}
