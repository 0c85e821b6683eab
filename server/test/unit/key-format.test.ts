import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isWellFormedKey, newKey } from '../../src/accounts/keys/key-format.ts'

test('C10: a new key is well-formed, and changing any one character makes it malformed, so it never reaches the store', () => {
  const position = fc.integer({ min: 0, max: 39 })
  const character = fc.constantFrom(...'0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-')
  fc.assert(
    fc.property(position, character, (at, other) => {
      const key = newKey()
      const changed = key.slice(0, at) + other + key.slice(at + 1)
      return isWellFormedKey(key) && isWellFormedKey(changed) === (changed === key)
    }),
    { numRuns: 1000 },
  )
})

test.each([
  '',
  'byk_',
  `byk_${'0'.repeat(36)}`,
  ` ${newKey()}`,
  `${newKey()}\n`,
  newKey().slice(0, -1),
  `${newKey()}0`,
  newKey().toUpperCase(),
])('C10: %j is malformed', (text) => {
  expect(isWellFormedKey(text)).toBe(false)
})
