import { createRequire } from 'node:module'
import { expect, test } from 'vitest'
import { qrCode } from '../src/qr-code.ts'

/** Compared with the library that the dashboard uses. */
const { encode } = createRequire(new URL('../../dashboard/package.json', import.meta.url))('uqr')

const CHARS = 'LNBC1PVJLUEZPP5QQQSYQCYQ5RQWZQF 0123456789:/'

test('C69: codes of every size equal those of another implementation', () => {
  const sizes = new Set<number>()
  for (let length = 1; length <= 4_296; length += length < 300 ? 7 : 41) {
    const text = Array.from({ length }, (_, at) => CHARS[(at * at + 3 * at) % CHARS.length]).join('')
    const code = qrCode(text)
    expect(code).toEqual(encode(text, { ecc: 'L', maskPattern: 0, border: 0, boostEcc: false }).data)
    sizes.add(code?.length ?? 0)
  }
  expect(sizes.size).toBe(40)
})

test('C69: text that is too long, or has other characters, has no code', () => {
  expect(qrCode('A'.repeat(4_297))).toBeUndefined()
  expect(qrCode('lower case')).toBeUndefined()
})
