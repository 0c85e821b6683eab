import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { currentSecond, watchClock } from '../../src/clock.ts'
import { relative } from '../../src/text/format.ts'

const START = 1_790_000_000
beforeEach(() => {
  vi.useFakeTimers({ now: START * 1000 })
})
afterEach(() => {
  vi.useRealTimers()
})

test('dashboard: the first time on a page is not shown as the future, even if no page has shown a time for a while', () => {
  const stop = watchClock(() => {})
  vi.advanceTimersByTime(2_000)
  stop()
  vi.advanceTimersByTime(50_000)
  expect(currentSecond()).toBe(START + 52)
  expect(relative(START + 52, currentSecond())).toBe('just now')
})

test('dashboard: everything that watches the clock is called every second, and nothing runs when nothing watches it', () => {
  const [one, other] = [vi.fn(), vi.fn()]
  const stops = [watchClock(one), watchClock(other)]
  expect(vi.getTimerCount()).toBe(1)
  vi.advanceTimersByTime(3_000)
  stops[0]?.()
  vi.advanceTimersByTime(1_000)
  expect([one.mock.calls.length, other.mock.calls.length]).toEqual([3, 4])
  stops[1]?.()
  expect(vi.getTimerCount()).toBe(0)
})
