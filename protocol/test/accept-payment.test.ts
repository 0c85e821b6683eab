import { expect, test } from 'vitest'
import { acceptsPayment } from '../src/accept-payment.ts'

test.each<[header: string | undefined, accepts: boolean | undefined]>([
  ['lightning/charge', true],
  ['Lightning/Charge', true],
  ['tempo/charge, lightning/*;q=0.001', true],
  ['*/*', true],
  [' */charge ; q=0.5 , ', true],
  ['lightning/session', false],
  ['tempo/charge', false],
  ['lightning/charge;q=0', false],
  ['*/*, lightning/charge;q=0.000', false],
  ['lightning/*;q=0, */charge', false],
  ['lightning/*;q=0, lightning/charge;q=1.000', true],
  [undefined, undefined],
  ['', undefined],
  [',', undefined],
  ['lightning', undefined],
  ['lightning/charge;q=2', undefined],
  ['lightning/charge;q=0.0001', undefined],
  ['lightning/charge, nonsense', undefined],
  [`lightning/charge${' '.repeat(5_000)}`, undefined],
])('C69: Accept-Payment %j: Lightning %s', (header, accepts) => {
  expect(acceptsPayment(header, 'lightning', 'charge')).toBe(accepts)
})
