import { expect, test } from 'vitest'
import {
  DELIVERY_OUTCOMES,
  type DeliveryFacts,
  deliveryOutcome,
  PAYMENT_OUTCOMES,
  type PaymentFacts,
  paymentOutcome,
  RELEASE_OUTCOMES,
  type ReleaseFacts,
  releaseOutcome,
} from '../../src/gateway/outcomes.ts'

/** Every combination of the values. */
function all<F extends object>(values: { [N in keyof F]: readonly F[N][] }): F[] {
  return Object.entries<readonly unknown[]>(values).reduce<object[]>(
    (facts, [name, some]) => facts.flatMap((one) => some.map((value) => ({ ...one, [name]: value }))),
    [{}],
  ) as F[]
}

const REQUESTS = ['this request', 'another'] as const
const PAYMENTS = all<PaymentFacts>({
  credential: ['right', 'expired', 'invalid'],
  settlement: ['settled', 'unpaid', 'unknown'],
  challenge: ['open', 'expired'],
  terms: ['expected', 'other'],
})
const DELIVERIES = all<DeliveryFacts>({
  use: ['single', 'reusable'],
  delivery: ['none', 'held', 'done'],
  holder: REQUESTS,
  hasReleased: [true, false],
})
const RELEASES = all<ReleaseFacts>({
  holder: [...REQUESTS, 'nobody'],
  lastReleasedBy: REQUESTS,
  hasReleasesLeft: [true, false],
})

test('C38: only a right credential of a settled payment on the expected terms is granted', () => {
  expect(PAYMENTS).toHaveLength(36)
  for (const facts of PAYMENTS) {
    const { credential, settlement, terms } = facts
    const isGranted = credential === 'right' && settlement === 'settled' && terms === 'expected'
    expect(paymentOutcome(facts) === 'granted', JSON.stringify(facts)).toBe(isGranted)
  }
})

test('C38, MPP 40, L402 55: a wrong credential reveals nothing about the payment; a right one is told to pay again only if it was not paid', () => {
  for (const facts of PAYMENTS) {
    const outcome = paymentOutcome(facts)
    if (facts.credential === 'invalid') expect(outcome).toBe('credential_invalid')
    if (facts.credential === 'expired' && facts.settlement !== 'unknown') expect(outcome).toBe('credential_expired')
    if (outcome === 'challenge_expired') expect([facts.settlement, facts.challenge]).toEqual(['unpaid', 'expired'])
    if (facts.settlement === 'unknown' && facts.credential !== 'invalid') expect(outcome).toBe('settlement_unknown')
  }
})

test('C45: a single-use payment can be claimed if it is free, and again only by the request that has claimed it', () => {
  expect(DELIVERIES).toHaveLength(24)
  for (const facts of DELIVERIES.filter(({ use }) => use === 'single')) {
    const { delivery, holder, hasReleased } = facts
    const isFree = delivery === 'none' || holder === 'this request'
    expect(deliveryOutcome(facts) === 'claim', JSON.stringify(facts)).toBe(isFree && !hasReleased)
  }
})

test('C45, L402 61: a reusable payment is never refused, and the first request claims it', () => {
  for (const facts of DELIVERIES.filter(({ use }) => use === 'reusable'))
    expect(deliveryOutcome(facts)).toBe(facts.delivery === 'none' ? 'claim_for_good' : 'deliver_again')
})

test('C48: a release that changed nothing succeeds only if this request was the last to release and no one has claimed since', () => {
  expect(RELEASES).toHaveLength(12)
  for (const facts of RELEASES) {
    const isDone = facts.holder === 'nobody' && facts.lastReleasedBy === 'this request'
    expect(releaseOutcome(facts) === 'released_already', JSON.stringify(facts)).toBe(isDone)
  }
})

test('every row of every table decides something', () => {
  const dead = <F extends object>(table: readonly (readonly [Partial<F>, unknown])[], facts: F[]) => {
    const first = (one: F) =>
      table.find(([wanted]) => Object.entries(wanted).every(([name, value]) => one[name as keyof F] === value))
    const deciding = new Set(facts.map(first))
    return table.filter((row) => !deciding.has(row))
  }
  expect(dead(PAYMENT_OUTCOMES, PAYMENTS)).toEqual([])
  expect(dead(DELIVERY_OUTCOMES, DELIVERIES)).toEqual([])
  expect(dead(RELEASE_OUTCOMES, RELEASES)).toEqual([])
})
