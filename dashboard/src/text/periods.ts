import { dateField, dayStart } from './days.ts'
import { ENGLISH } from './locales.ts'
import { datesOf, lastMonths, type Month } from './months.ts'

/** Periods to filter by, in the viewer's time zone. */
export const PERIODS = ['today', 'week', '7d', 'month', 'last-month', 'custom'] as const
export type Period = (typeof PERIODS)[number]

const NAMES: Record<Period, string> = {
  today: 'Today',
  week: 'This week',
  '7d': 'Last 7 days',
  month: 'This month',
  'last-month': 'Last month',
  custom: 'From … to …',
}

/** "This month" and "Last month" also get the name of the month, because people look for "October". */
export function periodName(period: Period, now: Date): string {
  if (period !== 'month' && period !== 'last-month') return NAMES[period]
  const { from = 0 } = rangeOf(period, {}, now)
  return `${NAMES[period]} (${new Intl.DateTimeFormat(ENGLISH, { month: 'long' }).format(from * 1000)})`
}

/** Unix seconds; `to` is not included. */
export type Range = { from?: number; to?: number }

const seconds = (date: Date): number => Math.floor(date.getTime() / 1000)
const month = (now: Date, offset: number): Date => new Date(now.getFullYear(), now.getMonth() + offset, 1)
const MONDAY = 1

/** Current periods have no end, so that payments created meanwhile belong to them. */
export function rangeOf(
  period: Period | undefined,
  dates: { from?: string | undefined; to?: string | undefined },
  now: Date,
): Range {
  const today = dayStart(seconds(now))
  if (period === 'today') return { from: today }
  if (period === 'week') return { from: dayStart(today, -((now.getDay() + 7 - MONDAY) % 7)) }
  if (period === '7d') return { from: dayStart(today, -6) }
  if (period === 'month') return { from: seconds(month(now, 0)) }
  if (period === 'last-month') return { from: seconds(month(now, -1)), to: seconds(month(now, 0)) }
  if (period !== 'custom') return {}
  const [from, to] = [dateField(dates.from), dateField(dates.to, 1)]
  return { ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) }
}

/** The month as a named period if there is one, because a name says more than two dates. */
export function periodOfMonth(wanted: Month, now: number): { period: Period; from?: string; to?: string } {
  const [current, last] = lastMonths(now)
  if (wanted === current) return { period: 'month' }
  return wanted === last ? { period: 'last-month' } : { period: 'custom', ...datesOf(wanted) }
}

/** "1 Oct 2026 – 31 Oct 2026", so that nobody has to guess what "last month" or "this week" is. */
export function rangeName({ from, to }: Range): string {
  const exactDay = new Intl.DateTimeFormat(ENGLISH, { day: 'numeric', month: 'short', year: 'numeric' })
  const first = from === undefined ? undefined : exactDay.format(from * 1000)
  // The end is a midnight, so the second before it is in the last day.
  const last = to === undefined ? undefined : exactDay.format((to - 1) * 1000)
  if (first === undefined) return last === undefined ? '' : `until ${last}`
  if (last === undefined) return `since ${first}`
  return first === last ? first : `${first} – ${last}`
}
