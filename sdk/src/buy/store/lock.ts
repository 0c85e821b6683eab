import { pause } from '../../waiting.ts'
import { isRunning, type Owner, thisProcess } from './owner.ts'
import type { PurchaseStore } from './store.ts'

const FIRST_PAUSE_MS = 20
const LONGEST_PAUSE_MS = 500
const HEARTBEAT_MS = 10_000
/** An owner on another machine that has not changed its lock for this long is assumed to be dead. */
const SILENCE_MS = 60_000

type Entry = Owner & { beat: number; isReleased?: boolean }

/** The tokens of locks that this process has released but could not yet mark as released in the store. */
const released = new Set<string>()

export type Lock = {
  /** Whether this call had to wait for the lock. */
  readonly isAfterOther: boolean
  /** False if another process has taken the lock because it assumed that this process is dead. */
  isHeld(): Promise<boolean>
  /**
   * Never throws: it is called after a payment, and what was bought must be delivered. If the store fails, only this process
   * knows of the release until the store works again.
   */
  release(): Promise<void>
  /**
   * Call this instead of `release` once the purchase is deleted. It deletes the lock's entry, so numbering restarts at 1. A slow
   * process may then take a higher number than the new holder. The new holder notices, because it checks `isHeld` before it pays.
   * Never throws.
   */
  remove(): Promise<void>
}

/**
 * Each holder creates the entry with the next number, and only the highest number counts. A dead owner's lock is not deleted and
 * created again, because two processes could delete each other's new lock. Instead, `add` lets exactly one process create the
 * next number. A released lock stays, marked as released, to keep its number.
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
    const text = last === 0 ? undefined : await store.get(nameOf(last))
    const holder = entryIn(text)
    // The entry was just removed, so numbering restarts: list the entries again instead of taking `last + 1`.
    if (last !== 0 && text === undefined) {
      await pause(pauseMs, signal)
      continue
    }
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

function held(store: PurchaseStore, name: string, entry: Entry, isAfterOther: boolean, isHighest: () => Promise<boolean>): Lock {
  let { beat } = entry
  let isEnded = false
  let writing: Promise<unknown> = Promise.resolve()
  // A number may be used again after a removal, but a token never is.
  const isOurs = async (): Promise<boolean> => entryIn(await store.get(name))?.token === entry.token
  const isHeld = async (): Promise<boolean> => !isEnded && (await isHighest()) && (await isOurs())
  const write = (more: Partial<Entry>): Promise<void> => store.set(name, JSON.stringify({ ...entry, beat, ...more }))
  const beatOnce = async (): Promise<void> => {
    if (!(await isHeld())) return
    beat += 1
    await write({})
  }
  const every = (act: () => Promise<unknown>): ReturnType<typeof setInterval> => {
    const timer = setInterval(() => void act(), HEARTBEAT_MS)
    ;(timer as { unref?: () => void }).unref?.()
    return timer
  }
  // After a failure, the next heartbeat may succeed. If none does, another machine takes the lock, and `isHeld` returns false.
  let timer = every(() => {
    writing = writing.then(beatOnce).catch(() => undefined)
    return writing
  })
  const end = async (act: () => Promise<void>): Promise<void> => {
    if (isEnded) return
    clearInterval(timer)
    await writing
    released.add(entry.token)
    try {
      if (await isOurs()) await act()
      isEnded = true
      released.delete(entry.token)
    } catch {
      clearInterval(timer)
      timer = every(release)
    }
  }
  const release = (): Promise<void> => end(() => write({ isReleased: true }))
  return { isAfterOther, isHeld, release, remove: () => end(() => store.delete(name)) }
}

/** Watches a holder. Its clock may be wrong, so its changes are timed by our own clock. */
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

/** Text that is not an entry counts as a missing entry: none of our processes writes such text. */
function entryIn(text: string | undefined): Entry | undefined {
  try {
    const value: unknown = JSON.parse(text ?? '')
    return typeof value === 'object' && value !== null && 'token' in value ? (value as Entry) : undefined
  } catch {
    return undefined
  }
}
