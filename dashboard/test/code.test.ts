import bolt11 from 'bolt11'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { payeeOf } from '../src/payee.ts'
import { type CodeLanguage, tokensOf } from '../src/text/code/highlight.ts'
import { requestIn } from '../src/text/code/program-snippets.ts'
import { destinationIn } from '../src/text/destination.ts'

const LANGUAGES: CodeLanguage[] = ['curl', 'typescript', 'python', 'json', 'http']
const kinds = (code: string, language: CodeLanguage): string[] =>
  tokensOf(code, language).flatMap(({ kind, text }) => (kind ? [`${kind} ${text}`] : []))

test('code: colors never change the code', () => {
  const parts = fc.constantFrom('"', "'", '`', '\\', '\n', '#', '//', '$X', '{', ': ', '-H', 'curl', 'const ', '42', 'é', ' ')
  fc.assert(
    fc.property(fc.array(parts), fc.constantFrom(...LANGUAGES), (pieces, language) => {
      const code = pieces.join('')
      expect(
        tokensOf(code, language)
          .map(({ text }) => text)
          .join(''),
      ).toBe(code)
    }),
  )
})

test('code: words, texts, names and numbers of each language', () => {
  expect(kinds('curl -X POST http://localhost:80/v1 -H "A: $KEY" -d n=5', 'curl')).toEqual([
    'word curl',
    'word -X',
    'word -H',
    'text "A: $KEY"',
    'word -d',
    'number 5',
  ])
  expect(kinds("const a = await get('x') // 1", 'typescript')).toEqual([
    'word const',
    'word await',
    'name get',
    "text 'x'",
    'comment // 1',
  ])
  expect(kinds('import os\nf"{x}" # y', 'python')).toEqual(['word import', 'text f"{x}"', 'comment # y'])
  expect(kinds('{"a": ["b", -1.5, null]}', 'json')).toEqual(['name "a"', 'text "b"', 'number -1.5', 'word null'])
  expect(kinds('HTTP/1.1 402 Payment Required\nHost: x', 'http')).toEqual(['word HTTP/1.1', 'number 402', 'name Host'])
})

test('code: what a person typed stays a text in every language', () => {
  const body = { description: `It's "5" \\ $HOME`, amountSat: 5 }
  expect(requestIn('curl', 'http://x', '/p', body)).toContain(`<<'JSON'\n${JSON.stringify(body, null, 2)}\nJSON`)
  for (const language of ['typescript', 'python'] as const)
    expect(requestIn(language, 'http://x', '/p', body)).toContain(`${JSON.stringify(body.description)},`)
})

const PRIVATE_KEY = 'e126f68f7eafcc8b74f54d269fe206be715000f94dac067d1c04a8ca3b2db734'
const PUBLIC_KEY = '03e7156ae33b0a208d0744199163177e909e80176e55d97a2f221ede0f934dd9ad'

function invoiceSignedBy(privateKey: string): string {
  const network = { bech32: 'bcrt', pubKeyHash: 0x6f, scriptHash: 0xc4, validWitnessVersions: [0] }
  const tags = [
    { tagName: 'payment_hash', data: 'ab'.repeat(32) },
    { tagName: 'description', data: 'Tea' },
  ]
  const unsigned = bolt11.encode({ network, timestamp: 1_700_000_000, tags, satoshis: 5 } as any, false)
  return bolt11.sign(unsigned, privateKey).paymentRequest ?? ''
}

test('send: the payee is the key that signed the invoice', () => {
  expect(payeeOf(invoiceSignedBy(PRIVATE_KEY))).toBe(PUBLIC_KEY)
  expect(payeeOf(invoiceSignedBy('11'.repeat(32)))).not.toBe(PUBLIC_KEY)
  expect(payeeOf('lnbcrt1')).toBeUndefined()
})

test('send: pasted text is recognized, and nothing but an invoice is taken for one', () => {
  const invoice = invoiceSignedBy(PRIVATE_KEY)
  const kindOf = (text: string): string => destinationIn(text).kind
  expect(kindOf(`  lightning:${invoice.toUpperCase()} `)).toBe('invoice')
  expect(kindOf(invoice.slice(0, -1))).toBe('broken')
  expect(kindOf('lno1pqps7sjqpgtyzm3qv4uxzmtsd3jjqer9wd3hy6tsw35k7ms')).toBe('broken')
  expect(destinationIn('ann@shop.example')).toEqual({ kind: 'lightning-address', user: 'ann', domain: 'shop.example' })
  expect(kindOf('LNURL1DP68GURN8GHJ7MRWW4EXCTNXD9SHG6NPVCHXXMMD9AKXUATJDSKHQCTE8AEK2UMND9HKU')).toBe('lnurl')
  expect(kindOf('bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4')).toBe('bitcoin-address')
  expect(kindOf('hello')).toBe('unknown')
})
