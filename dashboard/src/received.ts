import type { Overview } from './api/types.ts'

export type Point = { at: number; sat: number }
export type Span = 'day' | 'week'

const HOURS = 24
const DAYS = 7

/**
 * Hours or days in the viewer's time zone, oldest first, ending with the current one. Empty ones are zero. Days follow the calendar: a
 * day on which the clocks change has 23 or 25 hours.
 */
export function pointsOf({ now, quarterHours }: Overview['received'], span: Span): Point[] {
  const starts = span === 'day' ? hourStarts(now) : dayStarts(now)
  const points = starts.map((at) => ({ at, sat: 0 }))
  for (const { at, sat } of quarterHours) {
    const point = points.findLast((one) => one.at <= at)
    if (point) point.sat += sat
  }
  return points
}

/** Start of the local hour, which in some time zones is at :30 or :45 UTC. Stepping back in seconds is safe across clock changes. */
function hourStarts(now: number): number[] {
  const date = new Date(now * 1000)
  const current = now - date.getMinutes() * 60 - date.getSeconds()
  return Array.from({ length: HOURS }, (_, place) => current - (HOURS - 1 - place) * 3600)
}

function dayStarts(now: number): number[] {
  const date = new Date(now * 1000)
  return Array.from({ length: DAYS }, (_, place) => {
    const midnight = new Date(date.getFullYear(), date.getMonth(), date.getDate() - (DAYS - 1 - place))
    return midnight.getTime() / 1000
  })
}

export const totalOf = (points: Point[]): number => points.reduce((sum, { sat }) => sum + sat, 0)
