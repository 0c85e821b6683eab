import type { Boltyard } from '../../boltyard.ts'
import { BoltyardError, CredentialError, ExpiredError } from '../../errors.ts'
import { pause } from '../../waiting.ts'
import { type Speaker, warn } from '../trouble.ts'
import { type ClaimedDelivery, Confirmations } from './confirmations.ts'

const ATTEMPT_MS = 5_000
const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 15_000
/** Bounds the memory that visitors can use up while the gateway is unreachable. Claims beyond the limit are not released, but lapse. */
const MOST_RELEASING = 1_000
const LONGEST_REASON = 200
/** When to check whether a claim must be kept, as fractions of the hold. The first two leave time to retry a confirmation. */
const LOOKS = [0.75, 0.875, 1]

/** A worker's `waitUntil`: keeps work alive after the response, when the runtime would otherwise stop it. */
export type WaitUntil = (work: Promise<unknown>) => void

/** Tracks claimed payments until they are confirmed or released. If this process dies, they lapse. */
export class Claims {
  readonly #client: Boltyard
  readonly #holdMs: number
  readonly #speaker: Speaker
  readonly #confirmations: Confirmations
  readonly #releasing = new Map<string, Promise<boolean>>()

  constructor(client: Boltyard, holdSeconds: number, speaker: Speaker = 'paywall') {
    this.#client = client
    this.#holdMs = holdSeconds * 1000
    this.#speaker = speaker
    this.#confirmations = new Confirmations(client, speaker)
  }

  /** Starts a delivery, which ends with `confirm` or `fail`. */
  begin(): void {
    this.#confirmations.begin()
  }

  /**
   * Before the hold ends, confirms a delivery whose claim must not lapse. If it fails later, the payment is still released. Returns a
   * function that stops the timers.
   */
  keep(delivery: ClaimedDelivery, mustBeKept: () => boolean, waitUntil?: WaitUntil): () => void {
    const look = (): void => {
      if (!mustBeKept()) return
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

  release({ id, requestId }: ClaimedDelivery, reason: string, waitUntil?: WaitUntil): void {
    const releasing = this.#track(id, () => this.#release(async () => id, requestId, reason))
    waitUntil?.(releasing)
  }

  /**
   * Releases a claim that the gateway may have made although the redemption got no response. `findId` asks the gateway for the
   * payment's id. The gateway may still be at work on the redemption, so what it has not claimed yet is released again after
   * `claimableMs`. A returning customer does not wait for that.
   */
  async releaseLost(
    { key, requestId, findId }: { key: string; requestId: string; findId: () => Promise<string> },
    reason: string,
    claimableMs: number,
  ): Promise<void> {
    const release = (): Promise<boolean> => this.#track(key, () => this.#release(findId, requestId, reason))
    if (await release()) return
    await pause(claimableMs, undefined, true)
    await release()
  }

  async #track(key: string, work: () => Promise<boolean>): Promise<boolean> {
    if (this.#releasing.size >= MOST_RELEASING) return true
    const releasing = work().finally(() => {
      if (this.#releasing.get(key) === releasing) this.#releasing.delete(key)
    })
    this.#releasing.set(key, releasing)
    return releasing
  }

  /** Resolves when the gateway knows the outcome of an earlier delivery by this process, or when it turns out to be unreachable. */
  settling(paymentId: string): Promise<unknown> | undefined {
    return this.#releasing.get(paymentId) ?? this.#confirmations.confirming(paymentId)
  }

  /** Resolves when the gateway knows the outcome of every delivery that has ended, or when it turns out to be unreachable. */
  async settled(): Promise<void> {
    await Promise.all([this.#confirmations.flushAll(), ...this.#releasing.values()])
  }

  /** Never rejects. False if nothing was claimed. Gives up at the end of the hold, when the claim lapses anyway. */
  async #release(findId: () => Promise<string>, requestId: string, reason: string): Promise<boolean> {
    const end = Date.now() + this.#holdMs
    // The service would reject a reason with invisible characters, and with it the release.
    const text =
      [...reason.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]+/gu, ' ')].slice(0, LONGEST_REASON).join('') || 'not delivered'
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
      try {
        await this.#client.payments.release(await findId(), { requestId, reason: text }, { timeoutMs: ATTEMPT_MS })
        return true
      } catch (error) {
        const { code, status, message } =
          error instanceof BoltyardError ? error : { code: 'unexpected', status: undefined, message: String(error) }
        // The delivery was never claimed, or was released too often. A retry would not help.
        if (status === 409) return code !== 'not_claimed'
        // The id of the payment was not found out, because the payment does not count as paid. So nothing is claimed yet.
        if (error instanceof CredentialError || error instanceof ExpiredError) return false
        warn(
          `not_released ${code}`,
          `A failed delivery could not be released, so its customer cannot use the payment again yet. ${message}`,
          this.#speaker,
        )
        if (status === 400 || status === 404 || Date.now() + pauseMs > end) return true
      }
      // An unreleased claim lapses anyway, so an unreachable gateway must not keep the process alive.
      await pause(pauseMs, undefined, true)
    }
  }
}
