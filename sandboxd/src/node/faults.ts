import { once, setMaxListeners } from 'node:events'

export const SLOW_MS = 10_000

/** Switches that a restart clears, because they simulate faults of this process. Network conditions are in the ledger. */
export class Faults {
  answers: 'normal' | 'slow' | 'hang' = 'normal'
  /** lose: a payment that is refused immediately gets no response, as happens in phoenixd with concurrent refusals. */
  payments: { mode: 'normal' } | { mode: 'hold' } | { mode: 'lose' } | { mode: 'fail'; reason: string } = { mode: 'normal' }
  explorer: 'up' | 'down' = 'up'
  /** States of additional channels without a balance: a refused opening leaves an `Aborted` one until the restart. */
  otherChannels: readonly string[] = []
  readonly #changed = new EventTarget()

  constructor() {
    // A thousand held payments mean a thousand listeners, which is not a leak.
    setMaxListeners(0, this.#changed)
  }

  set(change: Partial<Pick<Faults, 'answers' | 'payments' | 'explorer' | 'otherChannels'>>): void {
    Object.assign(this, change)
    this.wake()
  }

  /** Must be called after a change of anything that a condition passed to `until` reads. */
  wake(): void {
    this.#changed.dispatchEvent(new Event('change'))
  }

  async until(holds: () => boolean): Promise<void> {
    while (!holds()) await once(this.#changed, 'change')
  }
}
