import { type L402Credential, readL402 } from '../../../protocol/src/l402.ts'
import { claimIn, type MppClaim, type MppCredential, readMpp } from '../../../protocol/src/mpp.ts'
import { Refusal } from '../../../protocol/src/refusal.ts'
import { primitives } from '../platform/primitives.ts'
import type { ProtocolKey } from './protocol-keys.ts'

/** A credential as it was sent. Parsed once, by the first step that needs it, and verified once per key. */
export class Presented {
  readonly text: string
  #mpp: MppCredential | Refusal | undefined
  readonly #claims = new Map<string, MppClaim | Refusal>()

  constructor(text: string) {
    this.text = text
  }

  /** The credential's claim, if the challenge's id (an HMAC) proves that the challenge was issued with this key. */
  mppClaim({ id, mpp: key }: ProtocolKey): MppClaim | Refusal {
    this.#mpp ??= readMpp(this.text)
    if (this.#mpp instanceof Refusal) return this.#mpp
    const claim = this.#claims.get(id) ?? claimIn(primitives, key, this.#mpp)
    this.#claims.set(id, claim)
    return claim
  }

  /** Call only for payments issued as L402. */
  l402(): L402Credential | Refusal {
    return readL402(this.text)
  }
}
