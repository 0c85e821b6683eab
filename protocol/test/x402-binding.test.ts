import fc from 'fast-check'
import { expect, test } from 'vitest'
import { bindHttp, bindMcp, type HttpCall, isBinding, isHttpUrl, type McpCall } from '../src/x402-binding.ts'
import { primitives } from './support/codecs.ts'
import { HASH_A, HASH_B } from './support/x402.ts'

/** The hashes are those of the specification and of its test vectors. */

const A = 'https://api.example.com/article/A'
const http = (more: Partial<HttpCall> = {}, names: string[] = []) =>
  bindHttp(primitives, { method: 'GET', url: A, header: () => undefined, ...more }, names)
const cookie = (...lines: string[]) => http({ header: (name) => (name === 'cookie' ? lines : undefined) }, ['cookie'])

test.each<[what: string, binding: ReturnType<typeof http>, hash: string]>([
  ['article A', http(), HASH_A],
  ['article B', http({ url: 'https://api.example.com/article/B' }), HASH_B],
  ['another method', http({ method: 'POST' }), 'a66ae81d2b71d1d7f852985ee9db1388df785560d57114524bf7c77512962d08'],
  ['the case of the method', http({ method: 'get' }), 'ae78c3c247698ef6e25d4bb27fe5aa340535bad028d9b4a0716167b239489fc6'],
  ['a body', http({ body: Uint8Array.of(0x78) }), 'c51115dd8855d57e7f55c2a57ef957c2c15b4acd627232c88abd0d5d1f4d0c57'],
  ['an escape', http({ url: 'https://api.example.com/%2f' }), 'a1d01afa1afcb018fdb18cd50de79eda4b032613636002fc2b436f8beaa2c8d1'],
  [
    'an address',
    http({ url: 'https://[::1]:8443/article/A?x=%2F' }),
    '980a3a54eae008e4be8ee2d2b98483892f1dc7bd7e52aac5a434ff2394ca2dc7',
  ],
  ['an absent header', cookie(), '14ad9a145b7f28cb786994fd6342aded5acd795dc5ab3bdc27b905d9c58b2337'],
  ['an empty header', cookie(''), '7770b6930fee0af113be89a84430aae74c7a3ce1cc5b06c6730feec384db7e7f'],
  ['two lines', cookie(' a ', '\tb\t'), '0158d93518bd708dfb5762590fecec0999a0f1632856b22934b828001c8404ef'],
  ['one line', cookie('a, b'), '0158d93518bd708dfb5762590fecec0999a0f1632856b22934b828001c8404ef'],
  [
    'two headers',
    http({ header: (name) => (name === 'accept' ? undefined : 'application/json') }, ['accept', 'content-type']),
    '90d6e7604cd1ad486da4b335f704fa5ec58d4a0e0a2a9e465c65fce4084339a0',
  ],
])('C62: the hash of a request: %s', async (_what, binding, hash) => {
  expect((await binding)?.requestHash).toBe(hash)
  expect(isBinding({ ...(await binding) })).toBe(true)
})

test.each<[what: string, binding: ReturnType<typeof http>]>([
  ['a name in upper case', http({}, ['Cookie'])],
  ['names in another order', http({}, ['z', 'a'])],
  ['a name twice', http({}, ['a', 'a'])],
  ['the payment itself', http({}, ['payment-signature'])],
  ['a line break in a header', cookie('bad\r\nvalue')],
  ['a header that is not ASCII', cookie('é')],
  ['no method', http({ method: '' })],
  ['a method with a blank', http({ method: 'GET /' })],
  ...['', '/article/A', 'api.example.com', 'ftp://x/', 'http:///x', 'http://', `${A}#x`, 'https://a:b@c/', 'https://a@c/'].map(
    (url): [string, ReturnType<typeof http>] => [`the URL "${url}"`, http({ url })],
  ),
  ...['https://x/é', 'https://x/ y', 'https://x/%2', 'https://x/"'].map((url): [string, ReturnType<typeof http>] => [
    `the URL "${url}"`,
    http({ url }),
  ]),
])('C62: a request that cannot be bound: %s', async (_what, binding) => {
  expect(await binding).toBeUndefined()
})

const mcp = (more: Partial<McpCall> = {}, names: string[] = []) =>
  bindMcp(primitives, { server: 'https://api.example.com/mcp', name: 'get_article', arguments: { article: 'A' }, ...more }, names)

test.each<[what: string, binding: ReturnType<typeof mcp>, hash: string]>([
  ['article A', mcp(), '03941bfedc6af8a09b2f459fe83470284a76a8c75801caa9e1487a9276a693f4'],
  ['other arguments', mcp({ arguments: { article: 'B' } }), 'b3e425970d64cd4f08fc4d57a11b76da59ce6a5760d92687398c91f063120678'],
  ['another tool', mcp({ name: 'delete_article' }), '3a52bbf19dda8b5765a27246b12e805770298273b48526956c421f02fe043455'],
  [
    'another server',
    mcp({ server: 'https://other.example.com/mcp' }),
    '96903c29186c6aabc95e48abafd8ce3ad32b4060f5d5bf22cf75f3fbfe816e45',
  ],
])('C62: the hash of a tool call: %s', async (_what, binding, hash) => {
  expect((await binding)?.requestHash).toBe(hash)
  expect(isBinding({ ...(await binding) })).toBe(true)
})

test('C62: bound metadata that is absent differs from null', async () => {
  const bindings = [mcp({}, ['tier']), mcp({ meta: {} }, ['tier']), mcp({ meta: { tier: null } }, ['tier']), mcp()]
  const hashes = (await Promise.all(bindings)).map((binding) => binding?.requestHash)
  expect(hashes[0]).toBe(hashes[1])
  expect(new Set(hashes).size).toBe(3)
  expect(hashes).not.toContain(undefined)
})

test('C62: a tool call that is not valid has no binding', async () => {
  let deep: unknown = {}
  for (let level = 0; level < 100_000; level++) deep = { deep }
  const calls = [
    { arguments: null },
    { arguments: [] },
    { meta: 'x' },
    { name: '' },
    { server: 'mcp' },
    { arguments: { x: '\ud800' } },
  ]
  for (const more of [...calls, { arguments: deep }]) expect(await mcp(more)).toBeUndefined()
  for (const names of [['progressToken'], ['x402/payment'], [''], ['b', 'a'], ['\ud800']])
    expect(await mcp({}, names)).toBeUndefined()
})

test('C62: any text is either refused as a URL or read by the platform as the same host', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.webUrl({ withQueryParameters: true }),
        fc.string(),
        fc.string().map((rest) => `https://${rest}`),
      ),
      (text) => {
        if (isHttpUrl(text)) expect(['http:', 'https:']).toContain(new URL(text).protocol)
        if (isHttpUrl(text)) expect([new URL(text).username, new URL(text).hash]).toEqual(['', ''])
      },
    ),
  )
})
