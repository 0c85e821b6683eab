import type { Query } from '@tanstack/react-query'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { ledgerQuery, usageQuery } from '../src/api/credit.ts'
import { paymentQuery, paymentsQuery } from '../src/api/payments.ts'
import { nodeBalancesQuery, nodePaymentsQuery, overviewQuery } from '../src/api/queries.ts'
import { receivedQuery } from '../src/api/received.ts'

/** The time in these tests, in Unix seconds. */
const NOW = 1_800_000_000

beforeEach(() => {
  vi.useFakeTimers({ now: NOW * 1000, toFake: ['Date'] })
})
afterEach(() => {
  vi.useRealTimers()
})

/** In how many seconds the query asks again if it has this data; undefined if it does not ask again. */
function asksAgainIn(query: { refetchInterval?: unknown }, data: unknown): number | undefined {
  const { refetchInterval } = query
  const ms = typeof refetchInterval === 'function' ? refetchInterval({ state: { data } } as Query) : refetchInterval
  return typeof ms === 'number' ? ms / 1000 : undefined
}

const open = {
  status: 'payment_required',
  settledAt: null,
  paidAt: null,
  delivery: 'none',
  heldUntil: null,
  expiresAt: NOW + 300,
}
const paid = { ...open, status: 'paid', settledAt: NOW - 9, paidAt: NOW - 9 }
const held = { ...paid, delivery: 'held', heldUntil: NOW + 30 }

test.each([
  ['an unpaid payment expires', open, 300],
  ['the hold of a delivery ends', held, 30],
  ['nothing more happens on its own', { ...paid, delivery: 'done' }, undefined],
  ['the money arrived but the customer did not come back', { ...open, settledAt: NOW - 9 }, undefined],
  ['it has expired', { ...open, status: 'expired', expiresAt: NOW - 1 }, undefined],
  ['a hold has lapsed', { ...paid, heldUntil: NOW - 5 }, undefined],
  ['the browser’s clock is ahead, and it has not expired at the service yet', { ...open, expiresAt: NOW - 60 }, 3],
])('dashboard: an open page of a payment is read again when its time comes: %s', (_name, payment, seconds) => {
  expect(asksAgainIn(paymentQuery('pay_1'), payment)).toBe(seconds)
  expect(asksAgainIn(paymentsQuery({}), { payments: [payment] })).toBe(seconds)
})

test('dashboard: an open list of payments is read again at the first of their deadlines, whatever the page and filter', () => {
  for (const filter of [{}, { state: 'unpaid' }, { state: 'delivering' }] as const)
    expect(asksAgainIn(paymentsQuery(filter), { payments: [paid, open, held] })).toBe(30)
  expect(asksAgainIn(paymentsQuery({}), { payments: [] })).toBeUndefined()
})

test('dashboard: the list of a node’s payments is read again when the next invoice expires', () => {
  const invoice = { isPaid: false, expiresAt: NOW + 3600 }
  const list = [
    invoice,
    { ...invoice, expiresAt: NOW - 5 },
    { isPaid: true, expiresAt: NOW + 9 },
    { isPaid: true, expiresAt: null },
  ]
  expect(asksAgainIn(nodePaymentsQuery('node_1'), list)).toBe(3600)
  expect(asksAgainIn(nodePaymentsQuery('node_1'), list.slice(1))).toBeUndefined()
})

const credit = { runwaySeconds: null as number | null, stopsAt: null as number | null, nodesThatCost: 0 }

test.each([
  ['nothing is charged for', credit, undefined],
  ['“about 2 days” becomes less', { ...credit, runwaySeconds: 2 * 86_400 + 500 }, 501],
  ['“about 3 minutes” becomes less', { ...credit, runwaySeconds: 200 }, 21],
  ['“less than a minute” becomes nothing', { ...credit, runwaySeconds: 40 }, 41],
  ['nodes are stopped', { ...credit, runwaySeconds: 0, stopsAt: NOW + 7200 }, 7200],
  ['a node is charged by the minute', { ...credit, runwaySeconds: 2 * 86_400 + 500, nodesThatCost: 1 }, 60],
  ['a node is charged although the credit is used up', { runwaySeconds: 0, stopsAt: NOW + 7200, nodesThatCost: 1 }, 60],
  ['it lasts for years: a timer of more than 24 days would fire at once', { ...credit, runwaySeconds: 80_000_000 }, 86_400],
])('dashboard: what is said about the credit is read again when it stops being true: %s', (_name, summary, seconds) => {
  expect(asksAgainIn(ledgerQuery({}), { pages: [summary] })).toBe(seconds)
})

test('dashboard: balances of nodes cause no event, so an open list is read again; sums of weeks only now and then', () => {
  expect(asksAgainIn(nodeBalancesQuery, [])).toBe(30)
  expect(asksAgainIn(usageQuery(1), {})).toBe(300)
})

test('dashboard: the chart moves on with the quarter hour', () => {
  expect(asksAgainIn(receivedQuery('day'), { now: NOW + 60 })).toBe(840)
  expect(asksAgainIn(overviewQuery, { credit: { runwaySeconds: 200 } })).toBe(21)
})
