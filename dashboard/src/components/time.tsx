import { useEffect, useSyncExternalStore } from 'react'
import { exact, relative } from '../text/format.ts'

const watchers = new Set<() => void>()
let now = Math.floor(Date.now() / 1000)
let timer: ReturnType<typeof setInterval> | undefined

function subscribe(tell: () => void): () => void {
  watchers.add(tell)
  // One timer for all instances: a list can have a hundred of them.
  timer ??= setInterval(() => {
    now = Math.floor(Date.now() / 1000)
    for (const watcher of watchers) watcher()
  }, 1000)
  return () => {
    watchers.delete(tell)
    if (watchers.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

/** The current Unix time, updated every `step` seconds. */
export function useNow(step = 1): number {
  useEffect(() => {
    now = Math.floor(Date.now() / 1000)
  }, [])
  return useSyncExternalStore(subscribe, () => now - (now % step))
}

/** A relative time, with the exact time on hover. */
export function Time({ at }: { at: number }) {
  // Only the words are watched, so most instances do not render again every second.
  const words = useSyncExternalStore(subscribe, () => relative(at, now))
  return (
    <time dateTime={new Date(at * 1000).toISOString()} title={exact(at)}>
      {words}
    </time>
  )
}
