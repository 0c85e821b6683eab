import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { cpuMsSince } from '../../testing/cpu-time.ts'
import { readChallenges } from '../src/www-authenticate.ts'

const read = (header: string) =>
  readChallenges(header)?.map(({ scheme, token68, params }) => [scheme, token68 ?? Object.fromEntries(params)])

describe('WWW-Authenticate by RFC 9110, 11.6.1', () => {
  test.each<[string, unknown[]]>([
    ['', []],
    ['Basic', [['Basic', {}]]],
    ['Basic realm="simple"', [['Basic', { realm: 'simple' }]]],
    // The RFC's own example.
    [
      'Basic realm="simple", Newauth realm="apps", type=1, title="Login to \\"apps\\""',
      [
        ['Basic', { realm: 'simple' }],
        ['Newauth', { realm: 'apps', type: '1', title: 'Login to "apps"' }],
      ],
    ],
    [
      'Negotiate YWJj==, Basic realm=x',
      [
        ['Negotiate', 'YWJj=='],
        ['Basic', { realm: 'x' }],
      ],
    ],
    [
      'Negotiate, Basic realm=x',
      [
        ['Negotiate', {}],
        ['Basic', { realm: 'x' }],
      ],
    ],
    [
      'Basic realm=x, Negotiate',
      [
        ['Basic', { realm: 'x' }],
        ['Negotiate', {}],
      ],
    ],
    [
      ', ,Basic realm=x ,, Newauth a=b ,',
      [
        ['Basic', { realm: 'x' }],
        ['Newauth', { a: 'b' }],
      ],
    ],
    ['Basic realm = "x"\t,\tcharset= UTF-8', [['Basic', { realm: 'x', charset: 'UTF-8' }]]],
    ['Basic REALM="a, b=c, L402 macaroon=\\"x\\""', [['Basic', { realm: 'a, b=c, L402 macaroon="x"' }]]],
    ['Basic realm=""', [['Basic', { realm: '' }]]],
    // Not a parameter without a value, but a token68 that looks like one.
    ['Basic realm=', [['Basic', 'realm=']]],
    ['L402 macaroon="AgE=", invoice="lnbc1"', [['L402', { macaroon: 'AgE=', invoice: 'lnbc1' }]]],
  ])('%s', (header, expected) => expect(read(header)).toEqual(expected))

  test.each([
    'Basic realm="open',
    'Basic realm="a" charset="b"',
    'Basic realm="a", realm="b"',
    'Basic realm="a", Realm="b"',
    'Basic realm=a b',
    'Basic "x"',
    '"x"',
    '=x',
    'Basic\trealm=x',
    'Basic realm="a"x',
    'Basic realm=a, =b',
    'Basic YWJj realm=x',
    'Basic realm="\u0007"',
  ])('refused: %s', (header) => expect(readChallenges(header)).toBeUndefined())

  test('a formatted header parses back, and no input makes it throw or hang', () => {
    const token = fc.stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,12}$/)
    const value = fc.string({
      unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)),
      maxLength: 30,
    })
    const params = fc.uniqueArray(
      fc.tuple(
        token.map((name) => name.toLowerCase()),
        value,
      ),
      { selector: ([name]) => name, minLength: 1, maxLength: 4 },
    )
    const quoted = (text: string): string => `"${text.replace(/["\\]/g, '\\$&')}"`
    fc.assert(
      fc.property(fc.array(fc.tuple(token, params), { minLength: 1, maxLength: 4 }), (challenges) => {
        const header = challenges
          .map(([scheme, list]) => `${scheme} ${list.map(([name, text]) => `${name}=${quoted(text)}`).join(', ')}`)
          .join(', ')
        expect(readChallenges(header)).toEqual(
          challenges.map(([scheme, list]) => ({ scheme, token68: undefined, params: new Map(list) })),
        )
      }),
    )
    fc.assert(fc.property(fc.string({ maxLength: 200 }), (text) => void readChallenges(text)))
    const started = process.cpuUsage()
    for (const text of [','.repeat(16_000), 'a '.repeat(8_000), `a ${'b=c,'.repeat(4_000)}`, `a b="${'\\"'.repeat(8_000)}`])
      readChallenges(text)
    expect(cpuMsSince(started)).toBeLessThan(1_000)
  })
})
