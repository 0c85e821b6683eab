/** Thrown by a probe that knows that the awaited state can no longer be reached. */
export class Hopeless extends Error {}

const FIRST_PAUSE_MS = 10
const LONGEST_PAUSE_MS = 100

/** Long enough that only a test that hangs is ended: a machine that is busy with other tests may stall for many seconds. */
export const PATIENCE_MS = 120_000

/** Waits for a truthy value; an error from the probe counts as "not yet". */
export async function eventually<T>(probe: () => T | Promise<T>, what: string, timeoutMs = PATIENCE_MS): Promise<NonNullable<T>> {
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
    // A value that is not there at once is rarely there 10 ms later, and polling takes CPU time from the process that must produce it.
    pauseMs = Math.min(pauseMs * 1.5, LONGEST_PAUSE_MS)
  }
  throw new Error(`gave up waiting for ${what}; last: ${String(last)}`)
}
