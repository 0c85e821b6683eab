import { useSyncExternalStore } from 'react'

export type Unit = 'sat' | 'btc'

const KEY = 'boltyard-unit'
const watchers = new Set<() => void>()
let unit = stored()

function stored(): Unit {
  try {
    return globalThis.localStorage?.getItem(KEY) === 'btc' ? 'btc' : 'sat'
  } catch {
    // Storage is unavailable, so the choice lasts as long as the page.
    return 'sat'
  }
}

/** In which unit this browser shows amounts. It is a matter of display only: amounts are always entered in sat. */
export const currentUnit = (): Unit => unit

export function setUnit(next: Unit): void {
  unit = next
  try {
    localStorage.setItem(KEY, next)
  } catch {
    // See above.
  }
  for (const tell of watchers) tell()
}

function subscribe(tell: () => void): () => void {
  const onStorage = ({ key }: StorageEvent): void => {
    if (key !== KEY) return
    unit = stored()
    tell()
  }
  watchers.add(tell)
  window.addEventListener('storage', onStorage)
  return () => {
    watchers.delete(tell)
    window.removeEventListener('storage', onStorage)
  }
}

export const useUnit = (): Unit => useSyncExternalStore(subscribe, currentUnit)
