import { bech32 } from '@scure/base'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readOffer } from '../src/bolt12.ts'

/** From the test vectors of BOLT 12 (bolt12/format-string-test.json). */
const OFFER =
  'lno1pqps7sjqpgtyzm3qv4uxzmtsd3jjqer9wd3hy6tsw35k7msjzfpy7nz5yqcnygrfdej82um5wf5k2uckyypwa3eyt44h6txtxquqh7lz5djge4afgfjn7k4rgrkuag0jsd5xvxg'
const READ = {
  amount: 1_000_000,
  currency: undefined,
  description: 'An example description',
  issuer: 'BOLT 12 industries',
  issuerKey: '02eec7245d6b7d2ccb30380bfbe2a3648cd7a942653f5aa340edcea1f283686619',
  expiresAtSeconds: undefined,
}

test('bolt12: an offer of the specification is read, also in upper case and split with "+"', () => {
  expect(readOffer(OFFER)).toEqual(READ)
  expect(readOffer(OFFER.toUpperCase())).toEqual(READ)
  expect(readOffer(`${OFFER.slice(0, 30)}+\n  ${OFFER.slice(30)}`)).toEqual(READ)
})

test('bolt12: text that is cut off, in mixed case or something else is not an offer', () => {
  // Cut off between two fields.
  expect(readOffer('lno1pqps7sjqpgtyzm3qv4uxzmtsd3jjqer9wd3hy6tsw35k7ms')).toBeUndefined()
  for (const text of ['', 'lno1', OFFER.slice(0, 60), OFFER.slice(0, -1), `L${OFFER.slice(1)}`, OFFER.replace('lno1', 'lni1')])
    expect([text, readOffer(text)]).toEqual([text, undefined])
})

const PATHS = [16, 1, 0]
const CHARSET = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l'
const offerOf = (...bytes: number[]): string =>
  `lno1${bech32
    .toWords(Uint8Array.from(bytes))
    .map((word) => CHARSET[word])
    .join('')}`

test('bolt12: an expiry that is not a date makes an offer unreadable', () => {
  expect(readOffer(offerOf(14, 4, 0x65, 0, 0, 0, ...PATHS))?.expiresAtSeconds).toBe(0x65000000)
  expect(readOffer(offerOf(14, 6, 0xff, 0, 0, 0, 0, 0, ...PATHS))).toBeUndefined()
})

test('bolt12: reading never throws', () => {
  const letters = fc.constantFrom(...CHARSET)
  fc.assert(
    fc.property(fc.array(letters, { maxLength: 200 }), (body) => {
      readOffer(`lno1${body.join('')}`)
    }),
  )
})
