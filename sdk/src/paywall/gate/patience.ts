import { BoltyardError, ConnectionError, CredentialError, ServiceError, TimeoutError } from '../../errors.ts'
import { pause } from '../../waiting.ts'

const FIRST_PAUSE_MS = 200
const LONGEST_PAUSE_MS = 1_600
/**
 * The gateway waits up to 2 s for a settlement. A redemption that is cut off meanwhile may claim the delivery after we have told the
 * customer to come back, and then a process that does not remember it would ask for a second payment.
 */
const TO_FINISH_MS = 2_500

/** Runs it until it ends, the customer leaves, or it takes too long. */
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
    () => controller.abort(new TimeoutError('The gateway did not answer in time.', { code: 'timeout' })),
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
 * Again and again while it may still turn out well. No attempt begins after the patience is over or the customer has left, but the last
 * one may finish: cut off, it may have claimed the delivery without anybody knowing.
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
        // That the customer left tells nothing about what the attempt has done.
        await pause(pauseMs, signal).catch(() => Promise.reject(error))
      }
    }
  })
}

/** What may be otherwise in a moment, without anybody doing anything about it. */
function mayPass(error: unknown): boolean {
  if (error instanceof CredentialError) return error.notSettled
  if (error instanceof BoltyardError && error.code === 'unexpected_answer') return (error.status ?? 0) >= 500
  return error instanceof ServiceError || error instanceof ConnectionError || error instanceof TimeoutError
}

export function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))
}

/** It may have been done, and nobody was told. */
export const isOutcomeUnknown = (error: unknown): boolean =>
  error instanceof ConnectionError || error instanceof TimeoutError || error instanceof ServiceError
