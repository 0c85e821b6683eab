import type { BodyMemory } from './gate/body-memory.ts'

const FIRST_BYTES = 4_096

/** Collects a body in one piece. A list of its chunks could take a hundred times the memory: a customer may send them byte by byte. */
export class BodyBuffer {
  readonly #maxBytes: number
  readonly #memory: BodyMemory
  #bytes = new Uint8Array()
  #length = 0

  constructor(maxBytes: number, memory: BodyMemory) {
    this.#maxBytes = maxBytes
    this.#memory = memory
  }

  get bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length)
  }

  /** Undefined if there was room for the chunk. */
  add(chunk: Uint8Array): 'too_large' | 'busy' | undefined {
    const length = this.#length + chunk.length
    if (length > this.#maxBytes) return 'too_large'
    if (length > this.#bytes.length && !this.#grow(length)) return 'busy'
    this.#bytes.set(chunk, this.#length)
    this.#length = length
    return undefined
  }

  #grow(length: number): boolean {
    let size = FIRST_BYTES
    while (size < length) size *= 2
    size = Math.min(size, this.#maxBytes)
    if (!this.#memory.reserve(size - this.#bytes.length)) return false
    const larger = new Uint8Array(size)
    larger.set(this.bytes)
    this.#bytes = larger
    return true
  }
}
