import { beforeAll, describe, expect, test } from 'vitest'
import { rowOf } from '../support/gateway.ts'
import { merchant, openShop, server, shop, stranger, times } from '../support/purchases.ts'
import {
  chargeX402,
  DUPLICATE,
  facilitator,
  forged,
  redeemX402,
  refusedX402,
  requestHashOf,
  sell,
  sold,
  URL_OF_REPORT,
} from './x402-sales.ts'

beforeAll(() => openShop())

describe('C66: the facilitator', () => {
  const transactionOf = async ({ payment }: { payment: { id: string } }): Promise<string> =>
    ((await rowOf(server, payment.id)) as { payment_hash: Buffer }).payment_hash.toString('hex')

  test('C66: says what it supports', async () => {
    expect(await merchant.want(200, 'GET', '/gateway/x402/supported')).toEqual({
      kinds: [
        {
          x402Version: 2,
          scheme: 'exact',
          network: 'lnbtc:0f9188f13cb7b2c71f2a335e3a4fc328',
          extra: { assetTransferMethod: 'bolt11', paymentFlow: 'upfront' },
        },
      ],
      extensions: [],
      signers: {},
    })
  })

  test('C66: verify uses up nothing; of many settlements one succeeds, and a repeated one is a duplicate', async () => {
    const one = await sell(merchant, shop)
    for (let time = 0; time < 3; time++) expect(await facilitator(merchant, 'verify', one)).toEqual({ isValid: true })
    const settled = await Promise.all(times(10, () => facilitator(merchant, 'settle', one)))
    const { network } = one.accepted
    expect(settled.filter(({ success }) => success)).toEqual([{ success: true, transaction: await transactionOf(one), network }])
    const duplicate = { success: false, errorReason: 'duplicate_settlement', transaction: '', network }
    expect(settled.filter(({ success }) => !success)).toEqual(times(9, () => duplicate))
    expect(await facilitator(merchant, 'settle', one)).toEqual(duplicate)
    expect(await facilitator(merchant, 'verify', one)).toEqual({ isValid: false, invalidReason: 'duplicate_settlement' })
    expect(await refusedX402(redeemX402(merchant, one.credential))).toEqual(DUPLICATE)
  })

  test('C66: a proof for an earlier challenge of the same request settles a later one', async () => {
    const [one, later] = [await sell(merchant, shop), await chargeX402(merchant, shop)]
    expect((await facilitator(merchant, 'settle', one, sold(later, '').accepted)).success).toBe(true)
  })

  test('C66: refusals have their reason, and use up nothing', async () => {
    const [one, other] = [await sell(merchant, shop), await chargeX402(merchant, shop, `${URL_OF_REPORT}/2`)]
    const required = one.accepted
    const reasons = async (changed: object, by = merchant) => [
      (await facilitator(by, 'verify', one, changed)).invalidReason,
      (await facilitator(by, 'settle', one, changed)).errorReason,
    ]
    const both = (reason: string): string[] => [reason, reason]
    expect(await reasons(sold(other, '').accepted)).toEqual(both('invalid_exact_lnbtc_request_mismatch'))
    expect(await reasons({ ...required, amount: '1' })).toEqual(both('invalid_exact_lnbtc_amount_mismatch'))
    expect(await reasons({})).toEqual(both('unsupported_scheme'))
    expect(await reasons({ ...required, extra: { ...required.extra, tier: 1 } })).toEqual(
      both('invalid_exact_lnbtc_extra_mismatch'),
    )
    expect(await reasons(required, stranger)).toEqual(both('invalid_exact_lnbtc_invoice_payee_mismatch'))
    expect(await facilitator(merchant, 'settle', { ...one, preimage: 'ff'.repeat(32) })).toMatchObject({
      errorReason: 'invalid_exact_lnbtc_preimage_hash_mismatch',
    })
    expect((await facilitator(merchant, 'settle', one)).success).toBe(true)
  })

  test('C66: it does not take the buyer’s word for the terms of the invoice', async () => {
    const cheap = await sell(merchant, shop)
    const dear = { ...cheap.accepted, amount: '2000000' }
    const one = { ...cheap, accepted: dear }
    expect((await facilitator(merchant, 'settle', one, dear)).errorReason).toBe('invalid_exact_lnbtc_invoice_amount_mismatch')
    // An invoice that the buyer signed, with the payment hash of the paid one. Any wallet can write such an invoice.
    for (const change of [{ amount: '2000000' }, { requestHash: requestHashOf(`${URL_OF_REPORT}/2`) }, {}]) {
      const forgery = forged(cheap, change)
      for (const path of ['verify', 'settle'] as const) {
        const { errorReason, invalidReason } = await facilitator(merchant, path, forgery)
        expect(errorReason ?? invalidReason).toBe('invalid_exact_lnbtc_invoice_payee_mismatch')
      }
    }
    expect((await facilitator(merchant, 'settle', cheap)).success).toBe(true)
  })

  test.each<[what: string, json: object]>([
    ['nothing', {}],
    ['a payload that is text', { x402Version: 2, paymentPayload: 'x', paymentRequirements: {} }],
    ['no requirements', { x402Version: 2, paymentPayload: {} }],
    ['an unknown field', { x402Version: 2, paymentPayload: {}, paymentRequirements: {}, more: 1 }],
  ])('C66: a body with %s: 400', async (_what, json) => {
    for (const path of ['verify', 'settle'])
      expect(await merchant.refusal('POST', `/gateway/x402/${path}`, { json })).toEqual([400, 'bad_request'])
  })

  test('C66: another version of x402 is refused', async () => {
    const json = { x402Version: 1, paymentPayload: { x402Version: 2 }, paymentRequirements: {} }
    for (const one of [json, { ...json, x402Version: 2, paymentPayload: { x402Version: 1 } }])
      expect(await merchant.want(200, 'POST', '/gateway/x402/verify', { json: one })).toEqual({
        isValid: false,
        invalidReason: 'invalid_x402_version',
      })
  })

  test('C12, C66: every route needs a key with gateway:write', async () => {
    const reader = await server.newKey(['nodes:read'], merchant.accountId)
    for (const [method, path] of [
      ['POST', 'payments/batch'],
      ['POST', 'payments/redeem'],
      ['POST', 'payments/validate'],
      ['GET', 'x402/supported'],
      ['POST', 'x402/verify'],
      ['POST', 'x402/settle'],
    ] as const)
      for (const token of [undefined, 'byk_x', reader.key]) {
        const answer = await server.send(method, `/v1/gateway/${path}`, token === undefined ? {} : { token })
        expect([path, answer.status]).toEqual([path, 401])
      }
  })

  test('security 1, C66: deeply nested requirements are refused', async () => {
    const one = await sell(merchant, shop)
    const required = { ...one.accepted, extra: { ...one.accepted.extra, a: 0 } }
    const paymentPayload = { x402Version: 2, accepted: required, payload: { preimage: one.preimage } }
    const json = JSON.stringify({ x402Version: 2, paymentPayload, paymentRequirements: required })
    const nestedBy = (levels: number) => {
      const body = json.replaceAll('"a":0', `"a":${'['.repeat(levels)}${']'.repeat(levels)}`)
      return merchant.send('POST', '/gateway/x402/settle', { body, headers: { 'content-type': 'application/json' } })
    }
    const deepest = await nestedBy(10_000)
    expect([deepest.status, deepest.json().error.code]).toEqual([400, 'bad_request'])
    // The parser of bodies accepts deeper nesting than the comparison does.
    expect((await nestedBy(25)).json().errorReason).toBe('invalid_exact_lnbtc_extra_mismatch')
    expect((await nestedBy(10)).json().success).toBe(true)
  })
})
