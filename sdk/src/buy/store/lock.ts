import { pause } from '../../waiting.ts'
import { isRunning, type Owner, thisProcess } from './owner.ts'
import type { PurchaseStore } from './store.ts'

const FIRST_PAUSE_MS = 20
const LONGEST_PAUSE_MS = 500
const HEARTBEAT_MS = 10_000
/** An owner on another machine that has not changed its lock for this long is assumed to be dead. */
const SILENCE_MS = 60_000

type Entry = Owner & { beat: number; isReleased?: boolean }

/** The tokens of locks that this process has released, although the store could not be told yet. */
const released = new Set<string>()

export type Lock = {
  /** Whether the lock had to be waited for. */
  readonly isAfterOther: boolean
  /** False if another process has assumed that this one is dead. */
  isHeld(): Promise<boolean>
  /** Never throws: it comes after a payment, and what was bought must be delivered. Until the store works again, only this process knows. */
  release(): Promise<void>
  /**
   * Instead of `release`, when nothing is left that the lock is for: deletes the entry, and with it the number. A process that has waited too
   * long may then get a higher number than the next holder, who learns it from `isHeld` before it pays. Never throws either.
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
    const text = last === 0 ? undefined : await store.get(nameOf(last))
    const holder = entryIn(text)
    // If the entry has just been removed, the numbers begin anew: the next one is not ours to take.
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
  // After a failure the next one may succeed. Otherwise another machine takes over, and `isHeld` says so.
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
