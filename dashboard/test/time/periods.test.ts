import { afterEach, expect, test } from 'vitest'
import { periodName, periodOfMonth, rangeName, rangeOf } from '../../src/text/periods.ts'

const zone = process.env.TZ
afterEach(() => {
  process.env.TZ = zone
})
const at = (text: string): number => Date.parse(text) / 1000

test('dashboard: periods begin and end at midnight in the viewer’s time zone, also when the clock changes', () => {
  process.env.TZ = 'America/Los_Angeles'
  // Sunday evening in Los Angeles, and Monday in UTC.
  const now = new Date('2026-11-16T03:00:00Z')
  expect(rangeOf('today', {}, now)).toEqual({ from: at('2026-11-15T00:00:00-08:00') })
  expect(rangeOf('week', {}, now)).toEqual({ from: at('2026-11-09T00:00:00-08:00') })
  expect(rangeOf('7d', {}, now)).toEqual({ from: at('2026-11-09T00:00:00-08:00') })
  // Daylight saving time ended on 1 November, at two in the morning.
  expect(rangeOf('month', {}, now)).toEqual({ from: at('2026-11-01T00:00:00-07:00') })
  const october = { from: at('2026-10-01T00:00:00-07:00'), to: at('2026-11-01T00:00:00-07:00') }
  expect(rangeOf('last-month', {}, now)).toEqual(october)
  expect(rangeOf('custom', { from: '2026-10-01', to: '2026-10-31' }, now)).toEqual(october)
  expect(rangeName(october)).toBe('1 Oct 2026 – 31 Oct 2026')
})

test('dashboard: “last month” says which one, in the viewer’s time zone', () => {
  process.env.TZ = 'America/Los_Angeles'
  const now = new Date('2026-11-01T03:00:00Z')
  expect(periodName('month', now)).toBe('This month (October)')
  expect(periodName('last-month', now)).toBe('Last month (September)')
  expect(periodName('7d', now)).toBe('Last 7 days')
})

test('dashboard: this month and the last one go by their names, others by dates, with the same payments', () => {
  process.env.TZ = 'America/Los_Angeles'
  // Still October in Los Angeles.
  const now = new Date('2026-11-01T03:00:00Z')
  const period = (month: string) => periodOfMonth(month, at('2026-11-01T03:00:00Z'))
  expect(period('2026-10')).toEqual({ period: 'month' })
  expect(period('2026-09')).toEqual({ period: 'last-month' })
  expect(period('2026-08')).toEqual({ period: 'custom', from: '2026-08-01', to: '2026-08-31' })
  expect(period('2025-10')).toEqual({ period: 'custom', from: '2025-10-01', to: '2025-10-31' })
  expect(rangeOf('last-month', {}, now)).toEqual(rangeOf('custom', { from: '2026-09-01', to: '2026-09-30' }, now))
})

test('dashboard: half a period has one end, and nonsense has none', () => {
  process.env.TZ = 'UTC'
  const now = new Date('2026-11-16T03:00:00Z')
  expect(rangeOf('custom', { to: '2026-10-31' }, now)).toEqual({ to: at('2026-11-01T00:00:00Z') })
  expect(rangeOf('custom', { from: 'soon', to: '' }, now)).toEqual({})
  expect(rangeOf(undefined, { from: '2026-10-01' }, now)).toEqual({})
})
