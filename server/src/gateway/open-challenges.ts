import { rateLimited } from '../problems.ts'
import type { Sql } from '../store/db.ts'
import { countOpen } from '../store/payments/payments.ts'

const COUNT_EVERY_MS = 1_000
/** Some challenges are paid before they expire, so a retry is worthwhile long before the first one expires. */
const LONGEST_WAIT_SECONDS = 60

type Count = { open: number; nextEndSeconds: number; countedAtMs: number }

/**
 * Limits the unpaid challenges of a node. They are counted in the store once a second for each active node. Until the next count,
 * challenges that this process creates are added, even while they are being created, because a node may take seconds to create an
 * invoice. So only challenges that other processes are creating, or have created within the last second, can exceed the limit.
 */
export class OpenChallenges {
  readonly #sql: Sql
  readonly #max: number
  readonly #counts = new Map<string, Promise<Count>>()
  readonly #underWay = new Map<string, number>()

  constructor(sql: Sql, max: number) {
    this.#sql = sql
    this.#max = max
  }

  /** Throws if the node is at its limit. Call the returned function when the creation has ended, whether or not it succeeded. */
  async enter(nodeId: string): Promise<() => void> {
    if (this.#max === 0) return () => undefined
    const { open, nextEndSeconds } = await this.#countOf(nodeId)
    const underWay = this.#underWay.get(nodeId) ?? 0
    if (open + underWay >= this.#max)
      throw rateLimited(this.#max, Math.min(nextEndSeconds, LONGEST_WAIT_SECONDS), 'open_challenges')
    this.#underWay.set(nodeId, underWay + 1)
    return () => this.#leave(nodeId)
  }

  /** Counts the creation even if it failed or the last count includes it: for up to a second, one too many is better than one too few. */
  #leave(nodeId: string): void {
    const left = (this.#underWay.get(nodeId) ?? 0) - 1
    if (left > 0) this.#underWay.set(nodeId, left)
    else this.#underWay.delete(nodeId)
    this.#counts.get(nodeId)?.then(
      (count) => count.open++,
      () => undefined,
    )
  }

  /** Concurrent callers share one statement. */
  async #countOf(nodeId: string): Promise<Count> {
    const known = this.#counts.get(nodeId)
    if (known && performance.now() < (await known).countedAtMs + COUNT_EVERY_MS) return known
    // Another caller may have started a count meanwhile.
    const present = this.#counts.get(nodeId)
    if (present && present !== known) return present
    const counting = countOpen(this.#sql, nodeId, this.#max).then((count) => ({ ...count, countedAtMs: performance.now() }))
    this.#counts.set(nodeId, counting)
    // A failed count must not be cached.
    counting.catch(() => this.#counts.delete(nodeId))
    return counting
  }
}
