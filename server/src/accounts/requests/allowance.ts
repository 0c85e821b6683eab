/** After a quiet minute, this many requests of an account are logged at once; then so many per second. In a week, that is 6 million rows. */
const BURST = 600
const PER_SECOND = 10
const MOST_ACCOUNTS = 10_000

/** How much of each account's traffic is logged by this process. Errors have an allowance of their own: they are what people look for. */
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
