import { ENGLISH, LOCALES } from './locales.ts'

/** Days and times of day in the viewer's time zone. Times are in Unix seconds. */

const DAY = new Intl.DateTimeFormat(ENGLISH, { weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' })
const SHORT_DAY = new Intl.DateTimeFormat(ENGLISH, { day: 'numeric', month: 'short' })
const DATE = new Intl.DateTimeFormat(ENGLISH, { day: 'numeric', month: 'short', year: 'numeric' })
const CLOCK = new Intl.DateTimeFormat(LOCALES, { hour: '2-digit', minute: '2-digit' })

/** The first second of the day that is `days` days after the day of this time. A day on which the clocks change has 23 or 25 hours. */
export function dayStart(at: number, days = 0): number {
  const date = new Date(at * 1000)
  return new Date(date.getFullYear(), date.getMonth(), date.getDate() + days).getTime() / 1000
}

/** The first second of the viewer's day that has the same date as this day in UTC. */
export function localDayOf(utcDay: number): number {
  const date = new Date(utcDay * 1000)
  return new Date(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()).getTime() / 1000
}

/** The minute of the UTC hour at which the viewer's hours begin: "30" in India, "15" in Nepal. */
export const hourStartMinute = (): string => String(((new Date().getTimezoneOffset() % 60) + 60) % 60)

/** The first second of each of the last days, the last one today. */
export const dayStarts = (now: number, days: number): number[] =>
  Array.from({ length: days }, (_, place) => dayStart(now, place + 1 - days))

/** What was received or charged in each of the periods that begin at these times, oldest first. */
export function sumsOf<P extends { at: number }>(starts: number[], parts: P[], amountOf: (part: P) => number): number[] {
  const sums = starts.map(() => 0)
  for (const part of parts) {
    const place = starts.findLastIndex((start) => start <= part.at)
    if (place >= 0) sums[place] = (sums[place] ?? 0) + amountOf(part)
  }
  return sums
}

/** "Today", "Yesterday", "Saturday, 14 November 2026". */
export function dayName(at: number, now: number): string {
  const day = dayStart(at)
  if (day === dayStart(now)) return 'Today'
  return day === dayStart(now, -1) ? 'Yesterday' : DAY.format(at * 1000)
}

export const clockTime = (at: number): string => CLOCK.format(at * 1000)
/** In one piece: a line never ends within a date. */
export const dateName = (at: number): string => DATE.format(at * 1000).replaceAll(' ', '\u00a0')
export const shortDay = (at: number): string => SHORT_DAY.format(at * 1000)

/** "between 10:05 and 10:40", "at 10:05"; with both days if they differ. */
export function spanName(from: number, to: number): string {
  const [first, last] = [clockTime(from), clockTime(to)]
  if (dayStart(from) !== dayStart(to)) return `between ${shortDay(from)} ${first} and ${shortDay(to)} ${last}`
  return first === last ? `at ${first}` : `between ${first} and ${last}`
}

/** A date field's value, such as 2026-11-14, as the first second of that day or of one `days` days later; undefined if it is not a date. */
export function dateField(value: string | undefined, days = 0): number | undefined {
  if (value === undefined || !/^\d{4}-\d{2}-\d{2}$/.test(value)) return undefined
  const at = new Date(`${value}T00:00`).getTime() / 1000
  return Number.isNaN(at) || at < 0 ? undefined : dayStart(at, days)
}

/** The value from the URL, if it is a date. */
export const dateIn = (value: unknown): string | undefined =>
  typeof value === 'string' && dateField(value) !== undefined ? value : undefined

export type DatePeriod = { from?: string | undefined; to?: string | undefined }

/** Local dates, both included, as times for the server. */
export const timesOf = ({ from, to }: DatePeriod): { from: string | undefined; to: string | undefined } => ({
  from: dateField(from)?.toString(),
  to: dateField(to, 1)?.toString(),
})
