import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { cpuMsSince } from '../../testing/cpu-time.ts'
import { asked } from './support/codecs.ts'
import { anyBytes, fresh, good, judged, NOW, refusal, status, withMore } from './support/l402.ts'
import { A, attenuated, B, credential, FRESH, identifier, macaroon, meaningOf, vectors } from './support/l402-by-hand.ts'

describe('arbitrary input', () => {
  test('L402 57: a credential of 16 KB is read, one character more is not', () => {
    expect(status(good.padEnd(16 * 1024, ' '))).toBe(200)
    expect(status(good.padEnd(16 * 1024 + 1, ' '))).toBe(400)
    expect(status(good.padStart(16 * 1024 + 1, ' '))).toBe(400)
  })

  const hostile: [string, string][] = [
    ['32 KB of macaroon', credential(macaroon(['x'.repeat(24_000)]))],
    ['32 KB of spaces and a good one', good.padStart(32 * 1024, ' ')],
    ['10 MB', `L402 ${'A'.repeat(10 * 1024 * 1024)}:${A.preimage}`],
    ['a macaroon over 4 KB', credential(attenuated(fresh, 'x'.repeat(4_096 - fresh.length)))],
    ['1,000 caveats', credential(macaroon(Array(1_000).fill('')))],
    ['65 caveats', credential(macaroon(Array(65).fill('')))],
    ['a length of 10 MB', credential(Buffer.of(2, 2, 0x80, 0x80, 0x80, 0x05, 1, 2, 3))],
    ['a length without an end', credential(Buffer.concat([Buffer.of(2, 2), Buffer.alloc(4_000, 0xff)]))],
    ['16 KB that start like a credential', `L402 ${'A'.repeat(16_000)}`],
    ['16 KB of spaces after the scheme', `L402${' '.repeat(16_000)}:`],
    ['16 KB of spaces before anything', ' '.repeat(16_384)],
    ['16 KB of spaces and a letter at the end', `${good}${' '.repeat(16_000)}x`],
    ['16 KB of padding', `L402 A${'='.repeat(16_000)}:`],
    ['16 KB of colons', `L402 A${':'.repeat(16_000)}`],
    ['another identifier', credential(macaroon(FRESH, { id: identifier(B) }))],
    ['another preimage', credential(fresh, B.preimage)],
  ]
  test.each(hostile)('L402 57: refused quickly, in little memory and before any signature is computed: %s', (_, text) => {
    const before = asked.hmacs
    const memory = process.memoryUsage()
    const started = process.cpuUsage()
    for (let times = 0; times < 100; times++) expect(refusal(text)?.reason).toBe('invalid')
    expect(cpuMsSince(started)).toBeLessThan(2_000)
    const { arrayBuffers, heapUsed } = process.memoryUsage()
    expect(arrayBuffers - memory.arrayBuffers).toBeLessThan(50e6)
    expect(heapUsed - memory.heapUsed).toBeLessThan(100e6)
    expect(asked.hmacs).toBe(before)
  })

  test('L402 57: 64 caveats that fill 4 KB are checked', () => {
    const room = Math.floor((4_096 - fresh.length) / 61) - 4
    expect(withMore(Array(61).fill('x'.repeat(room)))).toBe(200)
    expect(withMore(Array(62).fill('x'))).toBe(400)
  })

  test('L402 62: any string gets 400 and never anything else', () => {
    const characters = fc.string({ unit: 'binary', maxLength: 400 })
    const nearly = fc.tuple(
      fc.constantFrom('L402 ', 'LSAT  ', 'l402', ''),
      fc.base64String({ maxLength: 400 }),
      fc.constantFrom(':', ''),
      fc.constantFrom(A.preimage, B.preimage, ''),
    )
    const bytes = anyBytes({ maxLength: 300 }).map((some) => credential(Buffer.concat([Buffer.of(2), some])))
    fc.assert(
      fc.property(
        fc.oneof(
          characters,
          nearly.map((parts) => parts.join('')),
          bytes,
        ),
        (text) => {
          expect(status(text)).toBe(400)
        },
      ),
      { numRuns: 1_500 },
    )
  })

  test('L402 62: any caveats at all, genuinely signed, get 200, 400 or 410', () => {
    const condition = fc.constantFrom('services=', 'services=boltyard:0,', 'boltyard_valid_until=', 'payment_id=', '')
    const caveats = fc.array(
      fc.tuple(condition, anyBytes({ maxLength: 30 })).map(([text, value]) => Buffer.concat([Buffer.from(text), value])),
      { maxLength: 10 },
    )
    fc.assert(
      fc.property(caveats, (some) => {
        expect([200, 400, 410]).toContain(judged(some))
      }),
      { numRuns: 1_000 },
    )
  })

  const valid = [
    ...vectors.vectors.filter((vector) => vector.expect.valid),
    { n: 0, credential: good, service: 'boltyard', now: NOW },
  ]
  test.each(valid)(
    'L402 62: every bit of vector $n flipped: accepted if and only if it still means the same',
    ({ credential: text, service, now }) => {
      const meaning = meaningOf(text)
      expect(meaning).toBeDefined()
      let accepted = 0
      for (let bit = 0; bit < text.length * 8; bit++) {
        const flipped = `${text.slice(0, bit >> 3)}${String.fromCharCode(text.charCodeAt(bit >> 3) ^ (1 << (bit & 7)))}${text.slice((bit >> 3) + 1)}`
        const same = meaningOf(flipped) === meaning
        if ((refusal(flipped, { service, now }) === undefined) !== same)
          throw new Error(`bit ${bit}: accepted ${!same}, means the same ${same}`)
        if (same) accepted++
      }
      // Flips that change the case of the scheme or the preimage, or only the location. Without them, the test would see only refusals.
      expect(accepted).toBeGreaterThan(20)
    },
    120_000,
  )

  test.each(valid)(
    'L402 62: every bit of the macaroon of vector $n flipped: only the location may differ',
    ({ credential: text, service, now }) => {
      const bytes = Buffer.from(/ ([^:]+):/.exec(text)?.[1] ?? '', 'base64')
      const locationEnd = 3 + (bytes[2] ?? 0)
      for (let bit = 0; bit < bytes.length * 8; bit++) {
        const flipped = Buffer.from(bytes)
        flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7))
        const inLocation = bit >> 3 >= 3 && bit >> 3 < locationEnd
        if ((refusal(credential(flipped), { service, now }) === undefined) !== inLocation)
          throw new Error(`byte ${bit >> 3}, bit ${bit & 7}`)
      }
    },
    120_000,
  )
})
