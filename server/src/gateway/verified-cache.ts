import { hash } from 'node:crypto'
import type { PaidRow } from '../store/payments/payments.ts'

/** At least this many entries are kept, and at most twice as many. */
const FEWEST = 10_000
/** For credentials that expire: after this long, check the database's clock again, in case it was adjusted. */
const LONGEST_MS = 60_000

/** Both clocks of this process: the wall clock can be adjusted, and the monotonic clock stops while the machine sleeps. */
type Moment = { wallMs: number; steadyMs: number }
export const thisMoment = (): Moment => ({ wallMs: Date.now(), steadyMs: performance.now() })

/** How long a verdict is valid, counted from just before the database reported its time. */
export type Life = { since: Moment; forMs: number }

type Verdict = { paid: PaidRow; until: Moment | undefined }

/**
 * Caches validated credentials. A paid payment stays paid, with the same receipt, and a shop may validate it each time its customer
 * returns. So the answer for a credential can be repeated without verifying it again and without querying the store, until the credential
 * expires.
 */
export class VerifiedCache {
  // Two generations: deleting the oldest entries of a single map one by one would leave gaps, which the map has to skip each time it looks
  // for the next oldest.
  #recent = new Map<string, Verdict>()
  #older = new Map<string, Verdict>()

  get(key: string): PaidRow | undefined {
    const verdict = this.#recent.get(key) ?? this.#older.get(key)
    return verdict && isOver(verdict) ? undefined : verdict?.paid
  }

  /** Without `life`, the entry does not expire. */
  set(key: string, paid: PaidRow, life?: Life): void {
    if (this.#recent.size >= FEWEST) {
      this.#older = this.#recent
      this.#recent = new Map()
    }
    this.#recent.set(key, { paid, until: life && endOf(life) })
  }
}

function endOf({ since, forMs }: Life): Moment {
  const ms = Math.min(forMs, LONGEST_MS)
  return { wallMs: since.wallMs + ms, steadyMs: since.steadyMs + ms }
}

const isOver = ({ until }: Verdict): boolean =>
  until !== undefined && (Date.now() >= until.wallMs || performance.now() >= until.steadyMs)

/** Hashes the whole credential, so that a memory dump contains nothing that could be presented. */
export function verifiedKeyOf({ accountId }: { accountId: string }, id: string, credential: string): string {
  return hash('sha256', `${accountId} ${id} ${credential}`, 'base64')
}
