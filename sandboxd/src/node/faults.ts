import { once, setMaxListeners } from 'node:events'

export const SLOW_MS = 10_000

/** Switches that a restart clears, because they stand for a fault of this process. What the network does lives in the ledger's conditions. */
export class Faults {
  answers: 'normal' | 'slow' | 'hang' = 'normal'
  /** lose: who is refused at once gets no answer, as happens with phoenixd when several payments are refused at the same time. */
  payments: { mode: 'normal' } | { mode: 'hold' } | { mode: 'lose' } | { mode: 'fail'; reason: string } = { mode: 'normal' }
  explorer: 'up' | 'down' = 'up'
  /** States of channels beside the real one, without a balance: a refused opening leaves an `Aborted` one until the restart. */
  otherChannels: readonly string[] = []
  readonly #changed = new EventTarget()

  constructor() {
    // A thousand held payments are a thousand listeners, not a leak.
    setMaxListeners(0, this.#changed)
  }

  set(change: Partial<Pick<Faults, 'answers' | 'payments' | 'explorer' | 'otherChannels'>>): void {
    Object.assign(this, change)
    this.wake()
  }

  /** Something else that a condition may depend on has changed. */
  wake(): void {
    this.#changed.dispatchEvent(new Event('change'))
  }

  async until(holds: () => boolean): Promise<void> {
    while (!holds()) await once(this.#changed, 'change')
  }
}
