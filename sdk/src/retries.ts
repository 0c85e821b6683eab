import { type BoltyardError, ConnectionError, RateLimitError, ServiceError, TimeoutError } from './errors.ts'

const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 4_000

export function isWorthRepeating(error: BoltyardError): boolean {
  if (error instanceof RateLimitError || error.code === 'operation_in_progress') return true
  if (error.code === 'unexpected_answer') return (error.status ?? 0) >= 500
  return error instanceof ConnectionError || error instanceof TimeoutError || error instanceof ServiceError
}

export const retryAfter = (error: unknown): number => (error instanceof RateLimitError && error.retryAfterSeconds) || 0

/** The random part keeps clients that failed together from retrying together. */
export function pauseBefore(attempt: number, error: unknown): number {
  const backoffMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** attempt)
  const atLeastMs = error instanceof RateLimitError ? retryAfter(error) * 1000 : backoffMs / 2
  return atLeastMs + Math.random() * (backoffMs / 2)
}
