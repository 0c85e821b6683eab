const watchers = new Set<() => void>()
let timer: ReturnType<typeof setInterval> | undefined

/** Unix seconds. Not stored at each tick: without watchers there are no ticks, and the next page to open would begin with an old time. */
export const currentSecond = (): number => Math.floor(Date.now() / 1000)

export function watchClock(tell: () => void): () => void {
  watchers.add(tell)
  // One timer for all watchers: a list can have a hundred of them.
  timer ??= setInterval(() => {
    for (const watcher of watchers) watcher()
  }, 1000)
  return () => {
    watchers.delete(tell)
    if (watchers.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}
