/** The memory that request bodies may take in all paywalls of this process together, unless one paywall accepts larger bodies. */
export const MOST_BODY_BYTES = 67_108_864

/** A small body takes no more memory than its connection, so it is accepted even while large ones fill the memory. */
const SMALL_BODY_BYTES = 4_096

let reserved = 0

/**
 * The memory for the body of one request. An x402 payment is bound to the body, so it is read before the payment can be checked: without a
 * limit, anyone with many connections and an invented payment could fill the memory of the shop.
 */
export class BodyMemory {
  readonly isProven: boolean
  readonly #limit: number
  #bytes = 0
  #isReleased = false

  /**
   * Requests without a payment, or with one that proves nothing, may fill only half of the memory, so that customers who have
   * paid are still served.
   */
  constructor(maxBodyBytes: number, isProven: boolean) {
    const most = Math.max(MOST_BODY_BYTES, 2 * maxBodyBytes)
    this.isProven = isProven
    this.#limit = isProven ? most : most / 2
  }

  /** False if there is no room, or if the request is over. */
  reserve(bytes: number): boolean {
    const isSmall = this.#bytes + bytes <= SMALL_BODY_BYTES
    if (this.#isReleased || !(isSmall || reserved + bytes <= this.#limit)) return false
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
