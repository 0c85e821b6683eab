import { expect, test } from 'vitest'
import { paymentTotalsQuery } from '../src/api/payments.ts'

const noon = new Date(2026, 10, 15, 12)

test('C83: the totals of another day or another selection are never shown in place of the ones asked for', () => {
  const today = paymentTotalsQuery({ period: 'today' }, noon)
  expect(paymentTotalsQuery({ period: 'today' }, new Date(2026, 10, 15, 23, 59)).queryKey).toEqual(today.queryKey)
  expect(paymentTotalsQuery({ period: 'today' }, new Date(2026, 10, 16)).queryKey).not.toEqual(today.queryKey)
  expect(paymentTotalsQuery({ period: 'last-month' }, noon).queryKey).not.toEqual(today.queryKey)
  expect(today).not.toHaveProperty('placeholderData')
})
