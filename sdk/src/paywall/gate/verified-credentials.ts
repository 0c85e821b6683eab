import type { RedeemedPayment } from '../../types.ts'
import type { Terms } from '../terms.ts'

const LONGEST_MS = 60_000
const MOST = 10_000

type Verified = { payment: RedeemedPayment; until: number }

/**
 * Reusable L402 credentials that the gateway accepted recently. Only a digest of each is kept. The cache key includes what the credential
 * was accepted for, so that a credential for a cheap route does not open an expensive one.
 */
export class VerifiedCredentials {
  readonly #verified = new Map<string, Verified>()

  find(digest: string, terms: Terms, now = Date.now()): RedeemedPayment | undefined {
    const key = keyOf(digest, terms)
    const known = this.#verified.get(key)
    if (known === undefined) return undefined
    if (known.until <= now) this.#verified.delete(key)
    return known.until > now && known.payment.amountSat >= terms.minAmountSat ? known.payment : undefined
  }

  /** `expiresAt` is the credential's own expiry, in Unix seconds. */
  add(digest: string, terms: Terms, payment: RedeemedPayment, expiresAt: number, now = Date.now()): void {
    const key = keyOf(digest, terms)
    this.#verified.delete(key)
    this.#verified.set(key, { payment, until: Math.min(now + LONGEST_MS, expiresAt * 1000) })
    if (this.#verified.size <= MOST) return
    const [oldest] = this.#verified.keys()
    if (oldest !== undefined) this.#verified.delete(oldest)
  }
}

/** Only L402 credentials are cached, so the key does not need the protocol. */
const keyOf = (digest: string, { nodeId, resource }: Terms): string => `${digest} ${nodeId} ${resource}`
