import { hash } from 'node:crypto'
import type { PaidRow } from '../store/payments/payments.ts'

/** At least so many are remembered, at most twice as many. */
const FEWEST = 10_000
/** A verdict on a credential with an end: after that long the database's clock is asked again, in case that was set meanwhile. */
const LONGEST_MS = 60_000

/** Both clocks of this process: one can be set, the other stands still while the machine sleeps. */
type Moment = { wallMs: number; steadyMs: number }
export const thisMoment = (): Moment => ({ wallMs: Date.now(), steadyMs: performance.now() })

/** How long a verdict holds, counted from a moment before the database told its time. */
export type Life = { since: Moment; forMs: number }

type Verdict = { paid: PaidRow; until: Moment | undefined }

/**
 * What is paid stays paid, with the same receipt, and a merchant may ask again as often as its customer comes back: what one credential
 * was told once it can be told again without judging it and without the store, until its own end.
 */
export class VerifiedCache {
  // Two generations: taking the oldest out of one map, one by one, makes the map walk over the gaps each time.
  #recent = new Map<string, Verdict>()
  #older = new Map<string, Verdict>()

  get(key: string): PaidRow | undefined {
    const verdict = this.#recent.get(key) ?? this.#older.get(key)
    return verdict && isOver(verdict) ? undefined : verdict?.paid
  }

  /** Without a life it never lapses. */
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

/** Every byte of it, and nothing that whoever reads our memory could present. */
export function verifiedKeyOf({ accountId }: { accountId: string }, id: string, credential: string): string {
  return hash('sha256', `${accountId} ${id} ${credential}`, 'base64')
}
