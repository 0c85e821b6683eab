import { expect, test } from 'vitest'
import { debtAndOneDay } from '../../src/pages/credit/debt.ts'

test.each([
  ['nothing is owed', 0, 2, 100, null],
  ['there is credit', 5_000, 2, 100, null],
  ['two nodes are running', -250_000_001, 2, 100, { sat: 250_201, label: 'what you owe, and a day of 2 nodes' }],
  ['all nodes were stopped', -250_000_000, 0, 100, { sat: 250_100, label: 'what you owe, and a day of one node' }],
  ['nodes are free', -1, 3, 0, { sat: 1, label: 'what you owe' }],
] as const)('dashboard: the top-up that covers a debt and a day, if %s', (_, balanceMsat, nodesThatCost, satPerDay, expected) => {
  expect(debtAndOneDay({ balanceMsat, nodesThatCost }, satPerDay)).toEqual(expected)
})
