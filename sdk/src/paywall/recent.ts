/**
 * What happened lately, so much and no more. Nothing may depend on its being here: a process ends, another one answers the next request,
 * and strangers decide how much there is to remember.
 */
export class Recent<V> {
  readonly #most: number
  readonly #values = new Map<string, V>()

  constructor(most: number) {
    this.#most = most
  }

  get(key: string): V | undefined {
    return this.#values.get(key)
  }

  /** For one taker only. */
  take(key: string): V | undefined {
    const value = this.#values.get(key)
    this.#values.delete(key)
    return value
  }

  set(key: string, value: V): void {
    this.#values.delete(key)
    this.#values.set(key, value)
    if (this.#values.size <= this.#most) return
    const [oldest] = this.#values.keys()
    if (oldest !== undefined) this.#values.delete(oldest)
  }
}
