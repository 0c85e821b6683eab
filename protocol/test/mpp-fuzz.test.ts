import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { base64url, FIELDS, fieldsOf, issuedOf, issueMpp, paidVectors, presented, sha256, verdict } from './support/mpp.ts'

describe('MPP: arbitrary input', () => {
  const withScheme = (text: string | Buffer) => `Payment ${base64url(text)}`
  const hex64 = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes).toString('hex'))
  const cases = fc.record({
    key: fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes)),
    realm: fc.stringMatching(/^[a-z0-9.:-]{1,40}$/),
    amountSat: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
    description: fc.string({ unit: 'binary', maxLength: 100 }),
    paymentId: fc.stringMatching(/^[a-z0-9_]{1,30}$/),
    invoice: fc.stringMatching(/^lnbcrt[a-z0-9]{1,80}$/),
    network: fc.constantFrom('mainnet' as const, 'regtest' as const, 'signet' as const),
    preimage: hex64,
    expires: fc.integer({ min: 1, max: 4_000_000_000 }),
  })
  const made = cases.map(({ key, realm, preimage, expires, ...rest }) => {
    const hash = sha256(preimage)
    const header = issueMpp(key, realm, { ...rest, paymentHash: hash.toString('hex') }, expires)
    return {
      key,
      preimage,
      fields: fieldsOf(header),
      stored: { challenge: header, paymentHash: hash, amountSat: rest.amountSat },
    }
  })

  test('MPP 24, 36: a credential for an issued challenge is accepted, and refused with any changed field', () => {
    fc.assert(
      fc.property(made, fc.constantFrom(...FIELDS), fc.string({ unit: 'binary' }), hex64, (one, name, text, guess) => {
        const answer = presented({ challenge: one.fields, payload: { preimage: one.preimage } })
        expect(verdict(answer, one.stored, one.key)).toBe('right')
        fc.pre(one.fields[name] !== text && one.preimage !== guess)
        const changed = presented({ challenge: { ...one.fields, [name]: text }, payload: { preimage: one.preimage } })
        expect(verdict(changed, one.stored, one.key)).toBe('unknown-challenge')
        const guessed = presented({ challenge: one.fields, payload: { preimage: guess } })
        expect(verdict(guessed, one.stored, one.key)).toBe('invalid-preimage')
      }),
      { numRuns: 300 },
    )
  })

  test('MPP 29: any string is either accepted or refused, without other failures', () => {
    const jsons = fc.json({ maxDepth: 4 }).map(withScheme)
    const shaped = fc
      .record({ challenge: fc.anything({ maxDepth: 2 }), payload: fc.anything({ maxDepth: 2 }) }, { requiredKeys: [] })
      .map((value) => withScheme(JSON.stringify(value, (_name, member) => (typeof member === 'bigint' ? `${member}` : member))))
    const bytes = fc.uint8Array({ maxLength: 200 }).map((array) => withScheme(Buffer.from(array)))
    const texts = fc.string({ unit: 'binary', maxLength: 200 })
    const tokens = fc.stringMatching(/^Payment {1,3}[A-Za-z0-9_-]{0,50}={0,3}$/)
    fc.assert(
      fc.property(fc.oneof(texts, tokens, bytes, jsons, shaped), (text) => {
        expect(verdict(text)).toBe('malformed-credential')
      }),
      { numRuns: 3_000 },
    )
  })

  const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

  /** An independent decoder: bit by bit, with the URL functions’ UTF-8. Undefined if the input is invalid. */
  function meaning(header: string): unknown {
    const [scheme = '', token = '', ...more] = header.split(' ')
    if (scheme.toLowerCase() !== 'payment' || more.length > 0) return undefined
    let escapes = ''
    let [bits, held] = [0, 0]
    for (const character of token.replace(/==?$/, '')) {
      const value = ALPHABET.indexOf(character)
      if (value < 0) return undefined
      bits = ((bits << 6) | value) & 0xffff
      held += 6
      if (held < 8) continue
      held -= 8
      const byte = (bits >> held) & 0xff
      escapes += byte < 0x80 && byte !== 0x25 ? String.fromCharCode(byte) : `%${byte.toString(16).padStart(2, '0')}`
    }
    try {
      const { challenge, payload } = JSON.parse(decodeURIComponent(escapes))
      if ('opaque' in challenge || 'digest' in challenge) return undefined
      return { fields: FIELDS.map((name) => challenge[name]), preimage: payload.preimage }
    } catch {
      return undefined
    }
  }

  test.each(paidVectors)(
    'MPP 59: $name: with any bit flipped, it is accepted if and only if it still means the same',
    (vector) => {
      const [text, stored, under] = [vector.credential_header, issuedOf(vector), Buffer.from(vector.server_key)]
      const meant = meaning(text)
      expect(meant).toMatchObject({ preimage: vector.stored_challenge.preimage })
      const wrong: string[] = []
      let accepted = 0
      for (let at = 0; at < text.length; at++) {
        for (let bit = 0; bit < 8; bit++) {
          const flipped = text.slice(0, at) + String.fromCharCode(text.charCodeAt(at) ^ (1 << bit)) + text.slice(at + 1)
          const right = verdict(flipped, stored, under) === 'right'
          if (right !== isDeepStrictEqual(meaning(flipped), meant)) wrong.push(`bit ${bit} of character ${at}`)
          if (right) accepted++
        }
      }
      expect(wrong).toEqual([])
      // The seven letters of the scheme are case-insensitive. If not even these were accepted, the test checked nothing.
      expect(accepted).toBeGreaterThanOrEqual(7)
      expect(accepted).toBeLessThan(text.length)
    },
  )
})
