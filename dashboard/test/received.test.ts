import { afterEach, beforeEach, expect, test } from 'vitest'
import { datesOf, lastMonths, monthName, monthStart } from '../src/text/months.ts'
import { comparison, pointsOf, pointsOfMonth, totalBefore, totalOf, totalOfMonthBefore } from '../src/text/received.ts'

const QUARTER = 15 * 60
const HOUR = 3600

let zoneBefore: string | undefined
beforeEach(() => {
  zoneBefore = process.env.TZ
})
afterEach(() => {
  if (zoneBefore === undefined) delete process.env.TZ
  else process.env.TZ = zoneBefore
})

/** One satoshi in each quarter hour of the last 61 days. */
function everyQuarter(now: number): {
  now: number
  unlistedNodes: 0
  quarterHours: { at: number; sat: number; satSoFar: number }[]
} {
  const last = now - (now % QUARTER)
  return {
    now,
    unlistedNodes: 0,
    quarterHours: Array.from({ length: 61 * 96 }, (_, place) => ({ at: last - place * QUARTER, sat: 1, satSoFar: 0 })).reverse(),
  }
}

const at = (text: string): number => Date.parse(text) / 1000

test.each([
  { zone: 'UTC', now: '2026-11-15T21:40:00Z', hours: [24, 24, 24, 24, 24, 24] },
  { zone: 'Asia/Kathmandu', now: '2026-11-15T21:40:00Z', hours: [24, 24, 24, 24, 24, 24] },
  { zone: 'America/Los_Angeles', now: '2026-11-03T06:10:00Z', hours: [24, 24, 24, 24, 24, 25] },
  { zone: 'America/Los_Angeles', now: '2026-03-12T20:00:00Z', hours: [24, 24, 23, 24, 24, 24] },
  { zone: 'Europe/Berlin', now: '2026-10-25T23:30:00Z', hours: [24, 24, 24, 24, 24, 25] },
  { zone: 'America/St_Johns', now: '2026-06-01T12:00:00Z', hours: [24, 24, 24, 24, 24, 24] },
])('dashboard: days are calendar days in $zone at $now, even when the clocks change', ({ zone, now, hours }) => {
  process.env.TZ = zone
  const points = pointsOf(everyQuarter(at(now)), 'week')
  expect(points).toHaveLength(7)
  // Each starts at local midnight and has as many quarter hours as that day.
  expect(points.map(({ at: start }) => new Date(start * 1000).toTimeString().slice(0, 8))).toEqual(Array(7).fill('00:00:00'))
  expect(points.slice(0, -1).map(({ sat }) => sat)).toEqual(hours.map((count) => count * 4))
  const today = points.at(-1)?.at ?? 0
  expect(points.at(-1)?.sat).toBe(Math.floor((at(now) - today) / QUARTER) + 1)
})

test.each(['UTC', 'Asia/Kathmandu', 'America/Los_Angeles', 'Australia/Adelaide'])(
  'dashboard: hours are local hours in %s',
  (zone) => {
    process.env.TZ = zone
    const now = at('2026-11-15T21:40:00Z')
    const points = pointsOf(everyQuarter(now), 'day')
    expect(points).toHaveLength(24)
    expect(points.map(({ at: start }) => new Date(start * 1000).getMinutes())).toEqual(Array(24).fill(0))
    expect(points.slice(0, -1).map(({ sat }) => sat)).toEqual(Array(23).fill(4))
    expect(now - (points.at(-1)?.at ?? 0)).toBeLessThan(HOUR)
    expect(totalOf(points)).toBe(23 * 4 + (points.at(-1)?.sat ?? 0))
  },
)

test.each(['UTC', 'Asia/Kathmandu', 'America/Los_Angeles', 'Europe/Berlin'])(
  'dashboard: 30 days are calendar days in %s, although the clocks changed in between',
  (zone) => {
    process.env.TZ = zone
    const points = pointsOf(everyQuarter(at('2026-11-15T21:40:00Z')), 'month')
    expect(new Set(points.map(({ at: start }) => new Date(start * 1000).toDateString())).size).toBe(30)
    expect(points.map(({ at: start }) => new Date(start * 1000).getHours())).toEqual(Array(30).fill(0))
  },
)

test.each([
  { zone: 'UTC', now: '2026-11-15T21:30:00Z', span: 'day' as const, quarters: 23 * 4 + 2 },
  { zone: 'UTC', now: '2026-11-15T06:00:00Z', span: 'week' as const, quarters: 6 * 96 + 24 },
  { zone: 'UTC', now: '2026-11-15T06:00:00Z', span: 'month' as const, quarters: 29 * 96 + 24 },
  // The week before had the day with 25 hours.
  { zone: 'America/Los_Angeles', now: '2026-11-10T14:00:00Z', span: 'week' as const, quarters: 6 * 96 + 28 },
  { zone: 'America/Los_Angeles', now: '2026-11-08T14:00:00Z', span: 'week' as const, quarters: 6 * 96 + 28 },
])('dashboard: the period before the $span ends at the same time of day in $zone at $now', ({ zone, now, span, quarters }) => {
  process.env.TZ = zone
  expect(totalBefore(everyQuarter(at(now)), span, 0)).toBe(quarters)
})

test.each([
  { zone: 'UTC', hours: 31 * 24, before: 30 * 24 },
  { zone: 'Asia/Kathmandu', hours: 31 * 24, before: 30 * 24 },
  // The clocks change in October: back in Berlin, forward in Adelaide.
  { zone: 'Europe/Berlin', hours: 31 * 24 + 1, before: 30 * 24 },
  { zone: 'Australia/Adelaide', hours: 31 * 24 - 1, before: 30 * 24 },
])('dashboard: a month is a calendar month in $zone, with each of its days and nothing else', ({ zone, hours, before }) => {
  process.env.TZ = zone
  const now = at('2026-11-15T21:40:00Z')
  const last = now - (now % QUARTER)
  const received = {
    now,
    unlistedNodes: 0,
    quarterHours: Array.from({ length: 100 * 96 }, (_, place) => ({ at: last - place * QUARTER, sat: 1, satSoFar: 0 })),
  }
  const points = pointsOfMonth(received, '2026-10')
  expect(points.map(({ at: start }) => new Date(start * 1000).getDate())).toEqual(Array.from({ length: 31 }, (_, day) => day + 1))
  expect(totalOf(points)).toBe(hours * 4)
  expect(totalOfMonthBefore(received, '2026-10', 0)).toBe(before * 4)
  // The month that is not over ends today, and is not compared with a whole one.
  expect(pointsOfMonth(received, '2026-11')).toHaveLength(new Date(now * 1000).getDate())
  expect(totalOf(pointsOfMonth(received, '2026-11'))).toBe((last + QUARTER - monthStart('2026-11')) / QUARTER)
  expect(totalOfMonthBefore(received, '2026-11', 0)).toBeUndefined()
})

test('dashboard: nothing is compared with a period that began before the first node', () => {
  process.env.TZ = 'UTC'
  const received = everyQuarter(at('2026-11-15T06:00:00Z'))
  const compared = (since: string) =>
    (['day', 'week', 'month'] as const).map((span) => totalBefore(received, span, at(since)) !== undefined)
  expect(compared('2026-11-14T12:00:00Z')).toEqual([false, false, false])
  expect(compared('2026-11-13T07:00:00Z')).toEqual([true, false, false])
  expect(compared('2026-11-02T00:00:00Z')).toEqual([true, true, false])
  expect(compared('2026-09-17T00:00:00Z')).toEqual([true, true, true])
  expect(totalOfMonthBefore(received, '2026-10', at('2026-09-01T00:00:00Z'))).toBeDefined()
  expect(totalOfMonthBefore(received, '2026-10', at('2026-09-01T00:00:01Z'))).toBeUndefined()
  // Nothing is known about the nodes yet, or there is none.
  expect(totalBefore(received, 'day', Math.min())).toBeUndefined()
})

test('dashboard: the last twelve months can be chosen', () => {
  process.env.TZ = 'America/Los_Angeles'
  // The evening of 31 December in Los Angeles.
  const months = lastMonths(at('2027-01-01T05:00:00Z'))
  expect([months.length, months[0], months[11]]).toEqual([12, '2026-12', '2026-01'])
  expect(monthName('2026-12')).toBe('December 2026')
  expect([datesOf('2026-02'), datesOf('2028-02'), datesOf('2026-12')].map(({ from, to }) => `${from} ${to}`)).toEqual([
    '2026-02-01 2026-02-28',
    '2028-02-01 2028-02-29',
    '2026-12-01 2026-12-31',
  ])
})

test.each([
  { span: 'day' as const, before: '2026-11-14', earlier: '2026-11-14' },
  { span: 'week' as const, before: '2026-11-08', earlier: '2026-11-03' },
  { span: 'month' as const, before: '2026-10-16', earlier: '2026-09-20' },
])(
  'dashboard: the period before the $span ends within a quarter hour, exactly as far into it as now',
  ({ span, before, earlier }) => {
    process.env.TZ = 'UTC'
    // Seven minutes into a quarter hour. In the same quarter hour of the period before, 40 of 100 sat were received in the first seven minutes.
    const received = {
      unlistedNodes: 0,
      now: at('2026-11-15T21:37:00Z'),
      quarterHours: [
        { at: at(`${earlier}T10:00:00Z`), sat: 93, satSoFar: 5 },
        { at: at(`${before}T21:30:00Z`), sat: 100, satSoFar: 40 },
        { at: at(`${before}T21:45:00Z`), sat: 7_000, satSoFar: 7_000 },
      ],
    }
    expect(totalBefore(received, span, 0)).toBe(133)
    expect([132, 133, 134].map((total) => comparison(total, totalBefore(received, span, 0) ?? 0).direction)).toEqual([
      'down',
      'same',
      'up',
    ])
  },
)

test.each([
  [0, 0, 'Nothing in the previous period'],
  [5, 0, 'Nothing in the previous period'],
  [5, 5, 'About the same as in the previous period'],
  [150, 100, '50 % more than in the previous period'],
  [50, 100, '50 % less than in the previous period'],
  [0, 100, '100 % less than in the previous period'],
  [1, 1_000, '99.9 % less than in the previous period'],
  [100_001, 100_000, '< 0.1 % more than in the previous period'],
  [4_000, 100, '40 times the previous period'],
])('dashboard: %i after %i is “%s”', (now, before, words) => {
  expect(comparison(now, before).words).toBe(words)
})
