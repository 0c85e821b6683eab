/** Thrown by a probe that knows that what is waited for cannot come any more. */
export class Hopeless extends Error {}

/** Waits for a truthy value; what the probe throws meanwhile counts as "not yet". */
export async function eventually<T>(probe: () => T | Promise<T>, what: string, timeoutMs = 60_000): Promise<NonNullable<T>> {
  const deadline = Date.now() + timeoutMs
  let last: unknown
  while (Date.now() < deadline) {
    try {
      const value = await probe()
      if (value) return value
      last = value
    } catch (error) {
      if (error instanceof Hopeless) throw error
      last = error
    }
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  throw new Error(`gave up waiting for ${what}; last: ${String(last)}`)
}
