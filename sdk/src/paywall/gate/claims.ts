import type { Boltyard } from '../../boltyard.ts'
import { BoltyardError } from '../../errors.ts'
import { pause } from '../../waiting.ts'
import { warn } from '../trouble.ts'
import { type ClaimedDelivery, Confirmations } from './confirmations.ts'

const ATTEMPT_MS = 5_000
const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 15_000
/** Strangers decide how many there are while the gateway is away. The others lapse. */
const MOST_RELEASING = 1_000
const LONGEST_REASON = 200
/** Shares of the hold, with time left to say it again. */
const LOOKS = [0.75, 0.875, 1]

/** Keeps a request's work alive after its answer, where the runtime would stop it: a worker's `waitUntil`. */
export type WaitUntil = (work: Promise<unknown>) => void

/** What becomes of a claimed payment: confirmed, given back, or, if this process dies, lapsed. */
export class Claims {
  readonly #client: Boltyard
  readonly #holdMs: number
  readonly #confirmations: Confirmations
  readonly #releasing = new Map<string, Promise<void>>()

  constructor(client: Boltyard, holdSeconds: number) {
    this.#client = client
    this.#holdMs = holdSeconds * 1000
    this.#confirmations = new Confirmations(client)
  }

  /** A delivery begins. It ends with `confirm` or `fail`. */
  begin(): void {
    this.#confirmations.begin()
  }

  /**
   * An answer that has begun and outlasts its hold is confirmed meanwhile: else whoever reads slowly would be served again, at the same
   * price, as often as the hold lapses. If the shop breaks it off, it is released all the same. Gives how to stop looking.
   */
  keep(delivery: ClaimedDelivery, hasBegun: () => boolean, waitUntil?: WaitUntil): () => void {
    const look = (): void => {
      if (!hasBegun()) return
      stop()
      this.#confirm(delivery, waitUntil)
    }
    const timers = LOOKS.map((share) => setTimeout(look, share * this.#holdMs))
    for (const timer of timers) (timer as { unref?: () => void }).unref?.()
    const stop = (): void => timers.forEach(clearTimeout)
    return stop
  }

  confirm(delivery: ClaimedDelivery, waitUntil?: WaitUntil): void {
    this.#confirm(delivery, waitUntil)
    this.#confirmations.end()
  }

  #confirm(delivery: ClaimedDelivery, waitUntil: WaitUntil | undefined): void {
    if (waitUntil) waitUntil(this.#confirmations.confirmNow(delivery))
    else this.#confirmations.add(delivery)
  }

  fail(delivery: ClaimedDelivery, reason: string, waitUntil?: WaitUntil): void {
    this.release(delivery, reason, waitUntil)
    this.#confirmations.end()
  }

  release(delivery: ClaimedDelivery, reason: string, waitUntil?: WaitUntil): void {
    if (this.#releasing.size >= MOST_RELEASING) return
    const releasing = this.#release(delivery, reason).finally(() => {
      if (this.#releasing.get(delivery.id) === releasing) this.#releasing.delete(delivery.id)
    })
    this.#releasing.set(delivery.id, releasing)
    waitUntil?.(releasing)
  }

  /** Ends when the gateway knows how an earlier delivery of this process has ended, as far as it can be told. */
  settling(paymentId: string): Promise<void> | undefined {
    return this.#releasing.get(paymentId) ?? this.#confirmations.confirming(paymentId)
  }

  /** Never rejects. After the hold there is nothing left to give back. */
  async #release({ id, requestId }: ClaimedDelivery, reason: string): Promise<void> {
    const end = Date.now() + this.#holdMs
    // The service refuses what cannot be seen, and with it the release.
    const text =
      [...reason.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]+/gu, ' ')].slice(0, LONGEST_REASON).join('') || 'not delivered'
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
      try {
        await this.#client.payments.release(id, { requestId, reason: text }, { timeoutMs: ATTEMPT_MS })
        return
      } catch (error) {
        const { code, status, message } =
          error instanceof BoltyardError ? error : { code: 'unexpected', status: undefined, message: String(error) }
        // Never claimed, or released too often: repeating it changes nothing.
        if (status === 409) return
        warn(`not_released ${code}`, `A failed delivery could not be given back to its customer. ${message}`)
        if (status === 400 || status === 404 || Date.now() + pauseMs > end) return
      }
      // What is not given back lapses: a gateway that is away must not keep a program from ending.
      await pause(pauseMs, undefined, true)
    }
  }
}
