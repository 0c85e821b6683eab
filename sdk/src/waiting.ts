/** `isIdle`: the timer does not keep the process alive. */
export async function pause(ms: number, signal: AbortSignal | undefined, isIdle = false): Promise<void> {
  signal?.throwIfAborted()
  await new Promise<void>((resolve, reject) => {
    const abort = (): void => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort)
      resolve()
    }, ms)
    if (isIdle) (timer as { unref?: () => void }).unref?.()
    signal?.addEventListener('abort', abort, { once: true })
  })
}

/** Limits concurrency. Callers beyond the limit wait in order of arrival. */
export class ConcurrencyLimit {
  #free: number
  readonly #waiting: (() => void)[] = []

  constructor(count: number) {
    this.#free = count
  }

  /** Returns a function that releases the slot; call it once. */
  async enter(signal: AbortSignal | undefined): Promise<() => void> {
    if (this.#free > 0) this.#free--
    else await this.#wait(signal)
    return () => {
      const next = this.#waiting.shift()
      if (next) next()
      else this.#free++
    }
  }

  #wait(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const enter = (): void => {
        signal?.removeEventListener('abort', abort)
        resolve()
      }
      const abort = (): void => {
        // A caller that has aborted must not get a slot, because it would never release it.
        this.#waiting.splice(this.#waiting.indexOf(enter), 1)
        reject(signal?.reason)
      }
      this.#waiting.push(enter)
      signal?.addEventListener('abort', abort, { once: true })
    })
  }
}
