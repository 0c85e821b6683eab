import { expect, test } from 'vitest'
import { countdown, counted, duration, durationLasts, percent, relative } from '../src/text/format.ts'

const HOUR = 3600
const DAY = 24 * HOUR
const MONTH = 2_629_800
const YEAR = 31_557_600

test.each([
  [47 * HOUR + 54 * 60, 'in 47 hours'],
  // Periods that have just begun: 48 and 24 hours, 30 days, an hour and a minute.
  [47 * HOUR + 59 * 60, 'in 2 days'],
  [24 * HOUR - 3, 'in 24 hours'],
  [24 * HOUR - 299, 'in 24 hours'],
  [24 * HOUR - 301, 'in 23 hours'],
  [30 * DAY - 60, 'in 30 days'],
  [HOUR - 1, 'in 1 hour'],
  [59, 'in 1 minute'],
  [54, 'in 54 seconds'],
  [-59 * 60, '59 minutes ago'],
  [-24 * HOUR + 3, '23 hours ago'],
  [25 * HOUR, 'in 25 hours'],
  [-47 * HOUR, '47 hours ago'],
  [2 * DAY, 'in 2 days'],
  [-45 * DAY, '45 days ago'],
  [1.9 * YEAR, 'in 22 months'],
  [-2 * YEAR, '2 years ago'],
])('dashboard: %i s from now is “%s”, not a day, month or year that may be the wrong one', (away, words) => {
  expect(relative(1_000_000_000 + away, 1_000_000_000)).toBe(words)
})

test('dashboard: one of something is not “1 connections”', () => {
  expect([0, 1, 1_234].map((count) => counted(count, 'connection', 'connections'))).toEqual([
    '0 connections',
    '1 connection',
    '1\u2009234 connections',
  ])
})

test('dashboard: no relative time names a day of the calendar', () => {
  for (let away = 11; away < 4 * YEAR; away = Math.ceil(away * 1.07)) {
    for (const sign of [1, -1]) {
      const words = relative(5_000_000_000 + sign * away, 5_000_000_000)
      expect(words).toMatch(/^in \d+ \w+$|^\d+ \w+ ago$|^just now$/)
    }
  }
})

test.each([1, 59, 60, 61, 119, 4000, 2 * DAY + 5, 100 * DAY, 5 * MONTH, 2.2 * YEAR, 3 * YEAR, 3.6 * YEAR])(
  'dashboard: the text for %i s that are running out stays right until it is shown again',
  (left) => {
    const later = durationLasts(left)
    expect(later).toBeGreaterThan(0)
    expect(duration(left - later + 1)).toBe(duration(left))
    if (left >= 60) expect(duration(left - later)).not.toBe(duration(left))
  },
)

test.each([
  [86_400, '24 h 0 min'],
  [86_399, '23 h 59 min'],
  [3_600, '1 h 0 min'],
  [3_599, '59:59'],
  [65, '1:05'],
  [-1, '0:00'],
])('dashboard: %i s are counted down as “%s”', (left, words) => {
  expect(countdown(left)).toBe(words)
})

test.each([
  [0, 5, '0 %'],
  [5, 5, '100 %'],
  [0, 0, '0 %'],
  [11_661, 11_663, '99.9 %'],
  [1, 100_000, '< 0.1 %'],
  [1, 202, '0.5 %'],
  [996, 10_000, '10 %'],
  [1, 3, '33 %'],
  [989, 1_000, '99 %'],
  [1_001, 1_000, '101 %'],
])('dashboard: %i of %i is “%s”: never all or nothing unless it is', (part, whole, words) => {
  expect(percent(part, whole)).toBe(words)
})
