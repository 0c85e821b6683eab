import type { Received } from '../api/types.ts'
import { dayStarts, sumsOf } from './days.ts'
import { percent } from './format.ts'
import { daysOfMonth, type Month, monthStart } from './months.ts'

export type Point = { at: number; sat: number }
export type Span = 'day' | 'week' | 'month'
export const SPANS: Span[] = ['day', 'week', 'month']
export const DAYS_OF: Record<Span, number> = { day: 1, week: 7, month: 30 }

const HOURS = 24
const HOUR_SECONDS = 3_600
const QUARTER_HOUR_SECONDS = 900

const startsOf = (now: number, span: Span): number[] => (span === 'day' ? hourStarts(now) : dayStarts(now, DAYS_OF[span]))

/**
 * Hours or days in the viewer's time zone, oldest first, ending with the current one. Empty ones are zero. Days follow the calendar: a
 * day on which the clocks change has 23 or 25 hours.
 */
export const pointsOf = (received: Received, span: Span): Point[] => pointsAt(startsOf(received.now, span), received)

/** The days of a month, until today. */
export function pointsOfMonth(received: Received, month: Month): Point[] {
  const end = monthStart(month, 1)
  const quarterHours = received.quarterHours.filter(({ at }) => at < end)
  return pointsAt(daysOfMonth(month, received.now), { quarterHours })
}

function pointsAt(starts: number[], { quarterHours }: Pick<Received, 'quarterHours'>): Point[] {
  const sums = sumsOf(starts, quarterHours, ({ sat }) => sat)
  return starts.map((at, place) => ({ at, sat: sums[place] ?? 0 }))
}

/**
 * The sum of the previous period, up to the same time of day: compared with a whole day, a day that has just begun would always
 * look like a loss. The end is usually in the middle of a quarter hour, of which only `satSoFar` counts. Undefined if the previous
 * period began before `since`, because it is then incomplete.
 */
export function totalBefore({ now, quarterHours }: Received, span: Span, since: number): number | undefined {
  const from = earlier(startsOf(now, span)[0] ?? now, span)
  if (from < since) return undefined
  const to = earlier(now, span)
  const parts = quarterHours.filter(({ at }) => at >= from && at < to)
  return totalOf(parts.map(({ at, sat, satSoFar }) => ({ at, sat: at + QUARTER_HOUR_SECONDS <= to ? sat : satSoFar })))
}

export const isMonthOver = ({ now }: Pick<Received, 'now'>, month: Month): boolean => now >= monthStart(month, 1)

/** The total of the whole previous month. Undefined while the month is not over, or if nodes existed in only a part of the previous one. */
export function totalOfMonthBefore(received: Received, month: Month, since: number): number | undefined {
  const { quarterHours } = received
  const [from, to] = [monthStart(month, -1), monthStart(month)]
  if (!isMonthOver(received, month) || from < since) return undefined
  return totalOf(quarterHours.filter(({ at }) => at >= from && at < to))
}

/** 24 hours earlier or, for longer spans, the same time of day that many calendar days earlier. */
function earlier(at: number, span: Span): number {
  if (span === 'day') return at - HOURS * HOUR_SECONDS
  const date = new Date(at * 1000)
  date.setDate(date.getDate() - DAYS_OF[span])
  return date.getTime() / 1000
}

/** Starts of the local hours, which in some time zones are at :15 or :30 UTC. Stepping back in seconds is safe across clock changes. */
function hourStarts(now: number): number[] {
  const date = new Date(now * 1000)
  const current = now - date.getMinutes() * 60 - date.getSeconds()
  return Array.from({ length: HOURS }, (_, place) => current - (HOURS - 1 - place) * HOUR_SECONDS)
}

export const totalOf = (points: Point[]): number => points.reduce((sum, { sat }) => sum + sat, 0)

/** How this period compares with the previous one, in words. Percentages only where they mean something. */
export function comparison(now: number, before: number): { words: string; direction: 'up' | 'down' | 'same' | 'none' } {
  if (before === 0) return { words: 'Nothing in the previous period', direction: 'none' }
  if (now === before) return { words: 'About the same as in the previous period', direction: 'same' }
  const change = now / before
  const direction = now > before ? 'up' : 'down'
  if (change >= 10) return { words: `${Math.round(change)} times the previous period`, direction }
  const size = percent(Math.abs(now - before), before)
  return { words: `${size} ${direction === 'up' ? 'more' : 'less'} than in the previous period`, direction }
}
