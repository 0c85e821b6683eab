import { afterEach, expect, test, vi } from 'vitest'
import { dateField, dayStart, hourStartMinute, localDayOf, timesOf } from '../../src/text/days.ts'
import { creditEnds, lastsUntil } from '../../src/text/runway.ts'

const zone = process.env.TZ
afterEach(() => {
  if (zone === undefined) delete process.env.TZ
  else process.env.TZ = zone
  vi.unstubAllGlobals()
})

/** 2026-11-15 02:00 UTC: still Saturday in Los Angeles. */
const SUNDAY_2 = Date.UTC(2026, 10, 15, 2) / 1000

/** Formats keep the time zone in which they were made. */
async function daysIn(timeZone: string): Promise<typeof import('../../src/text/days.ts')> {
  process.env.TZ = timeZone
  vi.resetModules()
  return import('../../src/text/days.ts')
}

test('dashboard: an entry is listed under the day of the viewer, not under that of UTC', async () => {
  const west = await daysIn('America/Los_Angeles')
  expect(west.dayName(SUNDAY_2, SUNDAY_2 + 3 * 86_400)).toMatch(/^Saturday,? 14 November 2026$/)
  expect([west.dayName(SUNDAY_2, SUNDAY_2), west.dayName(SUNDAY_2, SUNDAY_2 + 8 * 3_600)]).toEqual(['Today', 'Yesterday'])
  const east = await daysIn('Asia/Kolkata')
  expect(east.dayName(SUNDAY_2, SUNDAY_2 + 3 * 86_400)).toMatch(/^Sunday,? 15 November 2026$/)
})

test('dashboard: months and days have English names, and dates in digits and times are as in the viewer’s language', async () => {
  vi.stubGlobal('navigator', { languages: ['de-DE', 'en-US'] })
  const german = await daysIn('UTC')
  const { bucketName, exact } = await import('../../src/text/format.ts')
  const { monthName } = await import('../../src/text/months.ts')
  const { periodName, rangeName } = await import('../../src/text/periods.ts')
  const december = Date.UTC(2026, 11, 15, 14, 5) / 1000
  expect([
    german.dayName(december, december + 3 * 86_400).replace(',', ''),
    german.shortDay(december),
    monthName('2026-12'),
    periodName('month', new Date(december * 1000)),
    rangeName({ from: december }),
    bucketName(december, 'hour'),
    bucketName(december, 'day'),
  ]).toEqual([
    'Tuesday 15 December 2026',
    '15 Dec',
    'December 2026',
    'This month (December)',
    'since 15 Dec 2026',
    'Tue 14:05',
    'Tue 15 Dec',
  ])
  expect(exact(december)).toBe('15.12.2026, 14:05:00 UTC')
  vi.stubGlobal('navigator', { languages: ['fr-FR'] })
  vi.resetModules()
  expect((await import('../../src/text/format.ts')).exact(december)).toBe('15/12/2026 14:05:00 UTC')
})

test('dashboard: days, times and periods are written as in the viewer’s English', async () => {
  vi.stubGlobal('navigator', { languages: ['en-US', 'en'] })
  const { clockTime, dayName, shortDay } = await daysIn('UTC')
  const { rangeName } = await import('../../src/text/periods.ts')
  const { exact } = await import('../../src/text/format.ts')
  const at = SUNDAY_2
  expect([dayName(at, at + 3 * 86_400), shortDay(at), rangeName({ from: at })]).toEqual([
    'Sunday, November 15, 2026',
    'Nov 15',
    'since Nov 15, 2026',
  ])
  for (const text of [clockTime(at), exact(at)]) expect(text).toMatch(/\bAM\b/)
})

test('dashboard: a day on which the clocks change has 23 or 25 hours', () => {
  process.env.TZ = 'Europe/Berlin'
  const october = Date.UTC(2026, 9, 25, 12) / 1000
  expect(dayStart(october, 1) - dayStart(october)).toBe(25 * 3_600)
  expect(timesOf({ from: '2026-03-29', to: '2026-03-29' })).toEqual({ from: '1774738800', to: '1774821600' })
})

test.each(['Europe/Berlin', 'Australia/Sydney', 'Africa/Cairo', 'America/Los_Angeles', 'Pacific/Auckland'])(
  'dashboard: totals by UTC day are shown to somebody in %s under the same dates, also when the clocks change',
  (timeZone) => {
    process.env.TZ = timeZone
    const days = Array.from({ length: 365 }, (_, place) => Date.UTC(2026, 0, 1 + place) / 1000)
    const dates = days.map((day) => new Date(day * 1000).toISOString().slice(0, 10))
    const shown = days.map((day) => {
      const date = new Date(localDayOf(day) * 1000)
      return [date.getFullYear(), date.getMonth() + 1, date.getDate()].map((part) => String(part).padStart(2, '0')).join('-')
    })
    expect(shown).toEqual(dates)
  },
)

test.each([
  ['UTC', '0'],
  ['America/Los_Angeles', '0'],
  ['Asia/Kolkata', '30'],
  ['America/St_Johns', '30'],
  ['Asia/Kathmandu', '15'],
])('dashboard: hours begin for somebody in %s at minute %s of those of UTC', (timeZone, minute) => {
  process.env.TZ = timeZone
  expect(hourStartMinute()).toBe(minute)
})

test('dashboard: an invalid date is not sent to the server', () => {
  expect(['', 'x', '2026-13-01', '2026-1-1', '1900-01-01', undefined].map((value) => dateField(value))).toEqual(
    Array.from({ length: 6 }),
  )
})

test('dashboard: folded payments say when they were, also across midnight', async () => {
  const { spanName } = await daysIn('UTC')
  const ten = Date.UTC(2026, 10, 14, 10) / 1000
  expect(spanName(ten + 300, ten + 2_400)).toBe('between 10:05 and 10:40')
  expect(spanName(ten, ten + 30)).toBe('at 10:00')
  expect(spanName(ten + 13.9 * 3_600, ten + 14.2 * 3_600)).toBe('between 14 Nov 23:54 and 15 Nov 00:12')
})

test('C33: what a top-up brings, and what happens when credit ends, is said with the numbers of this service', () => {
  process.env.TZ = 'UTC'
  const now = Date.UTC(2026, 10, 14, 10) / 1000
  expect(lastsUntil(1_000_000, 100_000, now)).toBe('then lasts until about 24\u00a0Nov\u00a02026')
  expect(lastsUntil(1_000_000, 0, now)).toBeNull()
  expect(lastsUntil(-1, 100_000, now)).toBe('does not cover what you owe')
  expect(lastsUntil(1e12, 1_000, now)).toBe('then lasts more than 10 years')
  expect(creditEnds(48)).toBe(
    'When the credit is used up, nodes keep running for 48 hours, and are then stopped. Nothing is deleted.',
  )
  expect(creditEnds(0)).toContain('stopped at once')
})
