import { expect, test } from 'vitest'
import { csvLine } from '../../src/gateway/payments-csv.ts'
import type { ShownPayment } from '../../src/store/payments/payments.ts'

const cellOf = (description: string): string => {
  const payment = { id: 'pay_1', createdAt: 0, settledAt: null, paidAt: null, redeemedAt: null, description, resource: null }
  return csvLine(payment as unknown as ShownPayment)
    .split(',')
    .slice(10, -1)
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
