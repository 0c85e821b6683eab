import { expect, test } from 'vitest'
import { base32, codeOf, keyUri, stepAt, stepOfCode } from '../../src/accounts/people/totp.ts'

const SECRET = Buffer.from('12345678901234567890')

// RFC 6238, appendix B, the rows of SHA-1.
test.each([
  [59, '94287082'],
  [1_111_111_109, '07081804'],
  [1_111_111_111, '14050471'],
  [1_234_567_890, '89005924'],
  [2_000_000_000, '69279037'],
  [20_000_000_000, '65353130'],
])('C87: RFC 6238: at %i the code of eight digits is %s, and its last six are ours', (seconds, code) => {
  expect(codeOf(SECRET, stepAt(seconds), 8)).toBe(code)
  expect(codeOf(SECRET, stepAt(seconds))).toBe(code.slice(2))
})

// RFC 4226, appendix D.
test('C87: RFC 4226: the first ten codes', () => {
  const codes = Array.from({ length: 10 }, (_, count) => codeOf(SECRET, count))
  const expected = '755224 287082 359152 969429 338314 254676 287922 162583 399871 520489'
  expect(codes.join(' ')).toBe(expected)
})

test('C87: codes are accepted one step before and after, and only after the last step that was used', () => {
  const step = 1000
  const found = (away: number, lastStep = 0) => stepOfCode(SECRET, codeOf(SECRET, step + away), { step, lastStep })
  expect([-2, -1, 0, 1, 2].map((away) => found(away))).toEqual([undefined, 999, 1000, 1001, undefined])
  expect([-1, 0, 1].map((away) => found(away, 1000))).toEqual([undefined, undefined, 1001])
  for (const wrong of ['', '12345', '1234567', 'abcdef', '٠٠٠٠٠٠'])
    expect(stepOfCode(SECRET, wrong, { step, lastStep: 0 })).toBeUndefined()
})

test('the secret is written in base 32 (RFC 4648), and the URI is what apps read', () => {
  expect(['', 'fooba', 'foobarfoob'].map((text) => base32(Buffer.from(text)))).toEqual(['', 'MZXW6YTB', 'MZXW6YTBOJTG633C'])
  const uri = new URL(keyUri(SECRET, 'ann+shop@example.com'))
  expect([uri.protocol, uri.host, uri.pathname]).toEqual(['otpauth:', 'totp', '/Boltyard:ann%2Bshop%40example.com'])
  expect(Object.fromEntries(uri.searchParams)).toEqual({
    secret: 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ',
    issuer: 'Boltyard',
    algorithm: 'SHA1',
    digits: '6',
    period: '30',
  })
})
