import type { Overview } from './api/types.ts'

export type Point = { at: number; sat: number }
export type Span = 'day' | 'week'

const HOURS = 24
const DAYS = 7

/**
 * The clock hours or calendar days of whoever looks, oldest first and the present one last; one in which nothing came is there as zero.
 * Days are cut by the calendar, not by 86,400 s: the day on which the clocks change has 23 or 25 hours.
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

/** Of the hour hand as it stands there: in some places it stands at :30 or :45 of UTC. Stepping back in seconds survives a change of the clocks. */
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
