import { type ReceivedByNodeRow, type ReceivedRow, receivedByNode, receivedLately } from '../store/payments/settled.ts'
import type { SlowReads } from '../store/slow-reads.ts'

/** The period before, for comparison, and a day more: the reader's days begin up to a day earlier than ours. */
const daysFor = (days: number): number => 2 * days + 1
const DAYS_BY_NODE = 30
/** The sums by node read every payment of a month. */
const KEPT_MS = 60_000
const MOST_KEPT = 1_000

type Call = { accountId: string }
type Kept = { untilMs: number; answer: Promise<ReceivedByNodeRow> }

/** What nodes have received: payments of the gateway, and what each node has listed beside them. */
export class Received {
  readonly #slowReads: SlowReads
  readonly #byNode = new Map<string, Kept>()

  constructor({ slowReads }: { slowReads: SlowReads }) {
    this.#slowReads = slowReads
  }

  lately({ accountId }: Call, { days, nodeId }: { days: number; nodeId?: string | undefined }): Promise<ReceivedRow> {
    return this.#slowReads.run(accountId, (sql) => receivedLately(sql, accountId, { days: daysFor(days), nodeId }))
  }

  /** Up to a minute old. `now` says when the sums were taken. */
  byNode({ accountId }: Call): Promise<ReceivedByNodeRow> {
    const nowMs = performance.now()
    const kept = this.#byNode.get(accountId)
    if (kept && kept.untilMs > nowMs) return kept.answer
    const answer = this.#slowReads.run(accountId, (sql) => receivedByNode(sql, accountId, DAYS_BY_NODE))
    this.#byNode.delete(accountId)
    this.#byNode.set(accountId, { untilMs: nowMs + KEPT_MS, answer })
    for (const oldest of this.#byNode.keys()) {
      if (this.#byNode.size <= MOST_KEPT) break
      this.#byNode.delete(oldest)
    }
    answer.catch(() => this.#byNode.delete(accountId))
    return answer
  }
}
