import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  fromBase64,
  fromBase64Portably,
  fromHex,
  fromHexPortably,
  jsonObjectIn,
  toBase64,
  toBase64Url,
  toBase64UrlPortably,
  toHex,
  toHexPortably,
} from '../src/bytes.ts'

test('base64 and hex match Node, with and without its own functions', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
      const node = Buffer.from(bytes)
      expect(toBase64(bytes)).toBe(node.toString('base64'))
      for (const text of [toBase64Url(bytes), toBase64UrlPortably(bytes)]) expect(text).toBe(node.toString('base64url'))
      for (const text of [node.toString('base64'), node.toString('base64url')])
        expect(Buffer.from(fromBase64(text) ?? [])).toEqual(node)
      expect(Buffer.from(fromBase64Portably(node.toString('base64url')))).toEqual(node)
      for (const text of [toHex(bytes), toHexPortably(bytes)]) expect(text).toBe(node.toString('hex'))
      for (const read of [fromHex, fromHexPortably]) expect(Buffer.from(read(node.toString('hex')))).toEqual(node)
    }),
  )
})

test('input that lenient decoders skip or drop is refused', () => {
  for (const text of ['A', 'AAAAA', 'AA AA', 'AA*A', 'A=AA', 'AA===', 'AAé', 'AA\n'])
    expect(fromBase64(text), text).toBeUndefined()
})

test('only a UTF-8 JSON object is accepted', () => {
  const of = (text: string | Buffer): unknown => jsonObjectIn(Buffer.from(text as string).toString('base64url'))
  expect(of('{"a":[1]}')).toEqual({ a: [1] })
  for (const text of ['', '{', '[]', 'null', '1', '"x"', '\uFEFF{}', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])])
    expect(of(text)).toBeUndefined()
})
