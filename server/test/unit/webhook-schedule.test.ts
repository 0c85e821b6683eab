import { expect, test } from 'vitest'
import { readConfig } from '../../src/config.ts'
import { retryAfterSeconds, retryDelaySeconds } from '../../src/events/webhooks/schedule.ts'

const NOW = 'Mon, 16 Nov 2026 12:00:00 GMT'

test('C57: nine pauses, each up to a tenth longer, and then none', () => {
  const promised = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]
  for (const [index, seconds] of promised.entries()) {
    expect(retryDelaySeconds(index + 1, undefined, () => 0)).toBe(seconds)
    expect(retryDelaySeconds(index + 1, undefined, () => 1)).toBeCloseTo(seconds * 1.1)
  }
  expect(retryDelaySeconds(10, undefined)).toBeNull()
  expect(retryDelaySeconds(10, 60), 'Retry-After does not add an attempt').toBeNull()
})

test('C57: events must be kept until the schedule has ended', () => {
  let seconds = 0
  for (let failures = 1; failures < 10; failures++) seconds += retryDelaySeconds(failures, undefined, () => 1) ?? 0
  const days = Math.ceil(seconds / 86_400)
  expect(readConfig({ EVENT_RETENTION_DAYS: String(days) }).eventRetentionDays).toBe(days)
  expect(() => readConfig({ EVENT_RETENTION_DAYS: String(days - 1) })).toThrow(
    /^EVENT_RETENTION_DAYS: must be a whole number from 4 /,
  )
})

test('C57: Retry-After makes a pause longer, never shorter, and at most a day', () => {
  expect(retryDelaySeconds(1, 60, () => 0)).toBe(60)
  expect(retryDelaySeconds(2, 60, () => 0)).toBe(300)
  expect(retryDelaySeconds(1, 1e9, () => 0)).toBe(86_400)
})

test('C57: Retry-After is a number of seconds or a date, by the clock of the receiver', () => {
  expect(retryAfterSeconds('120', NOW)).toBe(120)
  expect(retryAfterSeconds('Mon, 16 Nov 2026 12:02:00 GMT', NOW, 0)).toBe(120)
  expect(retryAfterSeconds('Mon, 16 Nov 2026 12:02:00 GMT', undefined, Date.parse(NOW))).toBe(120)
  expect(retryAfterSeconds('Mon, 16 Nov 2026 11:00:00 GMT', NOW)).toBe(0)
  for (const nonsense of ['', '-1', 'soon', '1.5e3s', '2026-11-16', undefined])
    expect(retryAfterSeconds(nonsense, NOW)).toBeUndefined()
})
