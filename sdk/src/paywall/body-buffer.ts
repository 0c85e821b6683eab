const FIRST_BYTES = 4_096

/** Collects a body in one piece. A list of its chunks could take a hundred times the memory: a customer may send them byte by byte. */
export class BodyBuffer {
  readonly #maxBytes: number
  readonly #reserve: (bytes: number) => boolean
  #memory = new Uint8Array()
  #length = 0

  /** `reserve` is asked for memory as the body grows. */
  constructor(maxBytes: number, reserve: (bytes: number) => boolean) {
    this.#maxBytes = maxBytes
    this.#reserve = reserve
  }

  get bytes(): Uint8Array {
    return this.#memory.subarray(0, this.#length)
  }

  /** Undefined if there was room for the chunk. */
  add(chunk: Uint8Array): 'too_large' | 'busy' | undefined {
    const length = this.#length + chunk.length
    if (length > this.#maxBytes) return 'too_large'
    if (length > this.#memory.length && !this.#grow(length)) return 'busy'
    this.#memory.set(chunk, this.#length)
    this.#length = length
    return undefined
  }

  #grow(length: number): boolean {
    let size = FIRST_BYTES
    while (size < length) size *= 2
    size = Math.min(size, this.#maxBytes)
    if (!this.#reserve(size - this.#memory.length)) return false
    const larger = new Uint8Array(size)
    larger.set(this.bytes)
    this.#memory = larger
    return true
  }
}
