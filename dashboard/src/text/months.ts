import { dayStart } from './days.ts'
import { ENGLISH } from './locales.ts'

/** Months of the calendar in the viewer's time zone, as `2026-10`. */
export type Month = string

const LISTED = 12

const firstOf = (month: Month, months = 0): Date => {
  const [year = 0, number = 1] = month.split('-').map(Number)
  return new Date(year, number - 1 + months, 1)
}
const twoDigits = (number: number): string => String(number).padStart(2, '0')
const named = (date: Date): Month => `${date.getFullYear()}-${twoDigits(date.getMonth() + 1)}`

/** The first second of the month that is `months` months later. */
export const monthStart = (month: Month, months = 0): number => firstOf(month, months).getTime() / 1000

/** The newest first, beginning with the current one. */
export function lastMonths(now: number): Month[] {
  const current = named(new Date(now * 1000))
  return Array.from({ length: LISTED }, (_, ago) => named(firstOf(current, -ago)))
}

/** "October 2026". */
export const monthName = (month: Month): string => firstOf(month).toLocaleDateString(ENGLISH, { month: 'long', year: 'numeric' })

/** The first second of each day of the month, until today. */
export function daysOfMonth(month: Month, now: number): number[] {
  const first = monthStart(month)
  const end = Math.min(monthStart(month, 1), now + 1)
  const days: number[] = []
  for (let day = first; day < end; day = dayStart(day, 1)) days.push(day)
  return days
}

/** Local dates, both included. */
export function datesOf(month: Month): { from: string; to: string } {
  const last = new Date(firstOf(month, 1).getTime() - 1)
  return { from: `${month}-01`, to: `${month}-${twoDigits(last.getDate())}` }
}
