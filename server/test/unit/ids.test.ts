import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type IdPrefix, isId, newId } from '../../src/platform/ids.ts'

const prefixes = fc.constantFrom<IdPrefix[]>('node', 'pay', 'key', 'acct', 'req')
const times = fc.integer({ min: 0, max: 2 ** 42 - 1 })

describe('C8: ids', () => {
  test('C8: a prefix and 20 characters of lower-case Crockford base 32, which are a DNS label', () => {
    fc.assert(
      fc.property(prefixes, times, (prefix, time) => {
        const id = newId(prefix, time)
        expect(id).toMatch(new RegExp(`^${prefix}_[0-9a-hjkmnp-tv-z]{20}$`))
        expect(isId(prefix, id)).toBe(true)
      }),
    )
  })

  test('C8: a later id sorts after an earlier one', () => {
    fc.assert(
      fc.property(prefixes, times, times, (prefix, one, other) => {
        fc.pre(one !== other)
        expect(newId(prefix, one) < newId(prefix, other)).toBe(one < other)
      }),
    )
  })

  test('C8: the first 42 bits are the milliseconds, the other 58 are random', () => {
    const bitsOf = (id: string): string =>
      [...id.slice(-20)].map((c) => '0123456789abcdefghjkmnpqrstvwxyz'.indexOf(c).toString(2).padStart(5, '0')).join('')
    fc.assert(fc.property(times, (time) => Number.parseInt(bitsOf(newId('key', time)).slice(0, 42), 2) === time))
    const all = Array.from({ length: 2_000 }, () => bitsOf(newId('key', 0)).slice(42))
    for (let bit = 0; bit < 58; bit++) {
      const ones = all.filter((bits) => bits[bit] === '1').length
      // If all bits are fair, one of them is outside these bounds less than once in 10^16 runs.
      expect(ones).toBeGreaterThan(800)
      expect(ones).toBeLessThan(1_200)
    }
  })

  test('C8: 100,000 ids of one millisecond are all different', () => {
    expect(new Set(Array.from({ length: 100_000 }, () => newId('node', 1))).size).toBe(100_000)
  })

  test('C8: nothing else is an id', () => {
    const good = newId('acct')
    for (const text of ['', 'acct_', good.slice(0, -1), `${good}0`, good.toUpperCase(), ` ${good}`, `${good}\n`, good.slice(5)])
      expect(isId('acct', text)).toBe(false)
    for (const c of 'ilou_-\0é🟠') expect(isId('acct', `acct_${'0'.repeat(20 - c.length)}${c}`)).toBe(false)
    expect(isId('node', good)).toBe(false)
    fc.assert(fc.property(fc.string(), (text) => isId('acct', text) === /^acct_[0-9a-hjkmnp-tv-z]{20}$/.test(text)))
  })
})
