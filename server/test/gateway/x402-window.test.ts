import { afterAll, beforeAll, expect, test } from 'vitest'
import { preimageFrom, storeOf, x402Credential } from '../support/gateway.ts'
import { Owner } from '../support/nodes.ts'
import { accepted, deaf, merchant, openShop, server } from '../support/purchases.ts'
import { type Server, startServer } from '../support/server.ts'
import {
  chargeX402,
  DUPLICATE,
  facilitator,
  redeemX402,
  refusedX402,
  type Sold,
  sell,
  sold,
  validateX402,
  WRONG,
} from './x402-sales.ts'

/** Another process of the same service, for which the database's clock can be moved. */
let later: Server
let seller: Owner

beforeAll(async () => {
  await openShop({ store: 'embedded' })
  await storeOf(server).unsafe(`
    CREATE SCHEMA later;
    CREATE TABLE later.at (ms bigint NOT NULL);
    INSERT INTO later.at VALUES (0);
    CREATE FUNCTION later.now() RETURNS timestamptz LANGUAGE sql STABLE AS
      $$ SELECT CASE ms WHEN 0 THEN pg_catalog.now() ELSE to_timestamp(ms / 1000.0) END FROM later.at $$`)
  const { DATABASE_URL, ...store } = server.sharedStoreEnv
  const inLater = `${DATABASE_URL}&${new URLSearchParams({ options: '-c search_path=public,later,pg_catalog' })}`
  later = await startServer({ dataDir: server.dataDir, env: { ...store, DATABASE_URL: inLater, ROLE: 'api', TRUST_PROXY: '1' } })
  seller = new Owner(later, merchant.key)
})
afterAll(() => later.stop())

/** Stops the clock this many milliseconds after the end of the invoice. */
async function itIs(msAfterEnd: number, { payment }: Sold): Promise<void> {
  const { expiresAt } = await merchant.want<{ expiresAt: number }>(200, 'GET', `/gateway/payments/${payment.id}`)
  await storeOf(server)`UPDATE later.at SET ms = ${expiresAt * 1000 + msAfterEnd}`
}

const TOO_LATE = [410, 'payment_expired', 'invalid_exact_lnbtc_invoice_expired']

test('C64: a payment made in time is accepted until 60 seconds after the invoice’s end, and then refused', async () => {
  const [one, other, third] = [await sell(merchant, deaf), await sell(merchant, deaf), await sell(merchant, deaf)]
  await itIs(0, one)
  await accepted(redeemX402(seller, one.credential, { requestId: 'a' }))
  await itIs(60_999, other)
  await accepted(redeemX402(seller, other.credential, { requestId: 'a' }))
  await itIs(61_000, third)
  expect(await refusedX402(redeemX402(seller, third.credential))).toEqual(TOO_LATE)
  expect(await facilitator(seller, 'settle', third)).toMatchObject({ success: false, errorReason: TOO_LATE[2] })
  expect(await facilitator(seller, 'verify', third)).toEqual({ isValid: false, invalidReason: TOO_LATE[2] })
})

test('C64: within the window, an unsettled payment may still settle; after it, the node’s answer is final', async () => {
  const payment = await chargeX402(merchant, deaf)
  const one = sold(payment, await preimageFrom(deaf, payment))
  await itIs(10_000, one)
  const notSettled = [400, 'invalid_payment_credential', 'exact_lnbtc_invoice_not_settled']
  expect(await refusedX402(redeemX402(seller, one.credential))).toEqual(notSettled)
  await itIs(61_000, one)
  expect(await refusedX402(redeemX402(seller, one.credential))).toEqual(TOO_LATE)
})

test('C64: a payment that was refused because it was late is listed as settled and not delivered', async () => {
  const one = await sell(merchant, deaf)
  await itIs(61_000, one)
  expect(await refusedX402(redeemX402(seller, one.credential))).toEqual(TOO_LATE)
  const query = '/gateway/payments?status=settled&delivery=none'
  const { payments } = await merchant.want<{ payments: { id: string }[] }>(200, 'GET', query)
  expect(payments.map(({ id }) => id)).toContain(one.payment.id)
})

test('C68: a late payment is not refused for good while it is unknown whether the money has arrived', async () => {
  const payment = await chargeX402(merchant, deaf)
  const one = sold(payment, await preimageFrom(deaf, payment))
  await itIs(61_000, one)
  await merchant.act(deaf.node.id, 'stop')
  const attempts = [
    await refusedX402(redeemX402(seller, one.credential)),
    await refusedX402(validateX402(seller, one.credential)),
    await refusedX402(redeemX402(seller, x402Credential(one.accepted, 'ff'.repeat(32)))),
  ]
  await merchant.act(deaf.node.id, 'start')
  const unknown = [502, 'payment_service_unavailable', 'exact_lnbtc_receiver_unavailable']
  expect(attempts).toEqual([unknown, unknown, WRONG('preimage_hash_mismatch')])
  expect(await refusedX402(redeemX402(seller, one.credential))).toEqual(TOO_LATE)
})

test('C67, C68: a payment that was validated in time can be redeemed after the window; a 410 says whether the money has arrived', async () => {
  const [validated, late] = [await sell(merchant, deaf), await sell(merchant, deaf)]
  await itIs(59_000, validated)
  await accepted(validateX402(seller, validated.credential))
  await itIs(61_000, validated)
  await accepted(redeemX402(seller, validated.credential))
  await itIs(61_000, late)
  expect((await validateX402(seller, late.credential)).json().error.settled).toBe(true)
  const unpaid = await chargeX402(merchant, deaf)
  const { credential } = sold(unpaid, await preimageFrom(deaf, unpaid))
  await itIs(61_000, sold(unpaid, ''))
  expect((await validateX402(seller, credential)).json().error.settled).toBe(false)
})

test('C64: a replay is refused as one, also after the window; the request that has the delivery keeps it', async () => {
  const one = await sell(merchant, deaf)
  await itIs(59_000, one)
  const first = await accepted(redeemX402(seller, one.credential, { requestId: 'a' }))
  expect(await refusedX402(redeemX402(seller, one.credential, { requestId: 'b' }))).toEqual(DUPLICATE)
  await itIs(3_600_000, one)
  expect(await accepted(redeemX402(seller, one.credential, { requestId: 'a' }))).toBe(first)
  for (const more of [{}, { requestId: 'b' }])
    expect(await refusedX402(redeemX402(seller, one.credential, more))).toEqual(DUPLICATE)
})

test('C64, C48: a payment that was accepted in time can be delivered after the window, if the first delivery failed or its shop died', async () => {
  const [released, lapsed] = [await sell(merchant, deaf), await sell(merchant, deaf)]
  await itIs(59_000, released)
  await accepted(redeemX402(seller, released.credential, { requestId: 'a', holdSeconds: 30 }))
  await itIs(3_600_000, released)
  await seller.want(200, 'POST', `/gateway/payments/${released.payment.id}/release`, { json: { requestId: 'a' } })
  await accepted(redeemX402(seller, released.credential, { requestId: 'b' }))
  await itIs(59_000, lapsed)
  await accepted(redeemX402(seller, lapsed.credential, { requestId: 'a', holdSeconds: 30 }))
  await itIs(3_600_000, lapsed)
  await accepted(redeemX402(seller, lapsed.credential, { requestId: 'b' }))
  expect(await refusedX402(redeemX402(seller, lapsed.credential, { requestId: 'c' }))).toEqual(DUPLICATE)
})

test('C64: the record of a redemption outlives the removal of old challenges', async () => {
  const one = await sell(merchant, deaf)
  await itIs(0, one)
  await accepted(redeemX402(seller, one.credential))
  const sql = storeOf(server)
  await sql`UPDATE gateway_payments SET created_at = now() - interval '30 days', expires_at = now() - interval '30 days' WHERE id = ${one.payment.id}`
  const { CHORES } = await import('../../src/store/housekeeping.ts')
  for (const chore of Object.values(CHORES)) await chore(sql, { isStopping: () => false, eventRetentionDays: 30 })
  expect(await sql`SELECT 1 FROM paid_payments WHERE id = ${one.payment.id}`).toHaveLength(1)
})
