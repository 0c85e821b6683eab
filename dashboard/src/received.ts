import type { Received } from './api/types.ts'

export type Point = { at: number; sat: number }
export type Span = 'day' | 'week' | 'month'
export const SPANS: Span[] = ['day', 'week', 'month']

const HOURS = 24
const DAYS = { week: 7, month: 30 } as const

/**
 * Hours or days in the viewer's time zone, oldest first, ending with the current one. Empty ones are zero. Days follow the calendar: a
 * day on which the clocks change has 23 or 25 hours.
 */
export function pointsOf({ now, quarterHours }: Received, span: Span): Point[] {
  const starts = span === 'day' ? hourStarts(now) : dayStarts(now, DAYS[span])
  const points = starts.map((at) => ({ at, sat: 0 }))
  for (const { at, sat } of quarterHours) {
    const point = points.findLast((one) => one.at <= at)
    if (point) point.sat += sat
  }
  return points
}

/**
 * The sum of the period before, up to the same time of day: comparing a day that has just begun with a whole one would always look like a
 * loss.
 */
export function totalBefore({ now, quarterHours }: Received, span: Span): number {
  const first = (span === 'day' ? hourStarts(now) : dayStarts(now, DAYS[span]))[0] ?? now
  const from = earlier(first, span)
  const to = earlier(now, span)
  return quarterHours.filter(({ at }) => at >= from && at < to).reduce((sum, { sat }) => sum + sat, 0)
}

/** The same time of day, that many days of the calendar before. */
function earlier(at: number, span: Span): number {
  if (span === 'day') return at - HOURS * 3600
  const date = new Date(at * 1000)
  date.setDate(date.getDate() - DAYS[span])
  return date.getTime() / 1000
}

/** Start of the local hour, which in some time zones is at :30 or :45 UTC. Stepping back in seconds is safe across clock changes. */
function hourStarts(now: number): number[] {
  const date = new Date(now * 1000)
  const current = now - date.getMinutes() * 60 - date.getSeconds()
  return Array.from({ length: HOURS }, (_, place) => current - (HOURS - 1 - place) * 3600)
}

function dayStarts(now: number, days: number): number[] {
  const date = new Date(now * 1000)
  return Array.from({ length: days }, (_, place) => {
    const midnight = new Date(date.getFullYear(), date.getMonth(), date.getDate() - (days - 1 - place))
    return midnight.getTime() / 1000
  })
}

export const totalOf = (points: Point[]): number => points.reduce((sum, { sat }) => sum + sat, 0)

/** How this period compares with the one before, in words. Percentages only where they mean something. */
export function comparison(now: number, before: number): { words: string; direction: 'up' | 'down' | 'same' | 'none' } {
  if (before === 0)
    return { words: now === 0 ? 'Nothing in the period before either' : 'Nothing in the period before', direction: 'none' }
  if (now === before) return { words: 'The same as in the period before', direction: 'same' }
  const change = now / before
  const direction = now > before ? 'up' : 'down'
  if (change >= 10) return { words: `${Math.round(change)} times the period before`, direction }
  const percent = Math.round(Math.abs(change - 1) * 100)
  const shown = percent === 0 ? 'less than 1 %' : `${percent} %`
  return { words: `${shown} ${direction === 'up' ? 'more' : 'less'} than in the period before`, direction }
}
