import { pause } from '../../waiting.ts'
import { isRunning, type Owner, thisProcess } from './owner.ts'
import type { PurchaseStore } from './store.ts'

const FIRST_PAUSE_MS = 20
const LONGEST_PAUSE_MS = 500
const HEARTBEAT_MS = 10_000
/** An owner on another machine that has not changed its lock for this long is taken for dead. */
const SILENCE_MS = 60_000

type Entry = Owner & { beat: number; isReleased?: boolean }

/** The tokens of locks that this process has released, although the store could not be told yet. */
const released = new Set<string>()

export type Lock = {
  /** Whether the lock had to be waited for. */
  readonly isAfterOther: boolean
  /** False if another process has taken this one for dead. */
  isHeld(): Promise<boolean>
  /** Never throws: it comes after a payment, and what was bought must be delivered. Until the store works again, only this process knows. */
  release(): Promise<void>
  /**
   * Deletes the entry, and with it the number. Call it before `release`, when nothing is left that the lock is for. A process that has waited
   * too long may then get a higher number than the next holder, who learns it from `isHeld` before it pays.
   */
  remove(): Promise<void>
}

/**
 * Each holder creates the entry with the next number, and only the highest number counts. So a dead owner's lock is never deleted and created
 * again, which two processes could do to each other: it is surpassed, and `add` lets only one process do that. A released lock stays, marked
 * as such, because it carries the number.
 */
export async function acquireLock(store: PurchaseStore, key: string, signal: AbortSignal): Promise<Lock> {
  const prefix = `lock.${key}.`
  const numbers = async (): Promise<number[]> =>
    (await store.list(prefix)).map((name) => Number(name.slice(prefix.length))).sort((one, other) => one - other)
  const nameOf = (number: number): string => `${prefix}${String(number).padStart(8, '0')}`
  const owner = await thisProcess()
  const watch = new Watch()
  let isAfterOther = false

  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2)) {
    const last = (await numbers()).at(-1) ?? 0
    const holder = last === 0 ? undefined : entryIn(await store.get(nameOf(last)))
    if (holder && !holder.isReleased && !released.has(holder.token) && !(await watch.isGone(holder))) {
      isAfterOther = true
      await pause(pauseMs, signal)
      continue
    }
    const number = last + 1
    const entry: Entry = { ...owner, beat: 0 }
    if (!(await store.add(nameOf(number), JSON.stringify(entry)))) continue
    const all = await numbers()
    if (all.at(-1) !== number) {
      // This process was slow: the number had been used and removed.
      await store.delete(nameOf(number))
      continue
    }
    for (const old of all.slice(0, -1)) await store.delete(nameOf(old))
    return held(store, nameOf(number), entry, isAfterOther, async () => (await numbers()).at(-1) === number)
  }
}

function held(store: PurchaseStore, name: string, entry: Entry, isAfterOther: boolean, isHeld: () => Promise<boolean>): Lock {
  let current = entry
  let writing: Promise<unknown> = Promise.resolve()
  const write = (next: Entry): Promise<unknown> => {
    current = next
    writing = writing.then(() => store.set(name, JSON.stringify(next)))
    return writing
  }
  const beat = (): Promise<unknown> => write({ ...current, beat: current.beat + 1 })
  const tellReleased = async (): Promise<void> => {
    if (await isHeld()) await write({ ...current, isReleased: true })
    else await store.delete(name)
    clearInterval(timer)
    released.delete(entry.token)
  }
  const timer = setInterval(
    () =>
      void (released.has(entry.token) ? tellReleased() : beat()).catch(() => {
        // The next one may succeed. Otherwise another machine takes over, and `isHeld` says so.
        writing = Promise.resolve()
      }),
    HEARTBEAT_MS,
  )
  ;(timer as { unref?: () => void }).unref?.()
  return {
    isAfterOther,
    isHeld,
    remove: () => store.delete(name),
    release: async () => {
      await writing.catch(() => undefined)
      writing = Promise.resolve()
      released.add(entry.token)
      await tellReleased().catch(() => {
        writing = Promise.resolve()
      })
    },
  }
}

/** Watches a holder. Its clock may be wrong, so its changes are timed by our own. */
class Watch {
  #seen = ''
  #sinceMs = 0

  async isGone(holder: Entry): Promise<boolean> {
    const running = await isRunning(holder)
    if (running !== undefined) return !running
    const now = `${holder.token} ${holder.beat}`
    if (now !== this.#seen) {
      this.#seen = now
      this.#sinceMs = performance.now()
    }
    return performance.now() - this.#sinceMs > SILENCE_MS
  }
}

/** A text that is not an entry counts as none: no process of ours writes one. */
function entryIn(text: string | undefined): Entry | undefined {
  try {
    const value: unknown = JSON.parse(text ?? '')
    return typeof value === 'object' && value !== null && 'token' in value ? (value as Entry) : undefined
  } catch {
    return undefined
  }
}
