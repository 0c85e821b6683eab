import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { issueL402 } from '../../protocol/src/l402.ts'
import { issueMpp } from '../../protocol/src/mpp.ts'
import { paymentIdOf } from '../../sdk/src/index.ts'
import { newId } from '../../server/src/platform/ids.ts'
import { primitives } from '../../server/src/platform/primitives.ts'
import { attenuate, credentialOf, l402Credential } from '../../server/test/support/gateway.ts'

const PREIMAGE = '11'.repeat(32)
const invoice = 'lnbcrt1test'

function mpp(id: string, description = 'a joke'): string {
  const terms = { amountSat: 1, description, paymentId: id, invoice, network: 'regtest' as const, paymentHash: '22'.repeat(32) }
  return credentialOf(
    { protocol: 'mpp', challenge: issueMpp(primitives, Buffer.alloc(32), 'shop.example', terms, 2_000_000_000) },
    PREIMAGE,
  )
}

function l402(id: string): string {
  const terms = {
    paymentId: id,
    paymentHash: Buffer.alloc(32, 2),
    tokenId: Buffer.alloc(32, 3),
    validUntilSeconds: 2_000_000_000,
    invoice,
  }
  return credentialOf({ protocol: 'l402', challenge: issueL402(primitives, Buffer.alloc(32), terms) }, PREIMAGE)
}

describe('the payment id is read from the credential alone', () => {
  test('MPP 56: for everything MPP clients send', () => {
    const id = newId('pay')
    expect(paymentIdOf(mpp(id))).toBe(id)
    expect(paymentIdOf(mpp(id, 'Wetter für Zürich, "heute" — 天気'))).toBe(id)
    expect(paymentIdOf(mpp(id).replace('Payment', ' payment'))).toBe(id)
  })

  test('L402 60: for everything L402 clients send, under either name, with any alphabet and padding', () => {
    const id = newId('pay')
    expect(paymentIdOf(l402(id))).toBe(id)
    expect(paymentIdOf(l402(id).replace('L402', 'LSAT'))).toBe(id)
    expect(paymentIdOf(l402(id).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', ''))).toBe(id)
  })

  test('L402 60: the first payment_id counts; what the customer adds does not', () => {
    const id = newId('pay')
    const macaroon = Buffer.from(l402(id).slice('L402 '.length).split(':')[0] ?? '', 'base64')
    const narrowed = attenuate(macaroon, `payment_id=${newId('pay')}`, 'boltyard_valid_until=1999999999')
    expect(paymentIdOf(l402Credential(narrowed, PREIMAGE))).toBe(id)
  })

  test('third-party vectors contain no id of ours, and none of them throws', () => {
    const text = ['mpp', 'l402'].map((name) => readFileSync(new URL(`../vectors/${name}.json`, import.meta.url), 'utf8')).join()
    const credentials = [...text.matchAll(/"((?:Payment|L402|LSAT) [^"\\]+)"/g)].map(([, credential = '']) => credential)
    expect(credentials.length).toBeGreaterThan(10)
    for (const credential of credentials) expect(paymentIdOf(credential) ?? 'pay_').toMatch(/^pay_/)
  })
})

describe('anything else is undefined', () => {
  test.each(['', 'Bearer abc', 'Basic YTpi', 'Payment', 'Payment ', 'L402 :', 'Payment e30', 'L402 AgA:00'])(
    '%j',
    (credential) => {
      expect(paymentIdOf(credential)).toBeUndefined()
    },
  )

  test('a credential longer than the service accepts', () => {
    expect(paymentIdOf(`${mpp(newId('pay'))}${'A'.repeat(20_000)}`)).toBeUndefined()
  })

  test('an invalid id', () => {
    for (const id of ['../nodes', 'pay_', 'pay_0000000000000000000/', 'node_00000000000000000000', ''])
      for (const credential of [mpp(id), l402(id)]) expect(paymentIdOf(credential)).toBeUndefined()
  })

  test('any text, and any valid credential with a byte changed or cut off: never an exception', () => {
    const valid = [mpp(newId('pay')), l402(newId('pay'))]
    const bent = fc
      .tuple(fc.constantFrom(...valid), fc.nat(), fc.string({ minLength: 0, maxLength: 2, unit: 'binary-ascii' }), fc.boolean())
      .map(([text, at, put, cut]) => {
        const index = at % text.length
        return cut ? text.slice(0, index) : text.slice(0, index) + put + text.slice(index + 1)
      })
    fc.assert(
      fc.property(fc.oneof(fc.string(), bent), (credential) => {
        expect(paymentIdOf(credential) ?? 'pay_').toMatch(/^pay_/)
      }),
      { numRuns: 5_000 },
    )
  })
})
