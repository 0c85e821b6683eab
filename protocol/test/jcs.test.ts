import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { jcs } from '../src/jcs.ts'

/** The kinds of values in a challenge. */
type Strings = string | { [name: string]: Strings }

describe('MPP: the canonical JSON', () => {
  const values = fc.letrec<{ value: Strings; object: Strings }>((tie) => ({
    value: fc.oneof({ maxDepth: 3 }, fc.string({ unit: 'binary' }), tie('object')),
    object: fc.dictionary(fc.string({ unit: 'binary' }), tie('value'), { maxKeys: 6 }),
  })).value

  /** UTF-16 bytes, big-endian. Comparing them sorts by code units, independently of the codec. */
  const bigEndian = (text: string) => Buffer.from(text, 'utf16le').swap16()
  function canonical(value: Strings): string {
    if (typeof value === 'string') return JSON.stringify(value)
    const names = Object.keys(value).sort((one, other) => Buffer.compare(bigEndian(one), bigEndian(other)))
    let text = ''
    for (const name of names) text += `,${JSON.stringify(name)}:${canonical(value[name] as Strings)}`
    return `{${text.slice(1)}}`
  }

  test('MPP 6: the value is unchanged, and names are sorted by UTF-16 code units at every level', () => {
    fc.assert(
      fc.property(values, (value) => {
        expect(jcs(value)).toBe(canonical(value))
        expect(canonical(JSON.parse(jcs(value)))).toBe(canonical(value))
      }),
      { numRuns: 500 },
    )
  })

  test('MPP 6: the example of RFC 8785, where code points and code units disagree', () => {
    const names = ['\u20ac', '\r', '\ufb33', '1', '\u{1f600}', '\u0080', '\u00f6']
    const sorted = ['\r', '1', '\u0080', '\u00f6', '\u20ac', '\u{1f600}', '\ufb33']
    const text = jcs(Object.fromEntries(names.map((name) => [name, 'x'])))
    expect([...text.matchAll(/"([^"]+)":/g)].map((match) => JSON.parse(`"${match[1]}"`))).toEqual(sorted)
  })

  test('MPP 6: escapes are as short as possible, and nothing else is escaped', () => {
    expect(jcs('\b\t\n\f\r"\\/\u0001\u001f\u007f\u2028é€😀')).toBe('"\\b\\t\\n\\f\\r\\"\\\\/\\u0001\\u001f\u007f\u2028é€😀"')
  })

  test.each([['\ud800'], ['a\udc00b'], [{ a: { b: '\udfff' } }], [{ '\ud83d': 'x' }]])(
    'MPP 6: a lone surrogate is refused wherever it is (row %#)',
    (value) => {
      expect(() => jcs(value as Strings)).toThrow(TypeError)
    },
  )

  test.each([
    [undefined],
    [() => 'x'],
    [1n],
    [Symbol('x')],
    [Number.NaN],
    [Number.POSITIVE_INFINITY],
    [{ a: undefined }],
    [[undefined]],
    [new Array(1)],
    [{ a: { b: 1n } }],
  ])('MPP 6: values that JSON cannot express are refused, not left out (row %#)', (value) => {
    expect(() => jcs(value)).toThrow(TypeError)
  })

  test.each([
    [0, '0'],
    [-0, '0'],
    [1e21, '1e+21'],
    [1e-7, '1e-7'],
    [333333333.3333333, '333333333.3333333'],
    [5e-324, '5e-324'],
    [2 ** 53, '9007199254740992'],
    [[56, { d: true, '10': null, '1': [] }], '[56,{"1":[],"10":null,"d":true}]'],
  ])('MPP 6: numbers, lists and other values are written as RFC 8785 requires (row %#)', (value, text) => {
    expect(jcs(value)).toBe(text)
  })

  test('MPP 6: the order of members does not change the text', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
        const turned = Object.fromEntries(Object.entries(value).reverse())
        expect(jcs(turned)).toBe(jcs(value))
        expect(jcs(JSON.parse(jcs(value)))).toBe(jcs(value))
      }),
    )
  })
})
