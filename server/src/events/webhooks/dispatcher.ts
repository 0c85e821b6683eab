import { crashpoint } from '../../platform/crashpoint.ts'
import type { Logger } from '../../platform/log.ts'
import type { MasterKey } from '../../platform/secrets.ts'
import { isStoreDown } from '../../platform/store-down.ts'
import type { Database } from '../../store/db.ts'
import {
  type Attempt,
  type ClaimedDelivery,
  claimDeliveries,
  listenForDeliveries,
  nextAttemptInMs,
  recordFailure,
  recordSuccess,
} from '../../store/events/deliveries.ts'
import type { AddressGuard } from './address-guard.ts'
import { requestOf } from './request.ts'
import { DISABLE_AFTER_SECONDS, retryDelaySeconds } from './schedule.ts'
import { sendOnce, TIMEOUT_MS } from './sender.ts'

/** Longer than an attempt can take, even if recording its result takes a while. */
const LEASE_SECONDS = 2 * (TIMEOUT_MS / 1000)
const MOST_IN_FLIGHT = 500
const CLAIMED_AT_ONCE = 50
/** Finds deliveries whose notification was lost, or whose lease was held by a process that died. */
const SWEEP_MS = 15_000
/** How long a receiver may take to respond once the service is stopping. */
const STOP_TIMEOUT_MS = 3_000

export type DispatcherOptions = { sql: Database; masterKeys: readonly MasterKey[]; guard: AddressGuard; log: Logger }

/** Makes the attempts that are due. It runs in every process; the lease makes sure that only one of them makes an attempt. */
export class Dispatcher {
  readonly #options: DispatcherOptions
  readonly #unlisten: () => void
  readonly #running: Promise<void>
  readonly #inFlight = new Set<Promise<void>>()
  readonly #stop = new AbortController()
  #isClosed = false
  #isDue = false
  #wake: () => void = () => undefined

  constructor(options: DispatcherOptions) {
    this.#options = options
    this.#unlisten = listenForDeliveries(options.sql, () => this.#lookAgain())
    this.#running = this.#run()
  }

  #lookAgain(): void {
    this.#isDue = true
    this.#wake()
  }

  async #run(): Promise<void> {
    while (!this.#isClosed) {
      let restMs = SWEEP_MS
      this.#isDue = false
      try {
        restMs = Math.min(restMs, await this.#pass())
      } catch (error) {
        // Nothing is lost: a delivery is due until its result is recorded.
        if (!isStoreDown(error)) this.#options.log.warn({ err: error }, 'cannot look for webhook deliveries; will retry')
      }
      await this.#rest(restMs)
    }
  }

  /** Begins every attempt that may begin now. Returns how long to wait before the next pass. */
  async #pass(): Promise<number> {
    const { sql } = this.#options
    while (!this.#isClosed) {
      const room = Math.min(MOST_IN_FLIGHT - this.#inFlight.size, CLAIMED_AT_ONCE)
      const waitMs = room === 0 ? null : await nextAttemptInMs(sql)
      if (waitMs === null) break
      if (waitMs > 0) return waitMs
      const claimed = await claimDeliveries(sql, room, LEASE_SECONDS)
      // Another process was faster.
      if (claimed.length === 0) break
      for (const delivery of claimed) this.#begin(delivery)
    }
    return SWEEP_MS
  }

  #begin(delivery: ClaimedDelivery): void {
    const attempt = this.#attempt(delivery)
      .catch((error: unknown) => {
        const { webhookId, event } = delivery
        // The lease ends, and then there is another attempt.
        if (!isStoreDown(error) && !this.#stop.signal.aborted)
          this.#options.log.warn(
            { err: error, webhookId, eventId: event.id },
            'a webhook attempt ended without a recorded result; will retry',
          )
      })
      .finally(() => {
        this.#inFlight.delete(attempt)
        this.#lookAgain()
      })
    this.#inFlight.add(attempt)
  }

  async #attempt(delivery: ClaimedDelivery): Promise<void> {
    const { sql, masterKeys, guard, log } = this.#options
    const { webhookId, accountId, nowSeconds, tries, event } = delivery
    crashpoint('webhook: claimed')
    const result = await sendOnce(guard, requestOf(masterKeys, delivery, { ...event, accountId }), this.#stop.signal)
    crashpoint('webhook: sent')
    const { status, durationMs, response, error } = result
    const attempt: Attempt = { at: nowSeconds, status, durationMs, response, error }
    if (result.isSuccess) {
      await recordSuccess(sql, delivery, attempt)
      crashpoint('webhook: delivered')
      return
    }
    const isDisabled = await recordFailure(sql, delivery, attempt, {
      retryInSeconds: retryDelaySeconds(tries + 1, result.retryAfterSeconds),
      isGone: result.isGone,
      disableAfterSeconds: DISABLE_AFTER_SECONDS,
    })
    crashpoint('webhook: failed')
    if (isDisabled) log.info({ webhookId, accountId, status }, 'webhook disabled')
  }

  async #rest(ms: number): Promise<void> {
    if (this.#isClosed || this.#isDue) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms)
      timer.unref()
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    this.#wake = () => undefined
  }

  /** Waits a while for the attempts being made. Those that are cut off are made again, by another process or after the next start. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#unlisten()
    this.#wake()
    await this.#running
    const timer = setTimeout(() => this.#stop.abort(), STOP_TIMEOUT_MS)
    await Promise.all(this.#inFlight)
    clearTimeout(timer)
  }
}
