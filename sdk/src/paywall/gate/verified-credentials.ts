import type { RedeemedPayment } from '../../types.ts'
import type { Terms } from '../terms.ts'

const LONGEST_MS = 60_000
const MOST = 10_000

type Verified = { nodeId: string; resource: string; payment: RedeemedPayment; until: number }

/**
 * Reusable L402 credentials that the gateway accepted recently, by their digest: the credentials themselves are not kept. Each entry says
 * what the credential was accepted for, so that a credential for a cheap route does not open an expensive one.
 */
export class VerifiedCredentials {
  readonly #verified = new Map<string, Verified>()

  find(digest: string, { nodeId, resource, minAmountSat }: Terms, now = Date.now()): RedeemedPayment | undefined {
    const known = this.#verified.get(digest)
    if (known === undefined) return undefined
    if (known.until <= now) {
      this.#verified.delete(digest)
      return undefined
    }
    const { payment } = known
    const isSame = known.resource === resource && known.nodeId === nodeId
    return isSame && payment.amountSat >= minAmountSat ? payment : undefined
  }

  /** `expiresAt` is the credential's own expiry, in Unix seconds. */
  add(digest: string, { nodeId, resource }: Terms, payment: RedeemedPayment, expiresAt: number, now = Date.now()): void {
    this.#verified.delete(digest)
    this.#verified.set(digest, { nodeId, resource, payment, until: Math.min(now + LONGEST_MS, expiresAt * 1000) })
    if (this.#verified.size <= MOST) return
    const [oldest] = this.#verified.keys()
    if (oldest !== undefined) this.#verified.delete(oldest)
  }
}
