import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Message, MessageParser } from '../../src/events/message-parser.ts'

const parse = (...chunks: (string | Uint8Array)[]): Message[] => {
  const parser = new MessageParser()
  return chunks.flatMap((chunk) => parser.push(typeof chunk === 'string' ? Buffer.from(chunk) : chunk))
}

test.each<[string, string, Message[]]>([
  ['a message', 'id: 7\nevent: a\ndata: {}\n\n', [{ id: '7', data: '{}' }]],
  ['data on several lines', 'data: a\ndata:b\ndata\n\n', [{ data: 'a\nb\n' }]],
  ['only the first space is removed', 'data:  a: b\n\n', [{ data: ' a: b' }]],
  ['an id without data', 'id: 7\n\n', [{ id: '7' }]],
  ['a pause before reconnecting', 'retry: 30000\n\nretry: 1s\n\n', [{ retryMs: 30_000 }]],
  ['comments and unknown fields', ': ping\n\nsince: 1\nother\n\ndata: a\n\n', [{ data: 'a' }]],
  ['an id with NUL is ignored', 'id: a\0\ndata: b\n\n', [{ data: 'b' }]],
  ['an id counts for its own message', 'id: 1\ndata: a\n\ndata: b\n\n', [{ id: '1', data: 'a' }, { data: 'b' }]],
  ['a byte order mark', '\ufeffdata: a\n\n', [{ data: 'a' }]],
  ['a message that is not complete', 'data: a\n', []],
])('%s', (_what, text, messages) => {
  expect(parse(text)).toEqual(messages)
})

test.each(['\n', '\r', '\r\n'])('a line may end with %j', (end) => {
  expect(parse(['id: 1', 'data: a', '', 'data: b', '', ''].join(end))).toEqual([{ id: '1', data: 'a' }, { data: 'b' }])
})

test('however the bytes are cut into chunks, the messages are the same', () => {
  const text = ': ping\r\n\r\nid: 1\r\ndata: {"for":"Zürich ☕ 🎉"}\r\n\r\nid: 2\rdata: b\r\rid: 3\ndata: c\n\n'
  const bytes = Buffer.from(text)
  const whole = parse(bytes)
  expect(whole.map(({ id }) => id)).toEqual(['1', '2', '3'])
  void fc.assert(
    fc.property(fc.uniqueArray(fc.nat({ max: bytes.length })), (cuts) => {
      const ends = [...cuts.sort((a, b) => a - b), bytes.length]
      expect(parse(...ends.map((end, at) => bytes.subarray(ends[at - 1] ?? 0, end)))).toEqual(whole)
    }),
    { numRuns: 1_000 },
  )
})
