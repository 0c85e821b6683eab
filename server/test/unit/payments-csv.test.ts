import { expect, test } from 'vitest'
import { CSV_HEADER, csvLine } from '../../src/gateway/payments-csv.ts'
import type { ShownPayment } from '../../src/store/payments/payments.ts'

const cellOf = (description: string): string => {
  const payment = { id: 'pay_1', createdAt: 0, settledAt: null, paidAt: null, redeemedAt: null, description, resource: null }
  return csvLine(payment as unknown as ShownPayment, 0)
    .split(',')
    .slice(10, -2)
    .join(',')
}

test.each([
  ['=1+1', "'=1+1"],
  ['-5', "'-5"],
  ['x;=HYPERLINK(1)', "x;'=HYPERLINK(1)"],
  ['x\t@y', "x\t'@y"],
  ['a;"=1+1;x', `"a;'""=1+1;x"`],
  ['\t=1', "'\t'=1"],
  ['\rx', `"'\rx"`],
  ['Tea; large', 'Tea; large'],
  ['e-mail', 'e-mail'],
])('C54: an export of %j begins no formula, also where cells are split at semicolons', (description, cell) => {
  expect(cellOf(description)).toBe(cell)
})

const NOW = 1_800_000_000
const LONG_AGO = NOW - 600

test.each([
  ['unpaid', { status: 'payment_required' }],
  ['expired', { status: 'expired' }],
  ['settled', { status: 'payment_required', settledAt: LONG_AGO + 1 }],
  ['paid_got_nothing', { status: 'payment_required', settledAt: LONG_AGO }],
  ['paid', { status: 'paid', settledAt: LONG_AGO, paidAt: LONG_AGO }],
  ['paid_got_nothing', { status: 'paid', settledAt: LONG_AGO, paidAt: LONG_AGO, releases: 1 }],
  ['paid_got_nothing', { status: 'paid', settledAt: LONG_AGO, paidAt: LONG_AGO, heldUntil: NOW - 1 }],
  ['delivering', { status: 'paid', settledAt: LONG_AGO, paidAt: LONG_AGO, delivery: 'held', heldUntil: NOW + 1 }],
  ['delivered', { status: 'paid', settledAt: LONG_AGO, paidAt: LONG_AGO, delivery: 'done' }],
])('C54: the last column of an export says what became of the payment, as the dashboard does: %s (%j)', (outcome, more) => {
  const untouched = {
    id: 'pay_1',
    createdAt: 0,
    settledAt: null,
    paidAt: null,
    redeemedAt: null,
    delivery: 'none',
    heldUntil: null,
  }
  const line = csvLine({ ...untouched, releases: 0, ...more } as unknown as ShownPayment, NOW)
  expect([CSV_HEADER, line].map((one) => one.trimEnd().split(',').at(-1))).toEqual(['outcome', outcome])
})
