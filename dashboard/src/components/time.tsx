import { useSyncExternalStore } from 'react'
import { currentSecond, watchClock } from '../clock.ts'
import { exact, relative } from '../text/format.ts'

/** The current Unix time, updated every `step` seconds. */
export function useNow(step = 1): number {
  return useSyncExternalStore(watchClock, () => {
    const now = currentSecond()
    return now - (now % step)
  })
}

/** Whether the time `at` has passed. Renders again only when that changes. */
export const useIsAfter = (at: number): boolean => useSyncExternalStore(watchClock, () => currentSecond() > at)

/** A relative time, with the exact time on hover. */
export function Time({ at }: { at: number }) {
  // Only the words are watched, so most instances do not render again every second.
  const words = useSyncExternalStore(watchClock, () => relative(at, currentSecond()))
  return (
    <time dateTime={new Date(at * 1000).toISOString()} title={exact(at)}>
      {words}
    </time>
  )
}
