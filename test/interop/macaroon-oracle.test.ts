import { createRequire } from 'node:module'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { issueL402 } from '../../protocol/src/l402.ts'
import { isSignedBy, mintMacaroon, readMacaroon } from '../../protocol/src/macaroon.ts'
import { primitives } from '../../server/src/platform/primitives.ts'
import vectors from '../vectors/l402.json' with { type: 'json' }

/** Without `exportBinary`, which doubles its buffer with every field and allocates gigabytes. */
type TheirMacaroon = {
  identifier: Uint8Array
  location: string
  signature: Uint8Array
  caveats: { identifier: Uint8Array; vid?: Uint8Array }[]
  verify(rootKey: Uint8Array, check: (condition: string) => null): void
}
const { importMacaroon } = createRequire(import.meta.url)('macaroon') as { importMacaroon(bytes: Uint8Array): TheirMacaroon }

const anyBytes = (constraints: fc.IntArrayConstraints) => fc.uint8Array(constraints).map((array) => Buffer.from(array))
const keys = anyBytes({ minLength: 32, maxLength: 32 })
const texts = fc.string({ unit: 'grapheme', maxLength: 150 })
const cases = fc.tuple(keys, anyBytes({ minLength: 1, maxLength: 150 }), texts, fc.array(texts, { maxLength: 5 }))

function theySay(rootKey: Buffer, bytes: Uint8Array): boolean {
  try {
    importMacaroon(new Uint8Array(bytes)).verify(new Uint8Array(rootKey), () => null)
    return true
  } catch {
    return false
  }
}

function weSay(rootKey: Buffer, bytes: Uint8Array): boolean {
  const read = readMacaroon(bytes)
  return read !== undefined && isSignedBy(primitives, rootKey, read)
}

test('L402 4: npm macaroon decodes what we mint to the same values, and verifies it', () => {
  fc.assert(
    fc.property(cases, ([rootKey, identifier, location, caveats]) => {
      const bytes = mintMacaroon(primitives, rootKey, identifier, location, caveats)
      const theirs = importMacaroon(new Uint8Array(bytes))
      expect(Buffer.from(theirs.identifier).equals(identifier)).toBe(true)
      expect(theirs.caveats.map((caveat) => Buffer.from(caveat.identifier).toString('hex'))).toEqual(
        caveats.map((caveat) => Buffer.from(caveat).toString('hex')),
      )
      expect(theySay(rootKey, bytes)).toBe(true)
      expect(weSay(rootKey, bytes)).toBe(true)
    }),
    { numRuns: 300 },
  )
})

test('L402 4: npm macaroon reads the macaroon of a challenge: 66 bytes of identifier, three caveats, nothing after them', () => {
  const { rootKey, paymentHash, tokenId } = vectors.keys.paymentA
  const challenge = issueL402(primitives, Buffer.from(rootKey, 'hex'), {
    paymentId: 'pay_example_1',
    paymentHash: Buffer.from(paymentHash, 'hex'),
    tokenId: Buffer.from(tokenId, 'hex'),
    validUntilSeconds: 1_800_086_400,
    invoice: 'lnbc1',
  })
  const theirs = importMacaroon(Buffer.from(challenge.split('"')[1] ?? '', 'base64'))
  expect(theirs.location).toBe('boltyard')
  expect(Buffer.from(theirs.identifier).toString('hex')).toBe(`0000${paymentHash}${tokenId}`)
  expect(theirs.caveats.map((caveat) => Buffer.from(caveat.identifier).toString())).toEqual([
    'services=boltyard:0',
    'boltyard_valid_until=1800086400',
    'payment_id=pay_example_1',
  ])
})

test('L402 4: npm macaroon and we agree on a changed byte, a truncation, an addition and another key', () => {
  const said = { good: 0, bad: 0 }
  fc.assert(
    fc.property(cases, keys, fc.nat(), fc.nat(255), fc.nat(4), ([rootKey, identifier, , caveats], otherKey, where, byte, how) => {
      const bytes = mintMacaroon(primitives, rootKey, identifier, 'boltyard', caveats)
      const at = where % bytes.length
      const changed = Buffer.from(bytes)
      // Bytes of the location are not changed: npm macaroon requires UTF-8 there, and we ignore the location.
      if (how < 3 && (at < 3 || at >= 11)) changed[at] = byte
      const sent = how === 3 ? changed.subarray(0, at) : how === 4 ? Buffer.concat([bytes, Buffer.of(byte)]) : changed
      for (const key of [rootKey, otherKey]) {
        const ours = weSay(key, sent)
        expect(ours).toBe(theySay(key, sent))
        said[ours ? 'good' : 'bad']++
      }
    }),
    { numRuns: 1_000 },
  )
  expect(said.good).toBeGreaterThan(10)
  expect(said.bad).toBeGreaterThan(1_000)
})

test.each(vectors.vectors.filter((vector) => vector.expect.valid || vector.expect.reason === 'bad_signature'))(
  'L402 4: vector $n, $name: npm macaroon and we agree on its signature',
  ({ credential, rootKeyHex, expect: { valid } }) => {
    const bytes = Buffer.from(/ ([^:]+):/.exec(credential)?.[1] ?? '', 'base64')
    const rootKey = Buffer.from(rootKeyHex, 'hex')
    expect(theySay(rootKey, bytes)).toBe(valid)
    expect(weSay(rootKey, bytes)).toBe(valid)
  },
)
