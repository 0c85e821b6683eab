import { BoltyardError, ConnectionError, CredentialError, ServiceError, TimeoutError } from '../../errors.ts'
import { pause } from '../../waiting.ts'

const FIRST_PAUSE_MS = 200
const LONGEST_PAUSE_MS = 1_600
/**
 * With MPP and L402, the gateway usually waits at most about 2 s for the settlement. If we abort a redemption earlier, it may still
 * claim the delivery after we told the customer to come back, and they would have to wait until the claim is released.
 */
const TO_FINISH_MS = 2_500

/** Runs the action until it ends, the customer disconnects, or it takes too long. */
export async function within<T>(
  ms: number,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController()
  const leave = (): void => controller.abort(signal?.reason)
  if (signal?.aborted) leave()
  signal?.addEventListener('abort', leave, { once: true })
  const timer = setTimeout(
    () => controller.abort(new TimeoutError('The gateway did not respond in time.', { code: 'timeout' })),
    ms,
  )
  try {
    return await work(controller.signal)
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', leave)
  }
}

/**
 * Retries while the attempt may still succeed. No attempt starts after the time is up or the customer has disconnected, but the last one
 * may finish: if aborted, it may have claimed the delivery unnoticed.
 */
export function patiently<T>(
  patienceMs: number,
  signal: AbortSignal | undefined,
  attempt: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const end = Date.now() + patienceMs
  return within(patienceMs + TO_FINISH_MS, undefined, async (bounded) => {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
      try {
        return await attempt(bounded)
      } catch (error) {
        if (!mayPass(error) || bounded.aborted || signal?.aborted || Date.now() + pauseMs > end) throw error
        // If the customer disconnects during the pause, throw the attempt's error, which shows whether a claim may have succeeded.
        await pause(pauseMs, signal).catch(() => Promise.reject(error))
      }
    }
  })
}

/** Errors that may go away on their own. */
function mayPass(error: unknown): boolean {
  if (error instanceof CredentialError) return error.notSettled
  if (error instanceof BoltyardError && error.code === 'unexpected_answer') return (error.status ?? 0) >= 500
  return error instanceof ServiceError || error instanceof ConnectionError || error instanceof TimeoutError
}

export function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))
}

/** The request may have taken effect although its response was lost. */
export const isOutcomeUnknown = (error: unknown): boolean =>
  error instanceof ConnectionError || error instanceof TimeoutError || error instanceof ServiceError
