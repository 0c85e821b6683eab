import type { KeyUsage } from '../../api/developers.ts'

const DAY_MS = 86_400_000
const DAYS = 30

/** `requests` is null if the count is unknown (before counting began) or there can be none (before the key existed). */
export type DayOfUse = { day: string; requests: number | null; errors: number; isBeforeKey: boolean }

/** The last 30 days in UTC, oldest first. */
export function daysOf({ id, createdAt }: { id: string; createdAt: number }, { today, since, days }: KeyUsage): DayOfUse[] {
  const used = new Map(days.filter(({ keyId }) => keyId === id).map((one) => [one.day, one]))
  const created = new Date(createdAt * 1000).toISOString().slice(0, 10)
  return Array.from({ length: DAYS }, (_, index) => {
    const day = new Date(Date.parse(today) - (DAYS - 1 - index) * DAY_MS).toISOString().slice(0, 10)
    const found = used.get(day)
    const isKnown = found !== undefined || (day >= since && day >= created)
    return { day, requests: isKnown ? (found?.requests ?? 0) : null, errors: found?.errors ?? 0, isBeforeKey: day < created }
  })
}
