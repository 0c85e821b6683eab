import type { BodyMemory } from './gate/body-memory.ts'

const FIRST_BYTES = 4_096
const GROWTH = 1.25
/** 32 kB in a second. */
const LEAST_BYTES_PER_MS = 32

/** Collects a body in one piece. A list of its chunks could take a hundred times the memory: a customer may send them byte by byte. */
export class BodyBuffer {
  readonly #maxBytes: number
  readonly #memory: BodyMemory
  #bytes = new Uint8Array()
  #length = 0
  #lastChunkMs = 0

  constructor(maxBytes: number, memory: BodyMemory) {
    this.#maxBytes = maxBytes
    this.#memory = memory
  }

  get bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length)
  }

  /**
   * Calls `expire` if the body is not complete after `timeoutMs`, plus a second for every 32 kB received: a stalled body would
   * occupy memory that others need. For a customer who has paid, `timeoutMs` also starts again with every chunk. Returns a
   * function that stops the timer.
   */
  expect(timeoutMs: number, expire: () => void): () => void {
    const startedMs = performance.now()
    let timer: ReturnType<typeof setTimeout>
    const wait = (): void => {
      const extraMs = this.#length / LEAST_BYTES_PER_MS
      const sinceMs = this.#memory.isProven ? Math.max(startedMs + extraMs, this.#lastChunkMs) : startedMs + extraMs
      const leftMs = sinceMs + timeoutMs - performance.now()
      if (leftMs <= 0) return expire()
      timer = setTimeout(wait, leftMs)
    }
    wait()
    return () => clearTimeout(timer)
  }

  /** Undefined if there was room for the chunk. */
  add(chunk: Uint8Array): 'too_large' | 'busy' | undefined {
    const length = this.#length + chunk.length
    if (length > this.#maxBytes) return 'too_large'
    if (length > this.#bytes.length && !this.#grow(length)) return 'busy'
    this.#bytes.set(chunk, this.#length)
    this.#length = length
    this.#lastChunkMs = performance.now()
    return undefined
  }

  #grow(length: number): boolean {
    const size = Math.min(Math.max(FIRST_BYTES, length, Math.floor(this.#bytes.length * GROWTH)), this.#maxBytes)
    if (!this.#memory.reserve(size - this.#bytes.length)) return false
    const larger = new Uint8Array(size)
    larger.set(this.bytes)
    this.#bytes = larger
    return true
  }
}
