/**
 * Up to BURST requests of an account are logged at once, and PER_SECOND after that. The burst is available again after a quiet
 * minute. In a week, one process logs at most 6 million requests of an account, and as many errors.
 */
const BURST = 600
const PER_SECOND = 10
const MOST_ACCOUNTS = 10_000

/** How many requests of each account this process logs. Errors have a separate allowance, because people look for them most. */
export class Allowance {
  readonly #left = new Map<string, { count: number; atMs: number }>()

  take(accountId: string, isError: boolean, nowMs: number): boolean {
    const name = isError ? `${accountId} errors` : accountId
    let left = this.#left.get(name)
    if (!left) {
      if (this.#left.size >= MOST_ACCOUNTS) this.#left.clear()
      left = { count: BURST, atMs: nowMs }
      this.#left.set(name, left)
    }
    const passedMs = Math.max(0, nowMs - left.atMs)
    left.count = Math.min(BURST, left.count + (passedMs / 1000) * PER_SECOND)
    left.atMs = nowMs
    if (left.count < 1) return false
    left.count--
    return true
  }
}
