import { readFileSync } from 'node:fs'
import bolt11 from 'bolt11'
import fc from 'fast-check'
import { decode } from 'light-bolt11-decoder'
import { expect, test } from 'vitest'
import { type Invoice, invoiceExpiresAtSeconds, normalizedInvoice, readInvoice } from '../src/bolt11.ts'

/** An invoice made and signed by a third-party library. */
function signed(
  amount: { millisatoshis?: string },
  more: { timestamp?: number; expire?: number } = {},
): { invoice: string; hash: string } {
  const hash = 'ab'.repeat(32)
  const tags = [
    { tagName: 'payment_hash', data: hash },
    { tagName: 'description', data: 'x' },
    ...(more.expire === undefined ? [] : [{ tagName: 'expire_time', data: more.expire }]),
  ]
  const network = { bech32: 'bcrt', pubKeyHash: 0x6f, scriptHash: 0xc4, validWitnessVersions: [0] }
  const unsigned = bolt11.encode({ network, timestamp: more.timestamp ?? 1_700_000_000, tags, ...amount } as any, false)
  return { invoice: bolt11.sign(unsigned, 'e1'.repeat(32)).paymentRequest ?? '', hash }
}

test('amount, hash and expiry match two other decoders, for any amount', () => {
  fc.assert(
    fc.property(
      fc.bigInt({ min: 1n, max: 2_100_000_000_000_000_000n / 1000n }),
      fc.integer({ min: 1, max: 100_000 }),
      (msat, expire) => {
        const { invoice, hash } = signed({ millisatoshis: String(msat) }, { expire })
        const theirs = decode(invoice).sections.find(({ name }) => name === 'amount') as { value?: string } | undefined
        const read = readInvoice(invoice)
        expect(read).toMatchObject({ network: 'regtest', amountMsat: Number(theirs?.value), paymentHash: hash })
        expect(invoiceExpiresAtSeconds(read as Invoice)).toBe(1_700_000_000 + expire)
        expect(String(msat)).toBe(theirs?.value)
      },
    ),
    { numRuns: 60 },
  )
})

test('without an amount, without an expiry, in upper case', () => {
  const { invoice, hash } = signed({})
  const read = readInvoice(invoice)
  expect(read).toMatchObject({ amountMsat: undefined, paymentHash: hash })
  expect(invoiceExpiresAtSeconds(read as Invoice)).toBe(1_700_003_600)
  for (const given of [invoice.toUpperCase(), ` lightning:${invoice}\n`, `LIGHTNING:${invoice.toUpperCase()}`])
    expect(normalizedInvoice(given)).toBe(invoice)
  expect(readInvoice(normalizedInvoice(`${invoice.slice(0, 20)}${invoice.slice(20).toUpperCase()}`))).toBeUndefined()
})

test('one changed letter makes it invalid; so does random text', () => {
  const { invoice } = signed({ millisatoshis: '100000' })
  for (let at = 0; at < invoice.length; at++) {
    const other = invoice[at] === 'q' ? 'p' : 'q'
    expect(readInvoice(invoice.slice(0, at) + other + invoice.slice(at + 1))).toBeUndefined()
  }
  fc.assert(
    fc.property(
      fc.string({ maxLength: 300 }),
      (text) => readInvoice(text) === undefined && readInvoice(`lnbc1${text}`) === undefined,
    ),
  )
  expect(readInvoice(`lnbc1${'q'.repeat(5_000)}`)).toBeUndefined()
})

test('the invoices of the checked-in vectors are read', () => {
  const text = readFileSync(new URL('../../test/vectors/mpp.json', import.meta.url), 'utf8')
  const invoices = [...new Set(text.match(/ln(bcrt|bc|tbs)\w{200,}/g) ?? [])]
  expect(invoices.length).toBeGreaterThan(0)
  for (const invoice of invoices) expect(readInvoice(invoice)?.paymentHash).toMatch(/^[0-9a-f]{64}$/)
})
