import { durationLasts } from '../text/format.ts'
import type { CreditSummary, GatewayPayment, NodePayment } from './types.ts'

/**
 * Some data is out of date from a known time on, and no event reports it: an invoice expires, a claim lapses, credit runs out.
 * Queries for such data use `untilNext` as their `refetchInterval`.
 */

/** Covers a local clock that is ahead of the service's, and a change that the service has not made yet. */
const SHORTEST_WAIT_MS = 3_000
/** Timers that wait longer than 24 days fire at once. */
const LONGEST_WAIT_MS = 86_400_000

/** How long to wait until the first of these times; false if there is none. `pages`: how many requests a refetch takes. */
export function untilNext(times: (number | null)[], pages = 1): number | false {
  const known = times.filter((at) => at !== null)
  if (known.length === 0) return false
  const leftMs = Math.round(Math.min(...known) * 1000 - Date.now())
  return Math.min(Math.max(SHORTEST_WAIT_MS * pages, leftMs), LONGEST_WAIT_MS)
}

/** When the payment expires, or the claim on its delivery lapses. */
export function paymentChangesAt({ status, settledAt, delivery, expiresAt, heldUntil }: GatewayPayment): number | null {
  if (delivery === 'held') return heldUntil
  return status === 'payment_required' && settledAt === null ? expiresAt : null
}

/** When an unpaid invoice expires. One that has expired does not change any more. */
export function invoiceChangesAt({ isPaid, expiresAt }: NodePayment): number | null {
  return !isPaid && expiresAt !== null && expiresAt * 1000 > Date.now() ? expiresAt : null
}

/** Nodes are charged by the minute. */
const CHARGED_SECONDS = 60

/** When what is shown about credit goes out of date: the balance, how long it lasts, or when nodes are stopped. */
export function creditChangesAt({ runwaySeconds, stopsAt, nodesThatCost }: CreditSummary): number | null {
  const now = Date.now() / 1000
  const times = [
    runwaySeconds === null || runwaySeconds <= 0 ? stopsAt : now + durationLasts(runwaySeconds),
    nodesThatCost > 0 ? now + CHARGED_SECONDS : null,
  ].filter((at) => at !== null)
  return times.length === 0 ? null : Math.min(...times)
}

const QUARTER_HOUR_SECONDS = 900

/**
 * When the current hour or day may end, by the service's clock. In every time zone, hours and days end at the end of a quarter
 * hour.
 */
export const quarterHourEndsAt = (now: number): number => Date.now() / 1000 + QUARTER_HOUR_SECONDS - (now % QUARTER_HOUR_SECONDS)
