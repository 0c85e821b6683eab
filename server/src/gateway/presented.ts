import { type L402Credential, readL402 } from '../../../protocol/src/l402.ts'
import { claimIn, type MppClaim, type MppCredential, readMpp } from '../../../protocol/src/mpp.ts'
import { Refusal } from '../../../protocol/src/refusal.ts'
import type { X402Payment, X402Refusal } from '../../../protocol/src/x402.ts'
import { primitives } from '../platform/primitives.ts'
import type { PaymentRow } from '../store/payments/payments.ts'
import type { ProtocolKey } from './protocol-keys.ts'

/** A credential as it was sent. */
export interface Presented {
  /** The credential's claim, if the challenge's id (an HMAC) proves that the challenge was issued with this key. */
  mppClaim(key: ProtocolKey): MppClaim | Refusal
  /** Call only for payments issued as L402. */
  l402(): L402Credential | Refusal
  /** Call only for payments issued as x402. Undefined: the credential proves the payment. */
  x402(payment: PaymentRow): Refusal | undefined
}

/** The value of an Authorization header. An MPP credential in it is parsed only once, and verified once per key. */
export class PresentedHeader implements Presented {
  readonly #text: string
  #mpp: MppCredential | Refusal | undefined
  readonly #claims = new Map<string, MppClaim | Refusal>()

  constructor(text: string) {
    this.#text = text
  }

  mppClaim({ id, mpp: key }: ProtocolKey): MppClaim | Refusal {
    this.#mpp ??= readMpp(this.#text)
    if (this.#mpp instanceof Refusal) return this.#mpp
    const claim = this.#claims.get(id) ?? claimIn(primitives, key, this.#mpp)
    this.#claims.set(id, claim)
    return claim
  }

  l402(): L402Credential | Refusal {
    return readL402(this.#text)
  }

  /** Without the hash of the request, it is unknown whether the payment is for that request. */
  x402(): Refusal {
    return new Refusal('invalid', 'This is an x402 payment. Redeem it at POST /v1/gateway/payments/redeem.')
  }
}

/** The value of a PAYMENT-SIGNATURE header, and how to judge it. */
export class PresentedPayment implements Presented {
  readonly payment: X402Payment
  readonly x402: (payment: PaymentRow) => X402Refusal | undefined

  constructor(payment: X402Payment, judge: (payment: PaymentRow) => X402Refusal | undefined) {
    this.payment = payment
    this.x402 = judge
  }

  mppClaim(): Refusal {
    return otherProtocol()
  }

  l402(): Refusal {
    return otherProtocol()
  }
}

const otherProtocol = (): Refusal => new Refusal('invalid', 'The payment was issued in another protocol.')
