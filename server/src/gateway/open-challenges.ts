import { rateLimited } from '../problems.ts'
import type { Sql } from '../store/db.ts'
import { countOpen } from '../store/payments/payments.ts'

const COUNT_EVERY_MS = 1_000
/** Some are paid before they expire: worth another try long before the first one's end. */
const LONGEST_WAIT_SECONDS = 60

type Count = { open: number; nextEndSeconds: number; countedAtMs: number }

/**
 * How many challenges of a node can be unpaid at a time. Counted in the store once a second for each node that is asked for challenges;
 * our own are added in between, and those under way always, because a node may need seconds for an invoice. So the limit can be passed
 * only by what other processes have under way or created within the last second.
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

  /** Throws when the node has as many as it may have. What it gives is called when the creation is over, however it ended. */
  async enter(nodeId: string): Promise<() => void> {
    if (this.#max === 0) return () => undefined
    const { open, nextEndSeconds } = await this.#countOf(nodeId)
    const underWay = this.#underWay.get(nodeId) ?? 0
    if (open + underWay >= this.#max)
      throw rateLimited(this.#max, Math.min(nextEndSeconds, LONGEST_WAIT_SECONDS), 'open_challenges')
    this.#underWay.set(nodeId, underWay + 1)
    return () => this.#leave(nodeId)
  }

  /** Added to the last count, which may have it already or may never get it: for a second one too many rather than one too few. */
  #leave(nodeId: string): void {
    const left = (this.#underWay.get(nodeId) ?? 0) - 1
    if (left > 0) this.#underWay.set(nodeId, left)
    else this.#underWay.delete(nodeId)
    this.#counts.get(nodeId)?.then(
      (count) => count.open++,
      () => undefined,
    )
  }

  /** One statement for all who ask at once. */
  async #countOf(nodeId: string): Promise<Count> {
    const known = this.#counts.get(nodeId)
    if (known && performance.now() < (await known).countedAtMs + COUNT_EVERY_MS) return known
    // Another may have begun to count while we looked.
    const present = this.#counts.get(nodeId)
    if (present && present !== known) return present
    const counting = countOpen(this.#sql, nodeId, this.#max).then((count) => ({ ...count, countedAtMs: performance.now() }))
    this.#counts.set(nodeId, counting)
    // A count that failed tells nothing about the next.
    counting.catch(() => this.#counts.delete(nodeId))
    return counting
  }
}
