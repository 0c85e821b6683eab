import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { derivedKey, masterKeyOf, open, seal } from '../../src/platform/secrets.ts'

const bytes = (constraints: fc.IntArrayConstraints = { maxLength: 500 }) =>
  fc.uint8Array(constraints).map((array) => Buffer.from(array))
const keys = bytes({ minLength: 32, maxLength: 32 })
const contexts = fc.string({ unit: 'grapheme', maxLength: 50 })

describe('C17: secrets at rest', () => {
  test('C17: a sealed value opens with the same key and context', () => {
    fc.assert(
      fc.property(keys, contexts, bytes(), (key, context, plain) => {
        expect(open(key, context, seal(key, context, plain)).equals(plain)).toBe(true)
      }),
    )
  })

  test('C17: any flipped bit is detected', () => {
    fc.assert(
      fc.property(keys, contexts, bytes({ maxLength: 60 }), fc.nat(), (key, context, plain, where) => {
        const sealed = seal(key, context, plain)
        const bit = where % (sealed.length * 8)
        sealed[bit >> 3] = (sealed[bit >> 3] ?? 0) ^ (1 << (bit & 7))
        expect(() => open(key, context, sealed)).toThrow()
      }),
      { numRuns: 500 },
    )
  })

  test('C17: a truncated or extended value does not open', () => {
    fc.assert(
      fc.property(keys, bytes({ maxLength: 60 }), fc.nat(), bytes({ minLength: 1, maxLength: 20 }), (key, plain, where, more) => {
        const sealed = seal(key, 'x', plain)
        expect(() => open(key, 'x', sealed.subarray(0, where % sealed.length))).toThrow()
        expect(() => open(key, 'x', sealed.subarray(1 + (where % sealed.length)))).toThrow()
        expect(() => open(key, 'x', Buffer.concat([sealed, more]))).toThrow()
      }),
    )
  })

  test('C17: another context or another key does not open it', () => {
    fc.assert(
      fc.property(keys, keys, contexts, contexts, bytes(), (key, otherKey, context, otherContext, plain) => {
        fc.pre(!key.equals(otherKey) && context !== otherContext)
        const sealed = seal(key, context, plain)
        expect(() => open(key, otherContext, sealed)).toThrow()
        expect(() => open(otherKey, context, sealed)).toThrow()
      }),
    )
  })

  test('C17: sealing a value twice gives different results, and neither contains the text', () => {
    const [key, plain] = [randomBytes(32), Buffer.from('abandon abandon about')]
    const all = Array.from({ length: 1_000 }, () => seal(key, 'x', plain).toString('hex'))
    expect(new Set(all.map((text) => text.slice(0, 24))).size).toBe(1_000)
    for (const text of all) expect(text).not.toContain(Buffer.from('abandon').toString('hex'))
  })

  test('C17: each pair of purpose and master key has its own derived key, which is always the same', () => {
    fc.assert(
      fc.property(keys, keys, contexts, contexts, (one, other, purpose, another) => {
        fc.pre(!one.equals(other) && purpose !== another)
        const key = derivedKey(masterKeyOf(one), purpose)
        expect(key).toHaveLength(32)
        expect(key.equals(derivedKey(masterKeyOf(Buffer.from(one)), purpose))).toBe(true)
        expect(key.equals(derivedKey(masterKeyOf(one), another))).toBe(false)
        expect(key.equals(derivedKey(masterKeyOf(other), purpose))).toBe(false)
        expect(key.equals(one)).toBe(false)
        expect(masterKeyOf(one).id).not.toBe(masterKeyOf(other).id)
        expect(one.toString('hex')).not.toContain(masterKeyOf(one).id)
      }),
    )
  })
})
