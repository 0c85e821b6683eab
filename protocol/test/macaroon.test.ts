import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import * as codec from '../src/macaroon.ts'
import { primitives } from './support/codecs.ts'
import {
  A,
  B,
  END,
  type Field,
  FRESH,
  hex,
  identifier,
  macaroon,
  meaningOfMacaroon,
  signature,
  varint,
  vectors,
  written,
} from './support/l402-by-hand.ts'

const { readMacaroon } = codec
const mintMacaroon = (rootKey: Buffer, identifier: Buffer, location: string, caveats: string[]): Buffer =>
  Buffer.from(codec.mintMacaroon(primitives, rootKey, identifier, location, caveats))
const isSignedBy = (rootKey: Buffer, macaroon: codec.Macaroon): boolean => codec.isSignedBy(primitives, rootKey, macaroon)
const hexOf = (part: Uint8Array): string => Buffer.from(part).toString('hex')

const bytes = (constraints: fc.IntArrayConstraints) => fc.uint8Array(constraints).map((array) => Buffer.from(array))
const keys = bytes({ minLength: 32, maxLength: 32 })
const identifiers = bytes({ maxLength: 200 })
const texts = fc.string({ unit: 'grapheme', maxLength: 150 })
const lists = fc.array(texts, { maxLength: 6 })

const fresh = macaroon(FRESH)

describe('minting', () => {
  test('L402 4: the worked example, byte for byte and signature by signature', () => {
    const chain = [
      '6391a6c585b0c75a290b7652ef9efbb5c29c95e0203f4f017da4ef7234f896d3',
      'f4da00ece335b04441006804026b59d76cac8a007570b010b037ab7a00d93a2f',
      '39d4233ff3f442863e9455d7924b276206b5609627fa772fab82d3da7bf2aaa9',
      '5d6a5e7004cae7cb8d9fde410020a7edda82000c5fe82f0a07db997619fcccdb',
    ]
    for (const [caveats, expected] of chain.entries()) {
      const minted = mintMacaroon(A.rootKey, identifier(A), 'boltyard', FRESH.slice(0, caveats))
      expect(minted.subarray(-32).toString('hex')).toBe(expected)
    }
    expect(mintMacaroon(A.rootKey, identifier(A), 'boltyard', FRESH).toString('base64')).toBe(
      'AgEIYm9sdHlhcmQCQgAAn1Hje9p4//hFrMh4EKhKIODxj/Ua+12RX0XCckW9heUF7y7oQrSVpAgqXh1XmT6uO8OMvf570GjKVwJj8I046QACE3NlcnZpY2VzPWJvbHR5YXJkOjAAAh9ib2x0eWFyZF92YWxpZF91bnRpbD0xODAwMDg2NDAwAAIYcGF5bWVudF9pZD1wYXlfZXhhbXBsZV8xAAAGIF1qXnAEyufLjZ/eQQAgp+3aggAMX+gvCgfbmXYZ/Mzb',
    )
  })

  const minted = vectors.vectors.filter((vector) => vector.macaroonHex !== undefined)
  test.each(minted)('L402 4: vector $n, $name: minted byte for byte', (vector) => {
    const { macaroonHex = '', identifierHex = '', caveats = [], signatureHex, rootKeyHex } = vector
    const location = Buffer.from(meaningOfMacaroon(hex(macaroonHex))?.location ?? '', 'hex').toString()
    const minted = mintMacaroon(hex(rootKeyHex), hex(identifierHex), location, caveats)
    expect(minted.toString('hex')).toBe(macaroonHex)
    expect(minted.subarray(-32).toString('hex')).toBe(signatureHex)
  })

  test('L402 4: a minted macaroon decodes to its input, and is signed only by its own key', () => {
    fc.assert(
      fc.property(keys, keys, identifiers, texts, lists, (rootKey, otherKey, id, location, caveats) => {
        fc.pre(!rootKey.equals(otherKey))
        const minted = mintMacaroon(rootKey, id, location, caveats)
        const read = readMacaroon(minted)
        if (!read) throw new Error('not read')
        expect(Buffer.from(read.identifier).equals(id)).toBe(true)
        expect(read.caveats.map((caveat) => Buffer.from(caveat).toString())).toEqual(
          caveats.map((caveat) => Buffer.from(caveat).toString()),
        )
        expect(isSignedBy(rootKey, read)).toBe(true)
        expect(isSignedBy(otherKey, read)).toBe(false)
        expect(minted.equals(macaroon(caveats, { rootKey, id, location }))).toBe(true)
      }),
    )
  })

  test('L402 4: a length is written in one byte up to 127 and in two from 128', () => {
    for (const length of [0, 1, 126, 127, 128, 129, 255, 256, 2_000])
      expect(
        mintMacaroon(A.rootKey, identifier(A), 'boltyard', ['x'.repeat(length)]).equals(macaroon(['x'.repeat(length)])),
      ).toBe(true)
  })

  test('L402 57: a macaroon that we would refuse is not minted, so no one pays for it', () => {
    const room = 4_096 - macaroon(['']).length - 1
    expect(readMacaroon(mintMacaroon(A.rootKey, identifier(A), 'boltyard', ['x'.repeat(room)]))).toBeDefined()
    expect(() => mintMacaroon(A.rootKey, identifier(A), 'boltyard', ['x'.repeat(room + 1)])).toThrow(RangeError)
    expect(() => mintMacaroon(A.rootKey, identifier(A), 'boltyard', ['x'.repeat(40_000)])).toThrow(RangeError)
    expect(readMacaroon(mintMacaroon(A.rootKey, identifier(A), 'boltyard', Array(64).fill('x')))?.caveats).toHaveLength(64)
    expect(() => mintMacaroon(A.rootKey, identifier(A), 'boltyard', Array(65).fill('x'))).toThrow(RangeError)
  })
})

describe('reading', () => {
  const id: Field = [2, identifier(A)]
  const sig: Field = [6, signature(A.rootKey, identifier(A))]
  const caveat: Field = [2, 'services=boltyard:0']

  test.each<[string, Buffer]>([
    ['no location', written(id, 'end', 'end', sig)],
    ['an empty location', written([1, ''], id, 'end', 'end', sig)],
    ['a location that is not text', written([1, hex('fffe00')], id, 'end', 'end', sig)],
    ['a location with a long length', written([1, 'x'.repeat(300)], id, 'end', 'end', sig)],
  ])('L402 36: the location is only a hint: %s is read, and the signature holds', (_, one) => {
    const read = readMacaroon(one)
    expect(read && isSignedBy(A.rootKey, read)).toBe(true)
  })

  test.each<[string, Buffer]>([
    ['nothing', Buffer.alloc(0)],
    ['the version alone', Buffer.of(2)],
    ['version 1', Buffer.from('0017location boltyard\n')],
    ['version 3', Buffer.concat([Buffer.of(3), fresh.subarray(1)])],
    ['JSON', Buffer.from('{"v":2,"i":"x","s64":"AAAA"}')],
    ['no identifier', written([1, 'boltyard'], 'end', 'end', sig)],
    ['two locations', written([1, 'x'], [1, 'x'], id, 'end', 'end', sig)],
    ['the location after the identifier', written(id, [1, 'x'], 'end', 'end', sig)],
    ['two identifiers in the header', written(id, id, 'end', 'end', sig)],
    ['a header that does not end', written(id, caveat, 'end', 'end', sig)],
    ['a caveat that does not end', written(id, 'end', caveat, caveat, 'end', 'end', sig)],
    ['caveats that do not end', written(id, 'end', caveat, 'end', sig)],
    ['no signature', written(id, 'end', 'end')],
    ['a signature of 31 bytes', written(id, 'end', 'end', [6, Buffer.alloc(31)])],
    ['a signature of 33 bytes', written(id, 'end', 'end', [6, Buffer.alloc(33)])],
    ['an end after the signature', written(id, 'end', 'end', sig, 'end')],
    ['two macaroons', Buffer.concat([fresh, fresh])],
    ['an unknown field in the header', written(id, [7, 'x'], 'end', 'end', sig)],
    ['a signature under another tag', written(id, 'end', 'end', [5, Buffer.alloc(32)])],
  ])('L402 36: not a macaroon: %s', (_, one) => {
    expect(readMacaroon(one)).toBeUndefined()
  })

  test('L402 36: truncated anywhere or with anything appended, it is refused', () => {
    for (let length = 0; length < fresh.length; length++) expect(readMacaroon(fresh.subarray(0, length))).toBeUndefined()
    fc.assert(
      fc.property(bytes({ minLength: 1, maxLength: 300 }), (more) => {
        expect(readMacaroon(Buffer.concat([fresh, more]))).toBeUndefined()
      }),
    )
  })

  test.each<[string, Field[]]>([
    ['location, text and verification id', [[1, 'https://tp.example'], caveat, [4, Buffer.alloc(72)], 'end']],
    ['no location', [caveat, [4, Buffer.alloc(72)], 'end']],
    ['no verification id', [[1, 'https://tp.example'], caveat, 'end']],
    ['an empty verification id', [caveat, [4, ''], 'end']],
    ['an empty location', [[1, ''], caveat, 'end']],
  ])('L402 43: a third-party caveat is refused, not skipped: %s', (_, fields) => {
    expect(readMacaroon(written(id, 'end', ...fields, 'end', sig))).toBeUndefined()
    expect(readMacaroon(written(id, 'end', caveat, 'end', ...fields, caveat, 'end', 'end', sig))).toBeUndefined()
  })

  const headOf = (...length: number[]) =>
    Buffer.concat([Buffer.from([2, 2, ...length]), written(id, 'end', 'end', sig).subarray(3)])
  test.each<[string, Buffer]>([
    ['10 MB', headOf(...varint(10_485_760))],
    ['10 MB and nothing after it', Buffer.from([2, 2, ...varint(10_485_760)])],
    ['one byte more than there is', Buffer.concat([Buffer.of(2, 2, 67), identifier(A)])],
    ['a length that does not end', Buffer.concat([Buffer.of(2, 2), Buffer.alloc(4_000, 0xff)])],
    ['a length cut off', Buffer.of(2, 2, 0x80)],
    ['2^32 + 66, which is 66 in 32 bits', headOf(0xc2, 0x80, 0x80, 0x80, 0x10)],
    ['2^35 + 66', headOf(0xc2, 0x80, 0x80, 0x80, 0x80, 0x01)],
    ['66 in two bytes: no encoder writes that', headOf(0xc2, 0x00)],
    ['66 in three bytes', headOf(0xc2, 0x80, 0x00)],
    [
      'a third byte that is announced but missing',
      Buffer.concat([Buffer.of(2, 1, 0xc2, 0x81), macaroon([], { location: 'x'.repeat(194) }).subarray(4)]),
    ],
    ['66 in ten bytes', headOf(0xc2, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00)],
    [
      'a caveat that extends past the end',
      Buffer.concat([fresh.subarray(0, -35), Buffer.of(2, 36, 0, 6, 32), fresh.subarray(-32)]),
    ],
  ])('L402 57: a declared length is not trusted: %s', (_, one) => {
    expect(readMacaroon(one)).toBeUndefined()
  })

  test('L402 57: 4 KB and 64 caveats are read, one byte or one caveat more is not', () => {
    const room = 4_096 - macaroon(['']).length - 1
    expect(readMacaroon(macaroon(['x'.repeat(room)]))?.caveats[0]).toHaveLength(room)
    expect(readMacaroon(macaroon(['x'.repeat(room + 1)]))).toBeUndefined()
    expect(readMacaroon(macaroon(Array(64).fill('a')))?.caveats).toHaveLength(64)
    expect(readMacaroon(macaroon(Array(65).fill('a')))).toBeUndefined()
    expect(readMacaroon(macaroon(Array(1_000).fill('')))).toBeUndefined()
  })

  test('L402 57: nothing is copied: every part is a view of the input', () => {
    const { buffer } = fresh
    const read = readMacaroon(fresh)
    expect([read?.identifier, read?.signature, ...(read?.caveats ?? [])].map((part) => part?.buffer === buffer)).toEqual(
      Array(5).fill(true),
    )
  })

  test('L402 57: any bytes give a macaroon or undefined, the same as an independent decoder', () => {
    const piece = fc.oneof(
      fc.constantFrom<Field>('end', id, sig, caveat, [1, 'boltyard'], [4, 'vid']),
      fc.tuple(fc.nat(7), bytes({ maxLength: 40 })).map(([kind, content]): Field => (kind === 0 ? 'end' : [kind, content])),
    )
    const nearly = fc.array(piece, { maxLength: 8 }).map((fields) => written(...fields))
    const broken = fc.tuple(fc.nat(fresh.length - 1), fc.nat(255)).map(([at, byte]) => {
      const copy = Buffer.from(fresh)
      copy[at] = byte
      return copy
    })
    fc.assert(
      fc.property(fc.oneof(bytes({ maxLength: 300 }), nearly, broken), (one) => {
        const read = readMacaroon(one)
        const expected = meaningOfMacaroon(one)
        expect(read && hexOf(read.identifier)).toBe(expected?.identifier)
        expect(read?.caveats.map(hexOf)).toEqual(expected?.caveats)
        expect(read && hexOf(read.signature)).toBe(expected?.signature)
      }),
      { numRuns: 1_500 },
    )
  })
})

describe('the signature', () => {
  test('L402 38, 39: a changed byte in the identifier, a caveat or the signature is detected', () => {
    const read = readMacaroon(fresh)
    if (!read) throw new Error('not read')
    expect(isSignedBy(A.rootKey, read)).toBe(true)
    for (const part of [read.identifier, read.signature, ...read.caveats]) {
      for (let bit = 0; bit < part.length * 8; bit++) {
        const byte = part[bit >> 3] ?? 0
        part[bit >> 3] = byte ^ (1 << (bit & 7))
        expect(isSignedBy(A.rootKey, read)).toBe(false)
        part[bit >> 3] = byte
      }
    }
    expect(isSignedBy(A.rootKey, read)).toBe(true)
  })

  test('L402 39: a caveat that was removed, added, moved, or merged with its neighbor is detected', () => {
    const read = readMacaroon(fresh)
    if (!read) throw new Error('not read')
    const [one, two, three] = read.caveats as [Uint8Array, Uint8Array, Uint8Array]
    const others = [
      [],
      [one],
      [one, two],
      [two, three],
      [two, one, three],
      [one, two, three, three],
      [Buffer.concat([one, two]), three],
    ]
    for (const caveats of others) expect(isSignedBy(A.rootKey, { ...read, caveats })).toBe(false)
  })

  test('L402 42: a different root key is detected', () => {
    const read = readMacaroon(macaroon([`boltyard_valid_until=${END}`], { rootKey: B.rootKey }))
    if (!read) throw new Error('not read')
    expect(isSignedBy(B.rootKey, read)).toBe(true)
    expect(isSignedBy(A.rootKey, read)).toBe(false)
  })

  test('L402 58: all 32 bytes are compared in constant time', () => {
    const read = readMacaroon(fresh)
    if (!read) throw new Error('not read')
    const compared: number[][] = []
    const isEqual: typeof primitives.isEqual = (...sides) => {
      compared.push(sides.map((side) => Buffer.from(side).byteLength))
      return primitives.isEqual(...sides)
    }
    codec.isSignedBy({ ...primitives, isEqual }, B.rootKey, read)
    expect(compared).toEqual([[32, 32]])
  })
})
