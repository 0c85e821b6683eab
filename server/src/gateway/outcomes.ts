/**
 * The outcome for every state of a payment, of its delivery and of a release. In each table, the first row whose facts all hold decides.
 * The fast statements (`markPaidByProof`, `claimDelivery`) express the rows that grant as WHERE clauses, and refuse nothing themselves:
 * whatever they do not grant is decided here.
 */
type Table<F, O> = readonly (readonly [facts: Partial<F>, outcome: O])[]

function decide<F extends object, O>(table: Table<F, O>, facts: F): O {
  const row = table.find(([wanted]) => Object.entries(wanted).every(([name, value]) => facts[name as keyof F] === value))
  if (!row) throw new Error(`no outcome for ${JSON.stringify(facts)}`)
  return row[1]
}

/** A credential presented for a payment. */
export type PaymentFacts = {
  /** `expired`: correct, but past its own expiry. */
  credential: 'right' | 'expired' | 'invalid'
  /**
   * `settled` also where it makes no difference: for invalid credentials and expired L402 credentials. `unknown`: the node has
   * not answered. A preimage alone proves nothing: the payee's node knows it before anyone pays.
   */
  settlement: 'settled' | 'unpaid' | 'unknown'
  challenge: 'open' | 'expired'
  terms: 'expected' | 'other'
}
export type PaymentOutcome =
  | 'granted'
  | 'credential_invalid'
  | 'credential_expired'
  | 'settlement_unknown'
  | 'challenge_expired'
  | 'not_settled'
  | 'other_terms'

export const PAYMENT_OUTCOMES: Table<PaymentFacts, PaymentOutcome> = [
  [{ credential: 'invalid' }, 'credential_invalid'],
  [{ settlement: 'unknown' }, 'settlement_unknown'],
  [{ credential: 'expired' }, 'credential_expired'],
  [{ settlement: 'unpaid', challenge: 'expired' }, 'challenge_expired'],
  [{ settlement: 'unpaid' }, 'not_settled'],
  // A valid credential for a different resource: refused before anything is claimed, so that it is not used up.
  [{ terms: 'other' }, 'other_terms'],
  [{}, 'granted'],
]
export const paymentOutcome = (facts: PaymentFacts): PaymentOutcome => decide(PAYMENT_OUTCOMES, facts)

/** A request to deliver a granted payment. */
export type DeliveryFacts = {
  /** L402 credentials can be reused until they expire, unless the shop asks for a single use. */
  use: 'single' | 'reusable'
  /** `none`: not claimed, or the last claim has lapsed. `held`: claimed, not confirmed. `done`: final. */
  delivery: 'none' | 'held' | 'done'
  /** The holder of the last claim. */
  holder: 'this request' | 'another'
  hasReleased: boolean
}
export type DeliveryOutcome =
  | 'claim'
  | 'claim_for_good'
  | 'deliver_again'
  | 'released_before'
  | 'in_progress'
  | 'already_redeemed'

export const DELIVERY_OUTCOMES: Table<DeliveryFacts, DeliveryOutcome> = [
  // No one confirms a reusable delivery, so its claim is final immediately.
  [{ use: 'reusable', delivery: 'none' }, 'claim_for_good'],
  [{ use: 'reusable' }, 'deliver_again'],
  // A late retry must not reclaim a delivery that its own request has released.
  [{ hasReleased: true }, 'released_before'],
  [{ delivery: 'none' }, 'claim'],
  // The request is repeated because its response was lost: return the same claim, with its original hold.
  [{ holder: 'this request' }, 'claim'],
  [{ delivery: 'held' }, 'in_progress'],
  [{ delivery: 'done' }, 'already_redeemed'],
]
export const deliveryOutcome = (facts: DeliveryFacts): DeliveryOutcome => decide(DELIVERY_OUTCOMES, facts)

/** The facts about a release that changed nothing. */
export type ReleaseFacts = {
  holder: 'this request' | 'another' | 'nobody'
  lastReleasedBy: 'this request' | 'another'
  hasReleasesLeft: boolean
}
export type ReleaseOutcome = 'released_already' | 'released_too_often' | 'not_claimed'

export const RELEASE_OUTCOMES: Table<ReleaseFacts, ReleaseOutcome> = [
  [{ holder: 'this request', hasReleasesLeft: false }, 'released_too_often'],
  // The response to the first release was lost. If the delivery has been claimed again, this row must not match: the payment is
  // no longer redeemable.
  [{ holder: 'nobody', lastReleasedBy: 'this request' }, 'released_already'],
  [{}, 'not_claimed'],
]
export const releaseOutcome = (facts: ReleaseFacts): ReleaseOutcome => decide(RELEASE_OUTCOMES, facts)
