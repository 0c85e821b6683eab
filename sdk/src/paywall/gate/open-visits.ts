/** The lifetime of a challenge. After that it can no longer be paid, and its slot is free. */
const CHALLENGE_LIFE_MS = 300_000
/** Bounds the memory if visits come from many addresses. */
const MOST_VISITS = 100_000

type OpenVisit = { address: string; until: number; paymentIds: string[] }

type Place = {
  /** The visit's challenges. Paying any of them frees the slot. */
  fill(paymentIds: string[]): void
  leave(): void
}

/** Every unpaid visit costs the node an invoice, so the number of open ones per address is limited. */
export class OpenVisits {
  /** In order of arrival, which is also the order of expiry. */
  readonly #visits = new Set<OpenVisit>()
  readonly #byAddress = new Map<string, Set<OpenVisit>>()
  readonly #byPayment = new Map<string, OpenVisit>()

  /** Takes a slot or, if none is free, returns the seconds until one is. Synchronous, because requests are concurrent. */
  enter(address: string, most: number, now = Date.now()): Place | { retryAfterSeconds: number } {
    for (const visit of this.#visits) {
      if (visit.until > now && this.#visits.size < MOST_VISITS) break
      this.#remove(visit)
    }
    const open = this.#byAddress.get(address) ?? new Set()
    const [oldest] = open
    if (oldest && open.size >= most) return { retryAfterSeconds: Math.max(1, Math.ceil((oldest.until - now) / 1000)) }
    const visit: OpenVisit = { address, until: now + CHALLENGE_LIFE_MS, paymentIds: [] }
    this.#visits.add(visit)
    this.#byAddress.set(address, open.add(visit))
    return {
      fill: (paymentIds) => {
        if (!this.#visits.has(visit)) return
        visit.paymentIds = paymentIds
        for (const id of paymentIds) this.#byPayment.set(id, visit)
      },
      leave: () => this.#remove(visit),
    }
  }

  paid(paymentId: string): void {
    const visit = this.#byPayment.get(paymentId)
    if (visit) this.#remove(visit)
  }

  #remove(visit: OpenVisit): void {
    this.#visits.delete(visit)
    for (const id of visit.paymentIds) this.#byPayment.delete(id)
    const open = this.#byAddress.get(visit.address)
    open?.delete(visit)
    if (open?.size === 0) this.#byAddress.delete(visit.address)
  }
}

/** Shared by all paywalls in this process, so that visiting many routes does not raise the limit. */
export const openVisits = new OpenVisits()
