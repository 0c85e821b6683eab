import type { Boltyard } from '../../boltyard.ts'
import { type Speaker, warn } from '../trouble.ts'

export type ClaimedDelivery = { id: string; requestId: string }

const FLUSH_MS = 50
const LONGEST_PAUSE_MS = 30_000
const MOST_PER_CALL = 100
/** Bounds the queue while the gateway is unreachable. Deliveries beyond it are not confirmed, and their customers may be served twice. */
const MOST_WAITING = 10_000
const ATTEMPT_MS = 5_000

/** Confirms completed deliveries to the gateway in batches. A claim that is never confirmed lapses. */
export class Confirmations {
  readonly #client: Boltyard
  readonly #speaker: Speaker
  #waiting: ClaimedDelivery[] = []
  #timer: ReturnType<typeof setTimeout> | undefined
  #flushing: Promise<void> | undefined
  readonly #unconfirmed = new Set<string>()
  #pauseMs = FLUSH_MS
  #inProgress = 0

  constructor(client: Boltyard, speaker: Speaker = 'paywall') {
    this.#client = client
    this.#speaker = speaker
  }

  /** Listens for signals, so that pending confirmations are sent before the process exits. Call it before the first byte of a response. */
  begin(): void {
    this.#inProgress++
    flushBeforeExit(this)
  }

  /** Call once for each `begin`. */
  end(): void {
    this.#inProgress--
    this.#rest()
  }

  add(delivery: ClaimedDelivery): void {
    const dropped = this.#waiting.length >= MOST_WAITING ? this.#waiting.shift() : undefined
    if (dropped) this.#unconfirmed.delete(dropped.id)
    this.#waiting.push(delivery)
    this.#unconfirmed.add(delivery.id)
    if (this.#waiting.length >= MOST_PER_CALL && this.#pauseMs === FLUSH_MS) void this.flush()
    else this.#schedule()
  }

  /** Never rejects: failed confirmations are retried later. */
  flush(): Promise<void> {
    this.#flushing ??= this.#flush().finally(() => {
      this.#flushing = undefined
      if (this.#waiting.length > 0) this.#schedule()
      this.#rest()
    })
    return this.#flushing
  }

  /** Runs until the queue is empty or the gateway is unreachable. */
  async flushAll(): Promise<void> {
    for (let before = Number.POSITIVE_INFINITY; this.#unconfirmed.size > 0 && this.#unconfirmed.size < before; ) {
      before = this.#unconfirmed.size
      await this.flush()
    }
  }

  /** Resolves when the gateway knows that this process has completed the delivery, or when it turns out to be unreachable. */
  confirming(paymentId: string): Promise<void> | undefined {
    return this.#unconfirmed.has(paymentId) ? this.flushAll() : undefined
  }

  /** For runtimes that stop a request's work after its response, and where requests cannot wait for each other. */
  async confirmNow(delivery: ClaimedDelivery): Promise<void> {
    if (!(await this.#confirm([delivery]))) this.add(delivery)
  }

  async #flush(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const batch = this.#waiting.splice(0, MOST_PER_CALL)
    if (batch.length === 0) return
    const isDone = await this.#confirm(batch)
    this.#pauseMs = isDone ? FLUSH_MS : Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS)
    if (!isDone) this.#waiting.unshift(...batch)
    else for (const { id } of batch) this.#unconfirmed.delete(id)
  }

  async #confirm(deliveries: ClaimedDelivery[]): Promise<boolean> {
    try {
      const results = await this.#client.payments.delivered(deliveries, { timeoutMs: ATTEMPT_MS })
      if (results.some(({ result }) => result === 'not_claimed'))
        warn(
          'hold_lapsed',
          'A delivery took longer than its hold. Increase `holdSeconds`; otherwise the customer may be served twice.',
          this.#speaker,
        )
      return true
    } catch (error) {
      warn(
        'not_confirmed',
        `Deliveries could not be confirmed. The confirmation will be retried while this process runs. ${(error as Error).message}`,
        this.#speaker,
      )
      return false
    }
  }

  #rest(): void {
    if (this.#inProgress === 0 && this.#unconfirmed.size === 0) doneBeforeExit(this)
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#flushing) return
    this.#timer = setTimeout(() => void this.flush(), this.#pauseMs)
    // An unreachable gateway must not keep the process alive.
    if (this.#pauseMs !== FLUSH_MS) (this.#timer as { unref?: () => void }).unref?.()
  }
}

const SIGNALS = ['SIGINT', 'SIGTERM'] as const
type Signal = (typeof SIGNALS)[number]
type Process = {
  pid: number
  on(signal: Signal, listener: (signal: Signal) => void): unknown
  removeListener(signal: Signal, listener: (signal: Signal) => void): unknown
  listenerCount(signal: Signal): number
  kill(pid: number, signal: Signal): unknown
}

const unflushed = new Set<Confirmations>()

function flushBeforeExit(confirmations: Confirmations): void {
  if (unflushed.size === 0) listen('on')
  unflushed.add(confirmations)
}

function doneBeforeExit(confirmations: Confirmations): void {
  if (unflushed.delete(confirmations) && unflushed.size === 0) listen('removeListener')
}

/** Listens only while a delivery is in progress or unconfirmed, because a listener keeps the signal from ending the process. */
function listen(how: 'on' | 'removeListener'): void {
  const { process } = globalThis as { process?: Partial<Process> }
  if (typeof process?.[how] !== 'function') return
  for (const signal of SIGNALS) (process as Process)[how](signal, flushAndExit)
}

async function flushAndExit(signal: Signal): Promise<void> {
  const { process } = globalThis as unknown as { process: Process }
  listen('removeListener')
  const waiting = [...unflushed]
  unflushed.clear()
  // If the program has its own listener, it decides when to exit.
  const isOurs = process.listenerCount(signal) === 0
  await Promise.all(waiting.map((confirmations) => confirmations.flushAll()))
  if (isOurs) process.kill(process.pid, signal)
}
