export type Hits = { hits: number; remainingMs: number }

/** Beyond this number, the oldest window is forgotten. */
const MOST_KEYS = 100_000

/** Counts hits in this process. A window begins with its first hit. */
export class MemoryHits {
  readonly #windows = new Map<string, { hits: number; endsAtMs: number }>()

  count(key: string, windowMs: number): Hits {
    const known = this.#windows.get(key)
    const nowMs = performance.now()
    if (known && known.endsAtMs > nowMs) return { hits: ++known.hits, remainingMs: known.endsAtMs - nowMs }
    this.set(key, { hits: 1, remainingMs: windowMs })
    return { hits: 1, remainingMs: windowMs }
  }

  set(key: string, { hits, remainingMs }: Hits): void {
    this.#windows.delete(key)
    this.#windows.set(key, { hits, endsAtMs: performance.now() + remainingMs })
    for (const oldest of this.#windows.keys()) {
      if (this.#windows.size <= MOST_KEYS) return
      this.#windows.delete(oldest)
    }
  }
}
