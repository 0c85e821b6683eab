import { describe, expect, test } from 'vitest'
import { operations } from '../../../contract/src/operations.ts'
import { isReadable } from '../../../contract/src/readable-text.ts'
import { openApp } from '../support/app.ts'
import { send } from '../support/server.ts'

/** Rejected alone and within other text. */
const DECEPTIVE = [
  0x00, 0x0a, 0x7f, 0x9f, 0x200b, 0x2028, 0x2029, 0x202a, 0x202e, 0x2060, 0x2061, 0x2064, 0x2066, 0x2069, 0x206a, 0x206f, 0xfeff,
  0xfff9, 0xfffb,
]
/** Allowed within other text, but invisible on their own. */
const INVISIBLE = [0xad, 0x034f, 0x061c, 0x115f, 0x200c, 0x200d, 0x200e, 0x200f, 0x2800, 0x3164, 0xfe0f, 0xe0020]

const named = (code: number): [string, string] => [`U+${code.toString(16)}`, String.fromCodePoint(code)]

describe('security 29: misleading and invisible text', () => {
  test.each(DECEPTIVE.map(named))('security 29: %s is refused', (_name, character) => {
    for (const text of [character, `a${character}b`, `${character}a`, `a${character}`]) expect(isReadable(text)).toBe(false)
  })

  test.each(INVISIBLE.map(named))('security 29: %s alone is not a valid name, but is allowed within one', (_name, character) => {
    for (const text of [character, ` ${character}\u3000`, character.repeat(16)]) expect(isReadable(text)).toBe(false)
    expect(isReadable(`a${character}b`)).toBe(true)
  })

  test.each(['👨‍👩‍👧', '🏴󠁧󠁢󠁥󠁮󠁧󠁿', '❤️', 'می‌خواهم', 'क्‍ष', 'שלום', 'مرحبا', '節点', 'Ünï "x"', '0'])(
    'security 29: %s is allowed',
    (text) => {
      expect(isReadable(text)).toBe(true)
    },
  )

  test('C15, C35: names of accounts, keys and people, and descriptions follow this rule', async () => {
    const { port } = await openApp()
    const fields: [string, string, string][] = operations.flatMap(({ method, path, body }) =>
      Object.entries<any>(body?.properties ?? {})
        .filter(([name]) => ['name', 'description', 'resource', 'reason'].includes(name))
        // Node names are checked after trimming, in test/nodes/nodes.test.ts.
        .filter(() => !/^\/(v1|dashboard\/api)\/nodes(\/\{nodeId\})?$/.test(path))
        // This name is only compared with the name of the account.
        .filter(() => path !== '/dashboard/api/account/deletion')
        // A field that may be null is a union.
        .map(([name, { anyOf, pattern = anyOf?.[0].pattern }]): [string, string, string] => [`${method} ${path}`, name, pattern]),
    )
    expect(fields.map(([operation]) => operation)).toEqual(
      expect.arrayContaining(['POST /v1/gateway/payments', 'POST /operator/v1/accounts', 'POST /operator/v1/accounts/{id}/keys']),
    )
    for (const [operation, name, pattern] of fields)
      expect([operation, name, new RegExp(pattern, 'u').test('a\u202eb')]).toEqual([operation, name, false])
    const json = { name: 'invoice\u202etxt.exe' }
    const answer = await send(port, 'POST', '/operator/v1/accounts', { json, token: 'x'.repeat(32) })
    expect([answer.status, answer.json().error]).toEqual([
      400,
      { code: 'bad_request', message: expect.stringMatching(/^The field "name" must contain a visible character/) },
    ])
  })
})
