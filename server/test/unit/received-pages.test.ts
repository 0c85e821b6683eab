import fc from 'fast-check'
import { expect, test } from 'vitest'
import { placeAfter, RECEIVED_PAGE, type ReceivedPayment, type ReceivedPlace } from '../../src/lightning/phoenixd/received.ts'

/** What phoenixd lists at this place. */
const pageOf = (
  payments: ReceivedPayment[],
  { fromMs, toMs = Number.POSITIVE_INFINITY, offset }: ReceivedPlace,
): ReceivedPayment[] =>
  payments
    .filter(({ completedAtMs }) => completedAtMs >= fromMs && completedAtMs <= toMs)
    .sort((one, other) => other.completedAtMs - one.completedAtMs)
    .slice(offset, offset + RECEIVED_PAGE)

/** Reads all pages, and says which payments they had. `change`: what happens to the node after a page. */
function readAll(
  payments: ReceivedPayment[],
  change: (payments: ReceivedPayment[], page: number) => ReceivedPayment[],
): Set<string> {
  const seen = new Set<string>()
  let now = payments
  let place: ReceivedPlace = { fromMs: 0, offset: 0 }
  for (let number = 1; number < 100; number++) {
    const page = pageOf(now, place)
    for (const { paymentHash } of page) seen.add(paymentHash)
    if (page.length < RECEIVED_PAGE) return seen
    place = placeAfter(place, page)
    now = change(now, number)
  }
  throw new Error('the list has no end')
}

let last = 0
const at = (completedAtMs: number): ReceivedPayment => ({ paymentHash: `${++last}`, amountSat: 1, completedAtMs })

test('dashboard: a list of receipts misses nothing, whatever the node receives or loses between two pages', () => {
  const times = fc.array(fc.integer({ min: 0, max: 5_000 }), { minLength: 3 * RECEIVED_PAGE, maxLength: 6 * RECEIVED_PAGE })
  const changes = fc.array(fc.record({ received: fc.nat(900), lost: fc.nat(900) }), { minLength: 1, maxLength: 8 })
  fc.assert(
    fc.property(times, changes, (completed, changed) => {
      const lost = new Set<string>()
      const before = completed.map(at)
      const seen = readAll(before, (payments, page) => {
        const { received, lost: count } = changed[page % changed.length] ?? { received: 0, lost: 0 }
        // The newest are lost: a restore brings back an earlier state.
        const newestFirst = payments.toSorted((one, other) => other.completedAtMs - one.completedAtMs)
        for (const { paymentHash } of newestFirst.slice(0, count)) lost.add(paymentHash)
        return [...Array.from({ length: received }, () => at(6_000 + page)), ...newestFirst.slice(count)]
      })
      expect(before.filter(({ paymentHash }) => !seen.has(paymentHash) && !lost.has(paymentHash))).toEqual([])
    }),
    { numRuns: 50 },
  )
})

test('dashboard: a list of receipts of one millisecond is read to its end', () => {
  const payments = Array.from({ length: 3 * RECEIVED_PAGE }, () => at(7)).concat(Array.from({ length: 10 }, () => at(6)))
  expect(readAll(payments, (same) => same).size).toBe(payments.length)
})
