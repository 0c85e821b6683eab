import { hash } from 'node:crypto'
import type { PaidRow } from '../store/payments.ts'

/** At least so many are remembered, at most twice as many. */
const FEWEST = 10_000

/**
 * What is paid stays paid, with the same receipt, and a merchant may ask again as often as its customer comes back: what one credential
 * has once been told it can be told again without judging it and without the store. Only for a protocol whose credentials never lapse.
 */
export class PaidPayments {
  // Two generations: taking the oldest out of one map, one by one, makes the map walk over the gaps each time.
  #recent = new Map<string, PaidRow>()
  #older = new Map<string, PaidRow>()

  get(question: string): PaidRow | undefined {
    return this.#recent.get(question) ?? this.#older.get(question)
  }

  set(question: string, payment: PaidRow): void {
    if (this.#recent.size >= FEWEST) {
      this.#older = this.#recent
      this.#recent = new Map()
    }
    this.#recent.set(question, payment)
  }
}

/** Every byte of it, and nothing that whoever reads our memory could present. */
export function questionOf({ accountId }: { accountId: string }, id: string, credential: string): string {
  return hash('sha256', `${accountId} ${id} ${credential}`, 'base64')
}
