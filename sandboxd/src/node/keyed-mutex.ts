/** Runs one task at a time per key, in order of arrival, so that a check and the durable write that depends on it are not interleaved. */
export class KeyedMutex {
  readonly #last = new Map<string, Promise<unknown>>()

  async take<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key)
    const mine = before ? before.then(work, work) : work()
    this.#last.set(key, mine)
    try {
      return await mine
    } finally {
      if (this.#last.get(key) === mine) this.#last.delete(key)
    }
  }
}
