import { rateLimited } from '../problems.ts'
import type { Sql } from '../store/db.ts'
import { countOpen } from '../store/payments.ts'

const COUNT_EVERY_MS = 1_000
/** Some are paid before they expire: worth another try long before the first one's end. */
const LONGEST_WAIT_SECONDS = 60

type Count = { open: number; nextEndSeconds: number; countedAtMs: number }

/**
 * How many challenges of a node can be unpaid at a time. Counted in the store once a second for each node that is asked for challenges,
 * and our own creations are added in between. So the limit can be passed by what is being created while it is counted, and by what other
 * processes create within a second.
 */
export class OpenChallenges {
  readonly #sql: Sql
  readonly #max: number
  readonly #counts = new Map<string, Promise<Count>>()

  constructor(sql: Sql, max: number) {
    this.#sql = sql
    this.#max = max
  }

  /** Throws when the node has as many as it may have. */
  async admit(nodeId: string): Promise<void> {
    if (this.#max === 0) return
    const count = await this.#countOf(nodeId)
    if (count.open >= this.#max)
      throw rateLimited(this.#max, Math.min(count.nextEndSeconds, LONGEST_WAIT_SECONDS), 'open_challenges')
    count.open++
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
