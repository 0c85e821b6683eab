import { beforeAll, describe, expect, test } from 'vitest'
import { credentialOf, preimageFrom, redeem, rowOf, storeOf, validate, x402Credential } from '../support/gateway.ts'
import {
  accepted,
  bought,
  deaf,
  merchant,
  openShop,
  paidRows,
  server,
  shop,
  statusOf,
  stranger,
  times,
} from '../support/purchases.ts'
import {
  chargeX402,
  DUPLICATE,
  forged,
  REPORT,
  redeemX402,
  refusedX402,
  requestHashOf,
  sell,
  sold,
  URL_OF_REPORT,
  validateX402,
  WRONG,
} from './x402-sales.ts'

beforeAll(() => openShop())

const UNKNOWN = [404, 'gateway_payment_not_found', 'invalid_exact_lnbtc_invoice_payee_mismatch']
const NOT_SETTLED = [400, 'invalid_payment_credential', 'exact_lnbtc_invoice_not_settled']
const responseIn = (text: string) => JSON.parse(Buffer.from(JSON.parse(text).paymentResponse, 'base64').toString('utf8'))

const withOtherEnd = (invoice: string): string => `${invoice.slice(0, -1)}${invoice.endsWith('q') ? 'p' : 'q'}`

describe('C63: redeeming an x402 payment', () => {
  test('C63: it is found by its invoice and delivered once; the request that has it gets the same answer again', async () => {
    const { payment, credential, accepted: required } = await sell(merchant, shop)
    const first = await accepted(redeemX402(merchant, credential, { requestId: 'order 1', expect: { minAmountSat: 1000 } }))
    expect(JSON.parse(first)).toEqual({
      id: payment.id,
      protocol: 'x402',
      status: 'paid',
      paymentResponse: expect.any(String),
      nodeId: shop.node.id,
      amountSat: 1000,
      description: 'Weather report',
      resource: null,
      redeemedAt: expect.any(Number),
    })
    const [{ hash } = { hash: '' }] = await storeOf(server)<{ hash: string }[]>`
      SELECT encode(payment_hash, 'hex') AS hash FROM gateway_payments WHERE id = ${payment.id}`
    expect(responseIn(first)).toEqual({ success: true, transaction: hash, network: required.network })
    expect(await accepted(redeemX402(merchant, credential, { requestId: 'order 1' }))).toBe(first)
    for (const more of [{}, { requestId: 'order 2' }])
      expect(await refusedX402(redeemX402(merchant, credential, more))).toEqual(DUPLICATE)
    expect([await paidRows(payment), await statusOf(payment)]).toEqual([1, 'paid'])
  })

  test('C67: a validation claims nothing, however often; it compares the request and the terms', async () => {
    const { payment, credential } = await sell(merchant, shop)
    for (let time = 0; time < 2; time++)
      expect(JSON.parse(await accepted(validateX402(merchant, credential, { expect: { minAmountSat: 1000 } })))).toEqual({
        id: payment.id,
        protocol: 'x402',
        status: 'paid',
      })
    const article = requestHashOf(`${URL_OF_REPORT}/2`)
    expect(await refusedX402(validateX402(merchant, credential, { requestHash: article }))).toEqual(WRONG('request_mismatch'))
    expect(await refusedX402(validateX402(stranger, credential))).toEqual(UNKNOWN)
    expect(await refusedX402(validateX402(merchant, credential, { requestId: 'a' }))).toEqual([400, 'bad_request'])
    await accepted(redeemX402(merchant, credential, { requestId: 'order 1' }))
    await accepted(validateX402(merchant, credential))
    expect(await paidRows(payment)).toBe(1)
  })

  test('C68: a refusal has the id of the payment that was found, but never that of another account’s payment', async () => {
    const { payment, credential } = await sell(merchant, shop)
    const idIn = async (answer: ReturnType<typeof redeemX402>): Promise<unknown> => (await answer).json().error.paymentId
    for (const attempt of [redeemX402, validateX402]) {
      expect(await idIn(attempt(merchant, credential, { expect: { minAmountSat: 1001 } }))).toBe(payment.id)
      expect(await idIn(attempt(merchant, credential, { requestHash: requestHashOf('https://shop.example/') }))).toBe(payment.id)
      expect(await idIn(attempt(stranger, credential))).toBeUndefined()
    }
  })

  test('C68: the refusal of a payment for another request says if it is settled and unused, for the expected resource', async () => {
    const resource = 'reports'
    const one = await sell(merchant, shop, URL_OF_REPORT, { resource })
    const { id } = one.payment
    const article = { requestHash: requestHashOf(`${URL_OF_REPORT}/2`) }
    const settledIn = async (credential: string, more: object, attempt = redeemX402): Promise<unknown> => {
      const { status, json } = await attempt(merchant, credential, { ...article, ...more })
      expect([status, json().error.errorReason]).toEqual([400, 'invalid_exact_lnbtc_request_mismatch'])
      return json().error.settled
    }
    const before = await rowOf(server, id)
    for (const attempt of [redeemX402, validateX402])
      for (const expected of [{}, { expect: { nodeId: shop.node.id, resource, minAmountSat: 1001 } }])
        expect(await settledIn(one.credential, expected, attempt)).toBe(true)
    expect(await settledIn(one.credential, { expect: { resource: 'news' } })).toBeUndefined()
    expect(await settledIn(one.credential, { expect: { nodeId: deaf.node.id } })).toBeUndefined()
    expect(await settledIn(x402Credential(one.accepted, 'ff'.repeat(32)), {})).toBeUndefined()
    const note = { ...one.accepted.extra, requestBindingParams: { headers: ['x-tier'] } }
    expect(await settledIn(x402Credential({ ...one.accepted, extra: note }, one.preimage), {})).toBeUndefined()
    expect({ ...(await rowOf(server, id)), settled_at: null }).toEqual({ ...before, settled_at: null })

    await accepted(redeemX402(merchant, one.credential, { requestId: 'a', holdSeconds: 60 }))
    expect(await refusedX402(redeemX402(merchant, one.credential, article))).toEqual([409, 'delivery_in_progress'])
    await merchant.want(200, 'POST', `/gateway/payments/${id}/release`, { json: { requestId: 'a' } })
    expect(await settledIn(one.credential, {})).toBe(true)
    await accepted(redeemX402(merchant, one.credential))
    expect(await settledIn(one.credential, {})).toBeUndefined()
  })

  test('C68: a payment for another request is not refused for good before the node has reported it', async () => {
    const payment = await chargeX402(merchant, deaf)
    const { credential } = sold(payment, await preimageFrom(deaf, payment))
    const requestHash = requestHashOf(`${URL_OF_REPORT}/2`)
    expect(await refusedX402(redeemX402(merchant, credential, { requestHash }))).toEqual(NOT_SETTLED)
  })

  test('C63: of twenty concurrent redemptions, one succeeds', async () => {
    const { credential, payment } = await sell(merchant, shop)
    const answers = await Promise.all(times(20, (index) => redeemX402(merchant, credential, { requestId: `r${index}` })))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...times(19, () => 409)])
    expect(await paidRows(payment)).toBe(1)
  })

  test('C63: two customers of the same request each get what they paid for', async () => {
    const [one, other] = [await sell(merchant, shop), await sell(merchant, shop)]
    await accepted(redeemX402(merchant, other.credential))
    await accepted(redeemX402(merchant, one.credential))
    expect(await refusedX402(redeemX402(merchant, other.credential))).toEqual(DUPLICATE)
  })

  test('C63: another request, another account or a changed credential is refused and uses up nothing', async () => {
    const one = await sell(merchant, shop)
    const { accepted: required, preimage, credential } = one
    const before = await rowOf(server, one.payment.id)
    const changed = (change: object, extra: object = {}): string =>
      x402Credential({ ...required, ...change, extra: { ...required.extra, ...extra } }, preimage)
    const article = requestHashOf(`${URL_OF_REPORT}/2`)
    const other = await sell(merchant, shop)
    const attempts: [string, object, unknown[]][] = [
      [credential, { requestHash: article }, WRONG('request_mismatch')],
      [changed({}, { requestHash: article }), { requestHash: article }, WRONG('invoice_request_mismatch')],
      [changed({}, { requestHash: article }), {}, WRONG('request_mismatch')],
      [changed({ amount: '1000' }), {}, WRONG('amount_mismatch')],
      [changed({ payTo: `02${'ab'.repeat(32)}` }), {}, WRONG('pay_to_mismatch')],
      [
        changed({ network: 'lnbtc:000000000019d6689c085ae165831e93' }),
        {},
        [400, 'invalid_payment_credential', 'network_mismatch'],
      ],
      [changed({ scheme: 'upto' }), {}, [400, 'invalid_payment_credential', 'unsupported_scheme']],
      [changed({ maxTimeoutSeconds: 301 }), {}, WRONG('max_timeout_mismatch')],
      [changed({}, { paymentFlow: 'x' }), {}, WRONG('payment_flow')],
      [changed({}, { invoice: other.accepted.extra.invoice }), {}, WRONG('preimage_hash_mismatch')],
      [changed({}, { invoice: '' }), {}, WRONG('invoice_missing')],
      [changed({}, { invoice: withOtherEnd(required.extra.invoice) }), {}, WRONG('invoice_decode_failed')],
      [x402Credential(required, 'ff'.repeat(32)), {}, WRONG('preimage_hash_mismatch')],
      [x402Credential(required, undefined), {}, WRONG('preimage_missing')],
      ['', {}, [400, 'invalid_payment_credential', 'invalid_payload']],
      ['Payment x', {}, [400, 'invalid_payment_credential', 'invalid_payload']],
    ]
    for (const [text, more, refusal] of attempts)
      expect([text, await refusedX402(redeemX402(merchant, text, more))]).toEqual([text, refusal])
    const forgery = forged(one, { requestHash: article })
    expect(await refusedX402(redeemX402(merchant, forgery.credential, { requestHash: article }))).toEqual(
      WRONG('invoice_payee_mismatch'),
    )
    expect(await refusedX402(redeemX402(stranger, credential))).toEqual(UNKNOWN)
    expect(await refusedX402(redeemX402(stranger, x402Credential(required, 'ff'.repeat(32))))).toEqual(UNKNOWN)
    expect(await refusedX402(redeemX402(merchant, credential, { expect: { minAmountSat: 1001 } }))).toEqual([
      409,
      'terms_mismatch',
    ])
    expect(await refusedX402(redeemX402(merchant, credential, { expect: { nodeId: deaf.node.id } }))).toEqual([
      409,
      'terms_mismatch',
    ])
    expect({ ...(await rowOf(server, one.payment.id)), settled_at: null }).toEqual({ ...before, settled_at: null })
    await accepted(redeemX402(merchant, changed({}, { note: 'added by the client' })))
  })

  test('C63: the preimage is not enough: the node must have received the money', async () => {
    const payment = await chargeX402(merchant, deaf)
    const { credential } = sold(payment, await preimageFrom(deaf, payment))
    const startedAtMs = performance.now()
    expect(await refusedX402(redeemX402(merchant, credential))).toEqual(NOT_SETTLED)
    expect(performance.now() - startedAtMs).toBeGreaterThan(5_000)
    expect(await rowOf(server, payment.id)).toMatchObject({ settled_at: null, paid_at: null })
  })

  test('C63: a customer who pays while the node is being asked gets the delivery', async () => {
    const payment = await chargeX402(merchant, deaf)
    const { credential } = sold(payment, await preimageFrom(deaf, payment))
    const redeemed = redeemX402(merchant, credential)
    await server.operator('POST', '/sandbox/pay', { json: { invoice: sold(payment, '').accepted.extra.invoice } })
    await accepted(redeemed)
  })

  test('C63: while the node cannot be asked, the outcome is not final', async () => {
    const payment = await chargeX402(merchant, deaf)
    const { credential } = sold(payment, await preimageFrom(deaf, payment))
    await merchant.act(deaf.node.id, 'stop')
    const refusal = [502, 'payment_service_unavailable', 'exact_lnbtc_receiver_unavailable']
    expect(await refusedX402(redeemX402(merchant, credential))).toEqual(refusal)
    await merchant.act(deaf.node.id, 'start')
    expect(await refusedX402(redeemX402(merchant, credential))).toEqual(NOT_SETTLED)
  })

  test('C63: neither protocol’s route accepts the other’s credential', async () => {
    const one = await sell(merchant, shop)
    for (const attempt of [validate, redeem])
      expect(await refusedX402(attempt(merchant, one.payment.id, one.credential))).toEqual([400, 'invalid_payment_credential'])
    const mpp = await bought('mpp')
    const invoice = JSON.parse(Buffer.from(/request="([^"]+)"/.exec(mpp.payment.challenge)?.[1] ?? '', 'base64url').toString())
      .methodDetails.invoice
    const disguised = x402Credential({ ...one.accepted, extra: { ...one.accepted.extra, invoice } }, mpp.preimage)
    expect(await refusedX402(redeemX402(merchant, disguised))).toEqual(WRONG('invoice_description'))
    await accepted(validate(merchant, mpp.payment.id, credentialOf(mpp.payment, mpp.preimage)))
    await accepted(redeemX402(merchant, one.credential))
  })

  test('C48, C63: a held delivery can be released, redeemed again and confirmed', async () => {
    const { payment, credential } = await sell(merchant, shop)
    const claim = (requestId: string) => redeemX402(merchant, credential, { requestId, holdSeconds: 60 })
    await accepted(claim('a'))
    expect((await claim('b')).headers['retry-after']).toMatch(/^\d+$/)
    expect(await refusedX402(claim('b'))).toEqual([409, 'delivery_in_progress'])
    await merchant.want(200, 'POST', `/gateway/payments/${payment.id}/release`, { json: { requestId: 'a' } })
    expect(await refusedX402(claim('a'))).toEqual([409, 'not_claimed'])
    await accepted(claim('b'))
    const deliveries = [{ id: payment.id, requestId: 'b' }]
    expect(await merchant.want(200, 'POST', '/gateway/payments/delivered', { json: { deliveries } })).toEqual({
      deliveries: [{ ...deliveries[0], result: 'delivered' }],
    })
    expect(await refusedX402(claim('c'))).toEqual(DUPLICATE)
  })

  test.each<[what: string, json: object, refusal: unknown[]]>([
    ['no credential', { requestHash: REPORT }, [400, 'invalid_payment_credential']],
    ['a credential that is a number', { credential: 1, requestHash: REPORT }, [400, 'invalid_payment_credential']],
    ['no hash', { credential: 'x' }, [400, 'bad_request']],
    ['a hash in upper case', { credential: 'x', requestHash: REPORT.toUpperCase() }, [400, 'bad_request']],
    ['an unknown field', { credential: 'x', requestHash: REPORT, id: 'x' }, [400, 'bad_request']],
    ['a hold without a request', { credential: 'x', requestHash: REPORT, holdSeconds: 60 }, [400, 'bad_request']],
    ['a field that only L402 has', { credential: 'x', requestHash: REPORT, singleUse: true }, [400, 'bad_request']],
  ])('C63: a body with %s: 400', async (_what, json, refusal) => {
    expect(await refusedX402(merchant.send('POST', '/gateway/payments/redeem', { json }))).toEqual(refusal)
  })

  test('C39, C53, C63: lists, exports and events name the protocol', async () => {
    const { payment, credential } = await sell(merchant, shop)
    await accepted(redeemX402(merchant, credential))
    const { payments } = await merchant.want<{ payments: { id: string; protocol: string }[] }>(
      200,
      'GET',
      '/gateway/payments?limit=5',
    )
    expect(payments.find(({ id }) => id === payment.id)?.protocol).toBe('x402')
    const csv = await merchant.send('GET', '/gateway/payments.csv')
    expect(csv.text.split('\r\n').find((line) => line.startsWith(payment.id))).toContain(',paid,done,x402,1000,')
    await expect
      .poll(async () => {
        const { events } = await merchant.want<{ events: { type: string; data: { paymentId: string; protocol: string } }[] }>(
          200,
          'GET',
          '/events?types=payment.*&limit=200',
        )
        return events.filter(({ data }) => data.paymentId === payment.id).map(({ type, data }) => [type, data.protocol])
      })
      .toEqual(['payment.settled', 'payment.paid', 'payment.redeemed'].map((type) => [type, 'x402']))
  })
})

describe('security 1: hostile bodies', () => {
  /** The text has up to 7,000 characters, so that it fits into a body when escaped, and into a credential in base64. */
  const hostile = (text: string): string[] => [
    text,
    Buffer.from(text).toString('base64'),
    Buffer.from(`{"x402Version":2,"accepted":${text}}`).toString('base64'),
    Buffer.from(`{"x402Version":2,"accepted":{"scheme":"exact","extra":{"invoice":${JSON.stringify(text)}}}}`).toString('base64'),
  ]
  test('security 1, C63: anything up to the limit of a body is refused, and the service answers the next request', async () => {
    const units = ['a', '0', '=', '{', '[', '"', '\\', ' ', '\u0000', 'é', '[{"a":', '{"a":1,"a":', '1e999,', 'lnbcrt1', '-', '9']
    for (const unit of units)
      for (const credential of hostile(unit.repeat(Math.floor(7_000 / unit.length)))) {
        const [status, code] = await refusedX402(redeemX402(merchant, credential))
        expect([status, code]).toEqual([400, 'invalid_payment_credential'])
      }
    expect((await chargeX402(merchant, shop)).protocol).toBe('x402')
  })
})
