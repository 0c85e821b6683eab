import { expect, test } from 'vitest'
import { amountError, periodError, rangeError, wholeSat } from '../src/text/filter-errors.ts'

test.each([
  ['1500', 1500],
  [' 0 ', 0],
  ['1 500', 1500],
  ['1.234.567', 1_234_567],
  ['1’500', 1500],
  ['12,34,567', 1_234_567],
  ['-5', undefined],
  ['1.5', undefined],
  ['0.001', undefined],
  ['5 sat', undefined],
  ['12345678901234', undefined],
])('the amount “%s” of a filter is %s; what is not a whole number gets a message', (typed, amount) => {
  expect([wholeSat(typed), amountError(typed) === undefined]).toEqual([amount, amount !== undefined])
})

test('an empty amount is no mistake', () => {
  expect([amountError(''), amountError(' ')]).toEqual([undefined, undefined])
})

test('reversed dates and amounts are mistakes; the same day and the same amount are not', () => {
  expect(periodError({ from: '2026-11-02', to: '2026-11-01' })).toMatch(/reversed/)
  for (const to of ['2026-11-02', '2027-01-01', undefined, 'never'])
    expect(periodError({ from: '2026-11-02', to })).toBeUndefined()
  expect([rangeError(5, 4), rangeError(5, 5), rangeError(5, undefined), rangeError(undefined, 0)]).toEqual([
    expect.stringContaining('At least'),
    undefined,
    undefined,
    undefined,
  ])
})
