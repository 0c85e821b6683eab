import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { decoded, invoiceIn, newMerchant, parametersOf, pay, redeem, sha256, storeOf } from '../support/gateway.ts'
import { infoOf, Owner } from '../support/nodes.ts'
import { startServer } from '../support/server.ts'
import { ask, BAD, invoicesMade, LIFETIME, merchant, refusal, rival, server, shop, stall, wish } from '../support/shop.ts'
import { bound, REPORT, URL_OF_REPORT } from './x402-sales.ts'

const x402 = (more: object = {}): object => wish({ protocol: 'x402', x402: { ...bound(), ...more } })

describe('C62: an x402 payment', () => {
  test('C62: the challenge requires the price in msat, to this node, for this request; the invoice says the same', async () => {
    const answer = await ask(x402())
    expect([answer.status, answer.text]).toEqual([201, expect.any(String)])
    const { id, challenge, accepts, ...rest } = answer.json()
    expect(rest).toEqual({ protocol: 'x402', status: 'payment_required' })
    const { nodeId } = await infoOf(shop)
    const invoice = invoiceIn(challenge)
    const requirements = {
      scheme: 'exact',
      network: 'lnbtc:0f9188f13cb7b2c71f2a335e3a4fc328',
      amount: '10000',
      asset: 'BTC',
      payTo: nodeId,
      maxTimeoutSeconds: LIFETIME,
      extra: {
        assetTransferMethod: 'bolt11',
        paymentFlow: 'upfront',
        requestHash: REPORT,
        requestBindingProfile: 'http:1',
        requestBindingParams: { headers: [] },
        invoice,
      },
    }
    expect(accepts).toEqual([requirements])
    const resource = { url: URL_OF_REPORT, description: 'A test' }
    expect(JSON.parse(Buffer.from(challenge, 'base64').toString('utf8'))).toEqual({ x402Version: 2, resource, accepts })
    const read = decoded(invoice)
    expect([read.amountMsat, read.expiry, read.descriptionHash, read.description]).toEqual(['10000', LIFETIME, REPORT, undefined])
    const shown = await merchant.want<{ expiresAt: number }>(200, 'GET', `/gateway/payments/${id}`)
    expect(shown).toMatchObject({ protocol: 'x402', challenge, expiresAt: read.timestamp + read.expiry })
  })

  test('C62: what the seller says about the resource is in the challenge; mcp:1 has its own parameters', async () => {
    const resource = { url: 'mcp://tool/weather', description: 'Wetter für München', mimeType: 'application/json' }
    const requestBindingParams = { server: 'https://shop.example/mcp', metadata: ['tier'] }
    const answer = await ask(x402({ resource, requestBindingProfile: 'mcp:1', requestBindingParams }))
    expect(answer.status).toBe(201)
    const required = JSON.parse(Buffer.from(answer.json().challenge, 'base64').toString('utf8'))
    expect(required.resource).toEqual(resource)
    expect(required.accepts[0].extra).toMatchObject({ requestBindingProfile: 'mcp:1', requestBindingParams })
  })

  test.each<[what: string, json: () => object]>([
    ['no "x402"', () => wish({ protocol: 'x402' })],
    ['"x402" for another protocol', () => wish({ protocol: 'mpp', x402: bound() })],
    ['"x402" for the default protocol', () => wish({ x402: bound() })],
    ['"mpp" for another protocol', () => wish({ protocol: 'l402', mpp: { header: 'Payment-Authorization' } })],
    ['no resource', () => x402({ resource: undefined })],
    ['a relative URL', () => x402({ resource: { url: '/report' } })],
    ['a URL with a password', () => x402({ resource: { url: 'https://a:b@shop.example/' } })],
    ['a URL with a fragment', () => x402({ resource: { url: `${URL_OF_REPORT}#x` } })],
    ['a URL that is not ASCII', () => x402({ resource: { url: 'https://shop.example/é' } })],
    ['a long URL', () => x402({ resource: { url: `https://shop.example/${'x'.repeat(1_000)}` } })],
    ['an unknown field of the resource', () => x402({ resource: { url: URL_OF_REPORT, price: 1 } })],
    ['a hash in upper case', () => x402({ requestHash: REPORT.toUpperCase() })],
    ['a short hash', () => x402({ requestHash: REPORT.slice(1) })],
    ['an unknown profile', () => x402({ requestBindingProfile: 'http:2' })],
    ['parameters of another profile', () => x402({ requestBindingParams: { server: 'https://a/', metadata: [] } })],
    ['no parameters', () => x402({ requestBindingParams: {} })],
    ['a header in upper case', () => x402({ requestBindingParams: { headers: ['Cookie'] } })],
    ['headers in another order', () => x402({ requestBindingParams: { headers: ['b', 'a'] } })],
    ['a header twice', () => x402({ requestBindingParams: { headers: ['a', 'a'] } })],
    ['the payment as a header', () => x402({ requestBindingParams: { headers: ['payment-signature'] } })],
    ['an unknown field', () => x402({ price: 1 })],
  ])('C62: %s: 400, and no invoice', async (_what, json) => {
    const before = await invoicesMade(shop)
    expect(await refusal(json())).toEqual(BAD)
    expect(await invoicesMade(shop)).toBe(before)
  })
})

describe('C65: payments in several protocols at once', () => {
  const path = '/gateway/payments/batch'
  const json = (more: object = {}): object => wish({ protocols: ['l402', 'mpp', 'x402'], x402: bound(), ...more })
  const kept = async (): Promise<number> => (await storeOf(server)`SELECT 1 FROM gateway_payments`).length

  test('C65: one payment for each protocol, in their order, each with its own invoice', async () => {
    const answer = await merchant.send('POST', path, { json: json() })
    expect([answer.status, answer.text]).toEqual([201, expect.any(String)])
    const { payments } = answer.json()
    expect(payments.map(({ protocol }: { protocol: string }) => protocol)).toEqual(['l402', 'mpp', 'x402'])
    const invoices = payments.map(({ challenge }: { challenge: string }) => decoded(invoiceIn(challenge)))
    expect(new Set(invoices.map(({ paymentHash }: { paymentHash: string }) => paymentHash)).size).toBe(3)
    expect(invoices.map(({ description }: { description: string }) => description)).toEqual(['A test', 'A test', undefined])
    const [, mpp] = payments
    const credential = `Payment ${Buffer.from(
      JSON.stringify({ challenge: parametersOf(mpp.challenge), payload: { preimage: await pay(server, mpp) } }),
    ).toString('base64url')}`
    expect((await redeem(merchant, mpp.id, credential)).status).toBe(200)
  })

  test('C65: with an Idempotency-Key, a repeated request gets the same payments', async () => {
    const headers = { 'idempotency-key': randomUUID() }
    const [one, other] = [
      await merchant.send('POST', path, { json: json(), headers }),
      await merchant.send('POST', path, { json: json(), headers }),
    ]
    expect([one.status, other.status, other.text]).toEqual([201, 201, one.text])
    const conflict = await merchant.send('POST', path, { json: json({ amountSat: 11 }), headers })
    expect([conflict.status, conflict.json().error.code]).toEqual([409, 'idempotency_conflict'])
    // Idempotency keys are separate for each route, so a single payment can use the same key.
    expect((await ask(wish(), merchant, headers)).status).toBe(201)
  })

  test.each<[what: string, more: object]>([
    ['no protocol', { protocols: [] }],
    ['a protocol twice', { protocols: ['mpp', 'mpp'], x402: undefined }],
    ['an unknown protocol', { protocols: ['mpp', 'lsat'], x402: undefined }],
    ['a single protocol', { protocol: 'mpp' }],
    ['x402 without its field', { x402: undefined }],
    ['the field of x402 without the protocol', { protocols: ['mpp', 'l402'] }],
    ['no price', { amountSat: undefined }],
  ])('C65: %s: 400, and no payment', async (_what, more) => {
    const before = await kept()
    expect(await merchant.refusal('POST', path, { json: json(more) })).toEqual(BAD)
    expect(await kept()).toBe(before)
  })

  test('C65: if one of them cannot be stored, none is', async () => {
    const sql = storeOf(server)
    await sql.unsafe(`
      CREATE FUNCTION no_x402() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not this one'; END $$;
      CREATE TRIGGER no_x402 BEFORE INSERT ON gateway_payments FOR EACH ROW WHEN (NEW.protocol = 'x402') EXECUTE FUNCTION no_x402()`)
    try {
      const before = await kept()
      expect(await merchant.refusal('POST', path, { json: json() })).toEqual([500, 'internal_error'])
      expect(await kept()).toBe(before)
    } finally {
      await sql.unsafe('DROP TRIGGER no_x402 ON gateway_payments; DROP FUNCTION no_x402()')
    }
  })

  test('C36, C65: each payment of a batch counts as one creation', async () => {
    const strict = await startServer({ env: { ...server.sharedStoreEnv, ROLE: 'api', GATEWAY_RATE_LIMIT_MAX: '5' } })
    const owner = new Owner(strict, (await newMerchant(server, merchant.accountId)).key)
    const batch = () => owner.refusal('POST', path, { json: json({ nodeId: stall.node.id }) })
    expect(await batch()).toEqual([404, 'node_not_found'])
    expect(await batch()).toEqual([429, 'rate_limited'])
    await strict.stop()
  })

  test('C9, C65: the node of another account is 404', async () => {
    expect(await rival.refusal('POST', path, { json: json() })).toEqual([404, 'node_not_found'])
    expect(await merchant.refusal('POST', path, { json: json({ nodeId: stall.node.id }) })).toEqual([404, 'node_not_found'])
  })
})

describe('C52: MPP in the Payment-Authorization header', () => {
  const asked = { mpp: { header: 'Payment-Authorization' } }
  test('C52: the challenge names the header, and only a credential that echoes it is accepted', async () => {
    const payment = (await ask(wish(asked))).json()
    const params = parametersOf(payment.challenge)
    expect(params.header).toBe('Payment-Authorization')
    const preimage = await pay(server, payment)
    const credential = (challenge: object): string =>
      `Payment ${Buffer.from(JSON.stringify({ challenge, payload: { preimage } })).toString('base64url')}`
    const { header: _header, ...without } = params
    for (const echoed of [without, { ...params, header: 'Authorization' }]) {
      const answer = await redeem(merchant, payment.id, credential(echoed))
      expect([answer.status, answer.json().error.code]).toEqual([400, 'invalid_payment_credential'])
    }
    const answer = await redeem(merchant, payment.id, credential(params))
    expect([answer.status, answer.json().receipt]).toEqual([200, expect.any(String)])
  })

  test('C52: without this option, the challenge has no such parameter; no other header can be chosen', async () => {
    expect(Object.keys(parametersOf((await ask(wish())).json().challenge))).toHaveLength(6)
    for (const mpp of [{}, { header: 'Authorization' }, { header: 'payment-authorization' }, { header: null }, 'x'])
      expect(await refusal(wish({ mpp }))).toEqual(BAD)
  })
})

test('C62: the description may be longer than an invoice can contain, because x402 does not put it there', async () => {
  const answer = await ask({ ...x402(), description: 'x'.repeat(500) })
  expect([answer.status, decoded(invoiceIn(answer.json().challenge)).descriptionHash]).toEqual([201, REPORT])
  expect(sha256('x'.repeat(500))).not.toBe(REPORT)
})
