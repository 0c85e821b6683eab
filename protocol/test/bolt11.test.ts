import { createHash } from 'node:crypto'
import { bech32 } from '@scure/base'
import { decode as readWithBolt11, sign, encode as write } from 'bolt11'
import fc from 'fast-check'
import { decode as readWithLightBolt11 } from 'light-bolt11-decoder'
import { describe, expect, test } from 'vitest'
import { cpuMsSince } from '../../testing/cpu-time.ts'
import { readInvoice } from '../src/bolt11.ts'

const EXAMPLE_HASH = '0001020304050607080900010203040506070809000102030405060708090102'
const CAKE =
  'One piece of chocolate cake, one icecream cone, one pickle, one slice of swiss cheese, one slice of salami, one lollypop, one piece of cherry pie, one sausage, one cupcake, and one slice of watermelon'
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

/** The fields shared by most examples. */
const example = {
  network: 'mainnet',
  amountMsat: undefined,
  paymentHash: EXAMPLE_HASH,
  description: undefined,
  descriptionHash: undefined,
  timestampSeconds: 1496314658,
  expirySeconds: 3600,
}
const COFFEE =
  'lnbc2500u1pvjluezpp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqdq5xysxxatsyp3k7enxv4jsxqzpuaztrnwngzn3kdzw5hydlzf03qdgm2hdq27cqv3agm2awhz5se903vruatfhq77w3ls4evs3ch9zw97j25emudupq63nyw24cg27h2rspfj9srp'
const BEANS =
  'lnbc25m1pvjluezpp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqdq5vdhkven9v5sxyetpdeessp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygs9q5sqqqqqqqqqqqqqqqpqsq67gye39hfg3zd8rgc80k32tvy9xk2xunwm5lzexnvpx6fd77en8qaq424dxgt56cag2dpt359k3ssyhetktkpqh24jqnjyw6uqd08sgptq44qu'

describe('the examples in BOLT 11 are decoded as specified', () => {
  test.each([
    [
      'any amount',
      'lnbc1pvjluezpp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqdpl2pkx2ctnv5sxxmmwwd5kgetjypeh2ursdae8g6twvus8g6rfwvs8qun0dfjkxaq8rkx3yf5tcsyz3d73gafnh3cax9rn449d9p5uxz9ezhhypd0elx87sjle52x86fux2ypatgddc6k63n7erqz25le42c4u4ecky03ylcqca784w',
      { ...example, description: 'Please consider supporting this project' },
    ],
    ['an amount and an expiry', COFFEE, { ...example, amountMsat: 250_000_000, description: '1 cup coffee', expirySeconds: 60 }],
    [
      'a description beyond ASCII',
      'lnbc2500u1pvjluezpp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqdpquwpc4curk03c9wlrswe78q4eyqc7d8d0xqzpuyk0sg5g70me25alkluzd2x62aysf2pyy8edtjeevuv4p2d5p76r4zkmneet7uvyakky2zr4cusd45tftc9c5fh0nnqpnl2jfll544esqchsrny',
      { ...example, amountMsat: 250_000_000, description: 'ナンセンス 1杯', expirySeconds: 60 },
    ],
    [
      'the hash of a description',
      'lnbc20m1pvjluezpp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqhp58yjmdan79s6qqdhdzgynm4zwqd5d7xmw5fk98klysy043l2ahrqscc6gd6ql3jrc5yzme8v4ntcewwz5cnw92tz0pc8qcuufvq7khhr8wpald05e92xw006sq94mg8v2ndf4sefvf9sygkshp5zfem29trqq2yxxz7',
      { ...example, amountMsat: 2_000_000_000, descriptionHash: sha256(CAKE) },
    ],
    [
      'testnet, the hash of the description before the payment hash, a fallback address',
      'lntb20m1pvjluezhp58yjmdan79s6qqdhdzgynm4zwqd5d7xmw5fk98klysy043l2ahrqspp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqfpp3x9et2e20v6pu37c5d9vax37wxq72un98kmzzhznpurw9sgl2v0nklu2g4d0keph5t7tj9tcqd8rexnd07ux4uv2cjvcqwaxgj7v4uwn5wmypjd5n69z2xm3xgksg28nwht7f6zspwp3f9t',
      { ...example, network: 'testnet', amountMsat: 2_000_000_000, descriptionHash: sha256(CAKE) },
    ],
    [
      'an amount below a satoshi, a routing hint',
      'lnbc9678785340p1pwmna7lpp5gc3xfm08u9qy06djf8dfflhugl6p7lgza6dsjxq454gxhj9t7a0sd8dgfkx7cmtwd68yetpd5s9xar0wfjn5gpc8qhrsdfq24f5ggrxdaezqsnvda3kkum5wfjkzmfqf3jkgem9wgsyuctwdus9xgrcyqcjcgpzgfskx6eqf9hzqnteypzxz7fzypfhg6trddjhygrcyqezcgpzfysywmm5ypxxjemgw3hxjmn8yptk7untd9hxwg3q2d6xjcmtv4ezq7pqxgsxzmnyyqcjqmt0wfjjq6t5v4khxxqyjw5qcqp2rzjq0gxwkzc8w6323m55m4jyxcjwmy7stt9hwkwe2qxmy8zpsgg7jcuwz87fcqqeuqqqyqqqqlgqqqqn3qq9qn07ytgrxxzad9hc4xt3mawjjt8znfv8xzscs7007v9gh9j569lencxa8xeujzkxs0uamak9aln6ez02uunw6rd2ht2sqe4hz8thcdagpleym0j',
      {
        ...example,
        amountMsat: 967_878_534,
        paymentHash: '462264ede7e14047e9b249da94fefc47f41f7d02ee9b091815a5506bc8abf75f',
        description:
          'Blockstream Store: 88.85 USD for Blockstream Ledger Nano S x 1, "Back In My Day" Sticker x 2, "I Got Lightning Working" Sticker x 2 and 1 more items',
        timestampSeconds: 1572468703,
        expirySeconds: 604_800,
      },
    ],
    ['a payment secret and features', BEANS, { ...example, amountMsat: 2_500_000_000, description: 'coffee beans' }],
    [
      'an invalid signature: it is not checked',
      'lnbc2500u1pvjluezpp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqdq5xysxxatsyp3k7enxv4jsxqzpuaxtrnwngzn3kdzw5hydlzf03qdgm2hdq27cqv3agm2awhz5se903vruatfhq77w3ls4evs3ch9zw97j25emudupq63nyw24cg27h2rspk28uwq',
      { ...example, amountMsat: 250_000_000, description: '1 cup coffee', expirySeconds: 60 },
    ],
  ])('%s', (_name, text, invoice) => {
    expect(readInvoice(text)).toEqual(invoice)
  })

  test.each([
    ['a wrong checksum', `${COFFEE.slice(0, -1)}q`],
    ['no separator', COFFEE.slice('lnbc2500u1'.length)],
    ['mixed case', COFFEE.replace('lnbc', 'LNBC')],
    ['upper case: allowed by BOLT 11, but not written by nodes or used in challenges', BEANS.toUpperCase()],
    [
      'too short',
      'lnbc1pvjluezpp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqdpl2pkx2ctnv5sxxmmwwd5kgetjypeh2ursdae8g6na6hlh',
    ],
    [
      'a unit that does not exist',
      'lnbc2500x1pvjluezpp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqdq5xysxxatsyp3k7enxv4jsxqzpujr6jxr9gq9pv6g46y7d20jfkegkg4gljz2ea2a3m9lmvvr95tq2s0kvu70u3axgelz3kyvtp2ywwt0y8hkx2869zq5dll9nelr83zzqqpgl2zg',
    ],
    [
      'less than a millisatoshi',
      'lnbc2500000001p1pvjluezpp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqdq5xysxxatsyp3k7enxv4jsxqzpu7hqtk93pkf7sw55rdv4k9z2vj050rxdr6za9ekfs3nlt5lr89jqpdmxsmlj9urqumg0h9wzpqecw7th56tdms40p2ny9q4ddvjsedzcplva53s',
    ],
    [
      'hashes of invalid length next to valid ones: should be skipped, but wallets differ',
      'lnbc25m1pvjluezpp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqdq5vdhkven9v5sxyetpdeessp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygs9q5sqqqqqqqqqqqqqqqpqsq2qrqqqfppnqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqppnqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqpp4qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqhpnqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqhp4qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqspnqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqsp4qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqnp5qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqnpkqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq2jxxfsnucm4jf4zwtznpaxphce606fvhvje5x7d4gw7n73994hgs7nteqvenq8a4ml8aqtchv5d9pf7l558889hp4yyrqv6a7zpq9fgpskqhza',
    ],
  ])('refused: %s', (_name, text) => {
    expect(readInvoice(text)).toBeUndefined()
  })
})

test.each([
  [
    'lnbc1u1p4tzwuqpp5vj92t3telvc08zhhgnvh6mkggrr6jynh5jv6p4uq70nnznk2py9sdp0gdskdsafyr3gp8rdcw5hfsafdl3gp8fqu2vf2gpxyq7xy0sxqrrsssp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygscqpj9qypqsqjn46npm9u453s7qfu3quspr4nd5e2wlmtcpnx57h3uhwe46j000sr0qhxr0fzzwzd5hdn5d8amyuj7jzckl7ctq04t7uzqtu5cj3dsgpwt5jhk',
    {
      paymentHash: '648aa5c579fb30f38af744d97d6ec840c7a91277a499a0d780f3e7314eca090b',
      description: 'Café “météo” ☕ & <b>',
    },
  ],
  [
    'lnbcrt1u1p4tzwuqpp5lpyavue9lt8sg9mmce3m9hz5gpgcx8zcnm6cr4qj7t46gjp5ua7qdqh2ajkzargv4ezqun9wphhyaqxqrrsssp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygscqpj9qypqsqpc8k8nxsk7c733kqks6qa4nlzps3tdqhag80nwtazpqn4trzth0hxx5d4yk0q4a5zqrdvxq6dxrum7vdusjz8n9xrfn8ch2eh0nppycqnkwkpj',
    {
      network: 'regtest',
      paymentHash: 'f849d67325facf04177bc663b2dc544051831c589ef581d412f2eba44834e77c',
      description: 'Weather report',
    },
  ],
  [
    'lnbc1u1p4tzwuqpp53sxvz7syjskvf78qlc9nqfsx6vggscxpyepghgkwad0ea4qu9vzsdqh2ajkzargv4ezqun9wphhyaqxqzrcsp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygscqpj9qypqsq6c2xjsvxnag2kvrkdljvpg5g9wk3928znr4c8qdqvz7qch00jmn3k25x6nxlwgfkh6jv6fy3qy7f4usdhj8e99av5efxfsdcsgydguqp6mrve4',
    {
      paymentHash: '8c0cc17a04942cc4f8e0fe0b302606d3108860c126428ba2ceeb5f9ed41c2b05',
      description: 'Weather report',
      expirySeconds: 120,
    },
  ],
])('invoices from third-party challenges are decoded: %#', (text, said) => {
  expect(readInvoice(text)).toEqual({ ...example, amountMsat: 100_000, timestampSeconds: 1_790_000_000, ...said })
})

describe('other encoders and decoders', () => {
  const NETWORKS = [
    ['bc', 'mainnet'],
    ['tb', 'testnet'],
    ['tbs', 'signet'],
    ['bcrt', 'regtest'],
  ] as const
  const bytes32 = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes).toString('hex'))
  const invoices = fc.record({
    network: fc.constantFrom(...NETWORKS),
    millisatoshis: fc.option(
      fc
        .oneof(
          fc.integer({ min: 1, max: 10_000 }),
          fc.maxSafeNat(),
          fc.integer({ min: 1, max: 21_000 }).map((n) => n * 10 ** 11),
        )
        .map((n) => String(Math.max(1, Math.min(n, 2_100_000_000_000_000)))),
      { nil: undefined },
    ),
    timestamp: fc.integer({ min: 1, max: 2 ** 35 - 1 }),
    paymentHash: bytes32,
    said: fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 120 }).map((data) => ({ tagName: 'description', data })),
      bytes32.map((data) => ({ tagName: 'purpose_commit_hash', data })),
    ),
    expiry: fc.option(fc.integer({ min: 1, max: 2 ** 31 }), { nil: undefined }),
    isSaidFirst: fc.boolean(),
  })
  type Made = typeof invoices extends fc.Arbitrary<infer T> ? T : never

  function written(made: Made): string {
    const hash = { tagName: 'payment_hash', data: made.paymentHash }
    const tags = [
      ...(made.isSaidFirst ? [made.said, hash] : [hash, made.said]),
      { tagName: 'min_final_cltv_expiry', data: 144 },
      ...(made.expiry === undefined ? [] : [{ tagName: 'expire_time', data: made.expiry }]),
    ]
    const network = { bech32: made.network[0], pubKeyHash: 0, scriptHash: 5, validWitnessVersions: [0] }
    const amount = made.millisatoshis === undefined ? {} : { millisatoshis: made.millisatoshis }
    const unsigned = write({ network, timestamp: made.timestamp, tags, ...amount }, false)
    return sign(unsigned, 'e1'.repeat(32)).paymentRequest ?? ''
  }

  test('an invoice from another encoder is decoded as two other decoders do', () => {
    fc.assert(
      fc.property(invoices, (made) => {
        const text = written(made)
        const mine = readInvoice(text)
        const network = { bech32: made.network[0], pubKeyHash: 0, scriptHash: 5, validWitnessVersions: [0] }
        const one = readWithBolt11(text, network)
        const other: any = readWithLightBolt11(text)
        const section = (name: string): any => other.sections.find((found: any) => found.name === name)?.value
        expect(mine).toEqual({
          network: made.network[1],
          amountMsat: one.millisatoshis ? Number(one.millisatoshis) : undefined,
          paymentHash: one.tagsObject.payment_hash,
          description: one.tagsObject.description,
          descriptionHash: one.tagsObject.purpose_commit_hash,
          timestampSeconds: one.timestamp,
          expirySeconds: one.tagsObject.expire_time ?? 3600,
        })
        expect(mine).toMatchObject({
          amountMsat: section('amount') && Number(section('amount')),
          paymentHash: section('payment_hash'),
          descriptionHash: section('description_hash'),
          timestampSeconds: section('timestamp'),
          expirySeconds: section('expiry') ?? 3600,
        })
        // One of the two decoders drops a leading byte order mark.
        expect(mine?.description?.replace(/^\uFEFF/, '')).toBe(section('description'))
      }),
      { numRuns: 150 },
    )
  })

  test('an invoice with one character changed, removed or doubled is refused', () => {
    const alphabet = [...'0123456789abcdefghijklmnopqrstuvwxyzBQ -é']
    fc.assert(
      fc.property(invoices, fc.nat(), fc.constantFrom(...alphabet), (made, position, letter) => {
        const text = written(made)
        const at = position % text.length
        fc.pre(text[at] !== letter)
        expect(readInvoice(text.slice(0, at) + letter + text.slice(at + 1))).toBeUndefined()
      }),
    )
    for (const text of [COFFEE, BEANS]) {
      for (let at = 0; at < text.length; at++) {
        const [before, after] = [text.slice(0, at), text.slice(at + 1)]
        const others = alphabet.filter((letter) => letter !== text[at])
        expect(others.map((letter) => readInvoice(before + letter + after)).filter(Boolean)).toEqual([])
        expect([readInvoice(before + after), readInvoice(before + text[at] + text[at] + after), readInvoice(before)]).toEqual([
          undefined,
          undefined,
          undefined,
        ])
      }
    }
  })
})

describe('ambiguous invoices', () => {
  const TAG = { p: 1, s: 16, x: 6, d: 13, h: 23, unknown: 2 }
  const field = (tag: keyof typeof TAG, words: number[]): number[] => [TAG[tag], words.length >> 5, words.length & 31, ...words]
  const zeros = (count: number): number[] => new Array<number>(count).fill(0)
  const bytes = (...values: number[]): number[] => bech32.toWords(Uint8Array.from(values))
  const SIGNATURE = zeros(104)
  const p = field('p', bech32.toWords(Buffer.from(EXAMPLE_HASH, 'hex')))
  const d = field('d', bytes(0x61))
  const h = field('h', bech32.toWords(Buffer.from(EXAMPLE_HASH, 'hex')))
  /** An invoice from 1970 with the given fields. */
  const made = (fields: number[], prefix = 'lnbc'): string => bech32.encode(prefix, [...zeros(7), ...fields, ...SIGNATURE], false)
  const withAmount = (amount: string): ReturnType<typeof readInvoice> => readInvoice(made([...p, ...d], `lnbc${amount}`))

  test('the minimum: a payment hash and a description', () => {
    const least = { ...example, timestampSeconds: 0, description: 'a' }
    expect(readInvoice(made([...p, ...d]))).toEqual(least)
    expect(readInvoice(made([...field('unknown', zeros(1023)), ...p, ...field('unknown', []), ...d]))).toEqual(least)
    expect(readInvoice(made([...p, ...field('d', [])]))).toEqual({ ...least, description: '' })
    // A byte order mark belongs to the description, because it is part of its hash.
    expect(readInvoice(made([...p, ...field('d', bytes(0xef, 0xbb, 0xbf, 0x61))]))?.description).toBe('\uFEFFa')
  })

  test.each<[string, number[]]>([
    ['nothing at all', []],
    ['no payment hash', d],
    ['two payment hashes', [...p, ...p, ...d]],
    ['two payment hashes, of which one is short', [...p, ...field('p', zeros(51)), ...d]],
    ['a short payment hash', [...field('p', zeros(51)), ...d]],
    ['a long payment hash', [...field('p', zeros(53)), ...d]],
    ['an empty payment hash', [...field('p', []), ...d]],
    ['a payment hash with more than 256 bits', [...field('p', [...zeros(51), 1]), ...d]],
    ['no description', p],
    ['two descriptions', [...p, ...d, ...d]],
    ['two descriptions, of which one is empty', [...p, ...field('d', []), ...d]],
    ['a description and a hash', [...p, ...d, ...h]],
    ['an empty description and a hash', [...p, ...field('d', []), ...h]],
    ['two hashes of descriptions', [...p, ...h, ...h]],
    ['a short hash of a description', [...p, ...field('h', zeros(51))]],
    ['a long hash of a description', [...p, ...field('h', zeros(53))]],
    ['an empty hash of a description', [...p, ...field('h', [])]],
    ['a hash of a description with more than 256 bits', [...p, ...field('h', [...zeros(51), 8])]],
    ['a description that is not UTF-8', [...p, ...field('d', bytes(0xff))]],
    ['a description that ends within a character', [...p, ...field('d', bytes(0xe2, 0x82))]],
    ['a surrogate in the description', [...p, ...field('d', bytes(0xed, 0xa0, 0x80))]],
    ['a description with a word too many', [...p, ...field('d', [...bytes(0x61), 0])]],
    ['a description with nonzero padding', [...p, ...field('d', [12, 5])]],
    ['two expiries', [...p, ...d, ...field('x', [1]), ...field('x', [1])]],
    ['an empty expiry', [...p, ...d, ...field('x', [])]],
    ['an expiry with more words than a timestamp', [...p, ...d, ...field('x', [1, ...zeros(7)])]],
    ['a field that ends in the signature', [...p, ...d, TAG.unknown, 0, 1]],
    ['a field that ends after everything', [...p, ...d, TAG.unknown, 31, 31]],
    ['two of the three words of a field’s head', [...p, ...d, TAG.unknown, 0]],
    ['one of the three words of a field’s head', [...p, ...d, TAG.unknown]],
  ])('refused: %s', (_name, fields) => {
    expect(readInvoice(made(fields))).toBeUndefined()
  })

  test('refused: an incomplete signature, or nothing but a signature', () => {
    const whole = [...zeros(7), ...p, ...d, ...SIGNATURE]
    expect(readInvoice(bech32.encode('lnbc', whole, false))).toBeDefined()
    expect(readInvoice(bech32.encode('lnbc', whole.slice(0, -1), false))).toBeUndefined()
    expect(readInvoice(bech32.encode('lnbc', SIGNATURE, false))).toBeUndefined()
    expect(readInvoice(bech32.encode('lnbc', [], false))).toBeUndefined()
  })

  test('the latest possible time is a valid Date', () => {
    const most = new Array<number>(7).fill(31)
    const text = bech32.encode('lnbc', [...most, ...p, ...d, ...field('x', most), ...SIGNATURE], false)
    const read = readInvoice(text)
    expect(read).toMatchObject({ timestampSeconds: 2 ** 35 - 1, expirySeconds: 2 ** 35 - 1 })
    expect(new Date(((read?.timestampSeconds ?? 0) + (read?.expirySeconds ?? 0)) * 1000).toISOString()).toMatch(/^\+?0*4147-/)
  })

  test.each([
    ['', undefined],
    ['10p', 1],
    ['1n', 100],
    ['1u', 100_000],
    ['1m', 100_000_000],
    ['1', 100_000_000_000],
    ['11', 1_100_000_000_000],
    ['90071992547409910p', Number.MAX_SAFE_INTEGER],
    ['90071992547409n', 9_007_199_254_740_900],
    ['90071', 9_007_100_000_000_000],
  ])('an amount is exact to the millisatoshi: "%s"', (amount, msat) => {
    expect(withAmount(amount)?.amountMsat).toBe(msat)
    expect(withAmount(amount)).toBeDefined()
  })

  test.each([
    '1p', // a tenth of a millisatoshi
    '19p',
    '90071992547409920p', // one more than the largest safe integer
    '90071992547410n',
    '90072',
    '99999999999999999',
    '100000000000000000p', // more digits than any amount has
    '0',
    '0u',
    '01u',
    'u',
    '1x',
    '1uu',
    '1.5u',
    '-1u',
    '1e3',
  ])('refused: the amount "%s"', (amount) => {
    expect(withAmount(amount)).toBeUndefined()
  })

  test.each([
    ['lnbc', 'mainnet'],
    ['lntb', 'testnet'],
    ['lntbs', 'signet'],
    ['lnbcrt', 'regtest'],
  ])('C34: %s is %s, with an amount and without', (prefix, network) => {
    for (const amount of ['', '1', '2u']) expect(readInvoice(made([...p, ...d], prefix + amount))?.network).toBe(network)
  })

  test.each(['lnsb', 'lnltc', 'ln', 'bc', 'lnbcr', 'lntbss', 'xlnbc', 'lnbcrtx', 'lno', 'lnurl'])(
    'C34: the prefix %s belongs to no known network',
    (prefix) => {
      expect(readInvoice(made([...p, ...d], prefix))).toBeUndefined()
    },
  )

  test('refused: too long, without decoding it', () => {
    const padded = (count: number): string => made([...p, ...d, ...new Array(count).fill(field('unknown', zeros(1000))).flat()])
    expect(readInvoice(padded(3))).toBeDefined()
    expect(readInvoice(padded(4))).toBeUndefined()
    const megabyte = `lnbc1${'q'.repeat(1024 * 1024)}`
    const before = process.cpuUsage()
    for (let round = 0; round < 100; round++) expect(readInvoice(megabyte)).toBeUndefined()
    // Decoding would take a tenth of a second for each.
    expect(cpuMsSince(before)).toBeLessThan(800)
  })

  test('no input makes it throw', () => {
    const word = fc.integer({ min: 0, max: 31 })
    const fields = fc
      .array(fc.tuple(fc.constantFrom(1, 6, 13, 23, 16, 3), fc.array(word, { maxLength: 60 })), { maxLength: 6 })
      .map((list) => list.flatMap(([tag, words]) => [tag, words.length >> 5, words.length & 31, ...words]))
    const texts = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.string().map((text) => `lnbc1${text}`),
      fc.array(word, { maxLength: 400 }).map((words) => bech32.encode('lnbc', words, false)),
      fields.map((words) => made(words)),
      fields.map((words) => made([...p, ...words])),
    )
    fc.assert(
      fc.property(texts, (text) => {
        const read = readInvoice(text)
        if (!read) return
        expect(read.paymentHash).toMatch(/^[0-9a-f]{64}$/)
        expect([read.description, read.descriptionHash].filter((one) => one !== undefined)).toHaveLength(1)
        expect(Number.isSafeInteger(read.expirySeconds)).toBe(true)
      }),
      { numRuns: 2_000 },
    )
  })
})
