const MINUTE = 60
const HOUR = 60 * MINUTE

/** How long after each failure the next attempt is made. The first attempt is made at once. */
const DELAYS_SECONDS = [5, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR]
/** Spreads deliveries that failed at the same time. Only adds delay: an overloaded receiver needs the full pause. */
const JITTER = 0.1
const LONGEST_PAUSE_SECONDS = 24 * HOUR

export const DISABLE_AFTER_SECONDS = 5 * 24 * HOUR

/** Null: the last attempt has been made. */
export function retryDelaySeconds(
  failures: number,
  retryAfterSeconds: number | undefined,
  random: () => number = Math.random,
): number | null {
  const scheduled = DELAYS_SECONDS[failures - 1]
  if (scheduled === undefined) return null
  const delay = scheduled * (1 + JITTER * random())
  return Math.max(delay, Math.min(retryAfterSeconds ?? 0, LONGEST_PAUSE_SECONDS))
}

/**
 * Seconds or a date, as in RFC 9110; undefined if it is neither. A date is compared with the receiver's Date header, if there is
 * one.
 */
export function retryAfterSeconds(value: string | undefined, date: string | undefined, nowMs = Date.now()): number | undefined {
  if (value === undefined) return undefined
  if (/^\d+$/.test(value)) return Number(value)
  // Date.parse accepts much more than HTTP does, such as -1.
  if (!value.endsWith(' GMT')) return undefined
  const [until, sent] = [Date.parse(value), Date.parse(date ?? '')]
  return Number.isNaN(until) ? undefined : Math.max(0, (until - (Number.isNaN(sent) ? nowMs : sent)) / 1000)
}
