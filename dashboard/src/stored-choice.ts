import { useSyncExternalStore } from 'react'

/** One of a few values that this browser remembers. The first one applies until another is chosen. */
export function storedChoice<T extends string>(key: string, choices: readonly [T, ...T[]]) {
  const watchers = new Set<() => void>()
  let chosen = stored()

  function stored(): T {
    try {
      const found = globalThis.localStorage?.getItem(key)
      return choices.find((choice) => choice === found) ?? choices[0]
    } catch {
      // Storage is unavailable, so the choice lasts as long as the page.
      return choices[0]
    }
  }
  const current = (): T => chosen
  function set(next: T): void {
    chosen = next
    try {
      localStorage.setItem(key, next)
    } catch {
      // Storage is unavailable, as in `stored`.
    }
    for (const tell of watchers) tell()
  }
  function subscribe(tell: () => void): () => void {
    const onStorage = (event: StorageEvent): void => {
      if (event.key !== key) return
      chosen = stored()
      tell()
    }
    watchers.add(tell)
    window.addEventListener('storage', onStorage)
    return () => {
      watchers.delete(tell)
      window.removeEventListener('storage', onStorage)
    }
  }
  return { current, set, use: (): T => useSyncExternalStore(subscribe, current) }
}
