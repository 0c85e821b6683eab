/** Thrown by a probe that knows that what is waited for cannot come any more. */
export class Hopeless extends Error {}

const FIRST_PAUSE_MS = 10
const LONGEST_PAUSE_MS = 100

/** Waits for a truthy value; what the probe throws meanwhile counts as "not yet". */
export async function eventually<T>(probe: () => T | Promise<T>, what: string, timeoutMs = 60_000): Promise<NonNullable<T>> {
  const deadline = Date.now() + timeoutMs
  let last: unknown
  let pauseMs = FIRST_PAUSE_MS
  while (Date.now() < deadline) {
    try {
      const value = await probe()
      if (value) return value
      last = value
    } catch (error) {
      if (error instanceof Hopeless) throw error
      last = error
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
    // What does not come at once is seldom there 10 ms later, and asking takes time from whoever is to bring it.
    pauseMs = Math.min(pauseMs * 1.5, LONGEST_PAUSE_MS)
  }
  throw new Error(`gave up waiting for ${what}; last: ${String(last)}`)
}
