import { crashpoint } from '../platform/crashpoint.ts'
import type { Logger } from '../platform/log.ts'
import { isStoreDown } from '../platform/store-down.ts'
import { listenForChanges } from '../store/changes.ts'
import type { Database } from '../store/db.ts'
import { adoptMovedEvents, isOutboxEmpty, sequenceEvents } from '../store/events/outbox.ts'

const AT_ONCE = 1_000
/** Collects the notifications of one transaction, which arrive one after the other. */
const MOMENT_MS = 20
/** The pause between passes while an open transaction holds events back. */
const RETRY_MS = 250
/** Finds the events of a process that died before it sent its notification. */
const SWEEP_MS = 15_000

/**
 * Numbers new events. It runs in every process, and whichever is first does the work. Notifications make it quick; the sweep makes sure that
 * no event is forgotten.
 */
export class Sequencer {
  readonly #sql: Database
  readonly #log: Logger
  readonly #unlisten: () => void
  readonly #running: Promise<void>
  #isClosed = false
  #isDue = false
  #wake: () => void = () => undefined

  constructor({ sql, log }: { sql: Database; log: Logger }) {
    this.#sql = sql
    this.#log = log
    const onChange = (): void => {
      // Later notifications do not restart the timer: an endless burst of them would postpone the pass forever.
      if (this.#isDue) return
      this.#isDue = true
      this.#wake()
    }
    this.#unlisten = listenForChanges(sql, { onChange, onStart: onChange })
    this.#running = this.#run()
  }

  async #run(): Promise<void> {
    let hasAdopted = false
    while (!this.#isClosed) {
      let restMs = SWEEP_MS
      this.#isDue = false
      try {
        if (!hasAdopted) await adoptMovedEvents(this.#sql)
        hasAdopted = true
        if (await this.#pass()) restMs = RETRY_MS
      } catch (error) {
        // Nothing is lost: events stay in the outbox until they have a number.
        if (!isStoreDown(error)) this.#log.warn({ err: error }, 'cannot add events to the feed; will retry')
      }
      await this.#rest(restMs)
    }
  }

  /** True if events are held back. */
  async #pass(): Promise<boolean> {
    if (await isOutboxEmpty(this.#sql)) return false
    while (!this.#isClosed) {
      const { count, hasMore } = await sequenceEvents(this.#sql, AT_ONCE)
      if (count > 0) crashpoint('events: numbered')
      if (!hasMore) return false
      if (count === 0) return true
    }
    return false
  }

  async #rest(ms: number): Promise<void> {
    if (this.#isClosed) return
    await new Promise<void>((resolve) => {
      let timer = setTimeout(resolve, this.#isDue ? MOMENT_MS : ms)
      timer.unref()
      this.#wake = () => {
        clearTimeout(timer)
        timer = setTimeout(resolve, this.#isClosed ? 0 : MOMENT_MS)
      }
    })
    this.#wake = () => undefined
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#unlisten()
    this.#wake()
    await this.#running
  }
}
