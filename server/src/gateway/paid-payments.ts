import type { PaidRow, Proof } from '../store/payments.ts'

const MOST = 5_000

/**
 * What is paid stays paid, with the same receipt, and a merchant may ask again as often as its customer comes back: what one proof has
 * once been told it can be told again without the store. By the whole proof: another credential of the same payment is not known here.
 */
export class PaidPayments {
  readonly #answers = new Map<string, PaidRow>()

  get(call: { accountId: string }, id: string, proof: Proof): PaidRow | undefined {
    return this.#answers.get(nameOf(call, id, proof))
  }

  set(call: { accountId: string }, payment: PaidRow, proof: Proof): void {
    const [oldest] = this.#answers.size >= MOST ? this.#answers.keys() : []
    if (oldest !== undefined) this.#answers.delete(oldest)
    this.#answers.set(nameOf(call, payment.id, proof), payment)
  }
}

/** The hash names the preimage, and the challenge all the rest; of a key that is no longer the present one there are no proofs. */
function nameOf({ accountId }: { accountId: string }, id: string, { challenge, paymentHash }: Proof): string {
  return `${accountId} ${id} ${paymentHash.toString('latin1')} ${challenge}`
}
