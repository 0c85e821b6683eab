/** A challenge lives this long; after that nobody can pay it, and its place is free. */
const CHALLENGE_LIFE_MS = 300_000
/** Bounds the memory when visits come from everywhere. */
const MOST_VISITS = 100_000

type OpenVisit = { address: string; until: number; paymentIds: string[] }

type Place = {
  /** The visit's challenges: whichever is paid frees the place. */
  fill(paymentIds: string[]): void
  leave(): void
}

/** Every unpaid visit costs an invoice of the node, so one address may only have so many of them open. */
export class OpenVisits {
  /** In the order of their coming, which is also the order in which they end. */
  readonly #visits = new Set<OpenVisit>()
  readonly #byAddress = new Map<string, Set<OpenVisit>>()
  readonly #byPayment = new Map<string, OpenVisit>()

  /** Takes a place at once, since many may ask at the same time; or the seconds until one is free. */
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

/** Of all paywalls in this process: who visits many routes is still one visitor. */
export const openVisits = new OpenVisits()
