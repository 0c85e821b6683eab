/** How much of request bodies all paywalls of this process keep in memory, unless one of them accepts larger bodies. */
export const MOST_BODY_BYTES = 67_108_864

let reserved = 0

/**
 * The memory for the body of one request. An x402 payment is bound to the body, so it is read before the payment can be checked: without a
 * limit, anyone with many connections and an invented payment could fill the memory of the shop.
 */
export class BodyMemory {
  readonly #limit: number
  #bytes = 0
  #isReleased = false

  constructor(maxBodyBytes: number) {
    this.#limit = Math.max(MOST_BODY_BYTES, maxBodyBytes)
  }

  /** False if there is no room, or if the request is over. */
  reserve(bytes: number): boolean {
    if (this.#isReleased || reserved + bytes > this.#limit) return false
    this.#bytes += bytes
    reserved += bytes
    return true
  }

  release(): void {
    this.#isReleased = true
    reserved -= this.#bytes
    this.#bytes = 0
  }
}
