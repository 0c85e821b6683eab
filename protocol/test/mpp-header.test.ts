import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { issueMpp, MPP_HEADER } from '../src/mpp.ts'
import { readOffers } from '../src/offers.ts'
import { readChallenges } from '../src/www-authenticate.ts'
import { mppRefusal, primitives } from './support/codecs.ts'
import { key, terms as others } from './support/mpp.ts'
import { PAYMENT_HASH, PREIMAGE, SPEC_INVOICE } from './support/x402.ts'

const paymentHash = Buffer.from(PAYMENT_HASH, 'hex')
/** With an invoice that can be read, because a client checks it. */
const terms = { ...others, amountSat: 25, invoice: SPEC_INVOICE, network: 'mainnet' as const, paymentHash: PAYMENT_HASH }
const EXPIRES = 1_800_000_000
const issue = (header?: typeof MPP_HEADER): string => issueMpp(primitives, key, 'shop.example', terms, EXPIRES, header)
const paramsOf = (challenge: string): Record<string, string> => Object.fromEntries(readChallenges(challenge)?.[0]?.params ?? [])
const credential = (challenge: object): string =>
  `Payment ${Buffer.from(JSON.stringify({ challenge, payload: { preimage: PREIMAGE } })).toString('base64url')}`
const refusal = (challenge: string, echoed: object) =>
  mppRefusal(credential(echoed), { challenge, paymentHash, amountSat: terms.amountSat }, key)

describe('C52: the header of an MPP challenge', () => {
  test('C52: without it, the challenge has no such parameter', () => {
    expect(Object.keys(paramsOf(issue()))).toEqual(['id', 'realm', 'method', 'intent', 'request', 'expires'])
    expect(refusal(issue(), paramsOf(issue()))).toBeUndefined()
  })

  test('C52: with it, the id has an eighth input, before the last one', () => {
    const { id, realm, method, intent, request, expires, header, ...more } = paramsOf(issue(MPP_HEADER))
    expect([header, more]).toEqual(['Payment-Authorization', {}])
    const input = [realm, method, intent, request, expires, '', 'Payment-Authorization', ''].join('|')
    expect(id).toBe(createHmac('sha256', key).update(input).digest('base64url'))
    expect(id).not.toBe(paramsOf(issue()).id)
  })

  test('C52: the client must echo it', () => {
    const [plain, withHeader] = [issue(), issue(MPP_HEADER)]
    const params = paramsOf(withHeader)
    expect(refusal(withHeader, params)).toBeUndefined()
    const { header: _header, ...without } = params
    for (const echoed of [
      without,
      ...['', 'payment-authorization', 'Authorization', null, 1].map((header) => ({ ...params, header })),
    ])
      expect(refusal(withHeader, echoed)?.problem).toContain('lightning/unknown-challenge')
    // Nor can it be added to, or moved between, challenges.
    expect(refusal(plain, { ...paramsOf(plain), header: MPP_HEADER })?.reason).toBe('invalid')
    expect(refusal(plain, params)?.reason).toBe('invalid')
    expect(refusal(withHeader, paramsOf(plain))?.reason).toBe('invalid')
  })

  test('C52: a client of ours that could only send it in Authorization does not pay', () => {
    expect(readOffers(issue(MPP_HEADER), 0)).toEqual({ unusable: expect.stringMatching(/header of its own/) })
    expect(readOffers(`${issue(MPP_HEADER)}, ${issue()}`, 0)).toMatchObject({ offers: [{ protocol: 'mpp' }] })
  })
})
