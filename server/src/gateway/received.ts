import { Problem } from '../problems.ts'
import { type ReceivedByNodeRow, type ReceivedRow, receivedByNode, receivedIn } from '../store/payments/settled.ts'
import type { SlowReads } from '../store/slow-reads.ts'

const DAY_SECONDS = 86_400
/** Includes the previous period, for comparison, and one more day, because a day of the reader's calendar may have 25 hours. */
const daysFor = (days: number): number => 2 * days + 1
/** A month and the one before it, in any time zone. */
const MOST_DAYS = 63
const DAYS_BY_NODE = 30
/** Results are kept, because the sums by node read every payment of a month. */
const KEPT_MS = 60_000
const MOST_KEPT = 1_000

type Call = { accountId: string }
type Period = { days?: string | undefined; from?: number | undefined; to?: number | undefined }
type Kept = { untilMs: number; answer: Promise<ReceivedByNodeRow> }

/** What nodes have received: gateway payments, and other payments that the nodes have listed. */
export class Received {
  readonly #slowReads: SlowReads
  readonly #byNode = new Map<string, Kept>()

  constructor({ slowReads }: { slowReads: SlowReads }) {
    this.#slowReads = slowReads
  }

  async overTime({ accountId }: Call, { nodeId, ...period }: Period & { nodeId?: string | undefined }): Promise<ReceivedRow> {
    const range = rangeOf(period)
    return this.#slowReads.run(accountId, (sql) => receivedIn(sql, accountId, { ...range, nodeId }))
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

function rangeOf({ days, from, to }: Period): { from: number; to: number } {
  if (days !== undefined && from === undefined && to === undefined) {
    const now = Math.ceil(Date.now() / 1000)
    // The clock of the database may be ahead of ours.
    return { from: now - daysFor(Number(days)) * DAY_SECONDS, to: now + DAY_SECONDS }
  }
  if (days !== undefined || from === undefined || to === undefined)
    throw new Problem('bad_request', 'Pass either "days", or "from" and "to".')
  if (to <= from || to - from > MOST_DAYS * DAY_SECONDS)
    throw new Problem('bad_request', `"to" must be later than "from", by at most ${MOST_DAYS} days.`)
  return { from, to }
}
