import { beforeAll, expect, test } from 'vitest'
import { openReceiver, type Receiver, verified } from '../../../testing/receiver.ts'
import type { Database } from '../../src/store/db.ts'
import { DELIVERIES_DUE } from '../../src/store/events/webhooks.ts'
import { CrashingYard } from '../support/crash-matrix.ts'
import { credentialOf, invoiceIn, preimageFrom } from '../support/gateway.ts'
import type { Created } from '../support/nodes.ts'
import { inTurns, type Merchant, newMerchant, type Payment } from '../support/payments.ts'
import { eventually } from '../support/server.ts'

/**
 * Payments, while the service is killed again and again, and events are sent to a receiver that accepts each event only every second time. With FULL=1, 10,000
 * payments.
 */
const PAYMENTS = process.env.FULL === '1' ? 10_000 : 60
const AT_ONCE = 6
const POINTS = ['webhook: claimed', 'webhook: sent', 'payment: committed', 'redeem: settled', 'redeem: claimed', 'webhook: sent']

let yard: CrashingYard
let merchant: Merchant
let created: Created
let receiver: Receiver
let secret: string
let sql: Database
/** The ids of events that the receiver answered with success, and of those that it will accept next time. */
const [accepted, refused] = [new Set<string>(), new Set<string>()]

beforeAll(async () => {
  yard = await new CrashingYard().start()
  sql = yard.sql()
  merchant = await newMerchant(yard)
  created = await merchant.owner.createReady()
  receiver = await openReceiver((response, request) => {
    const id = String(request.headers['webhook-id'])
    const isAccepted = refused.delete(id)
    if (isAccepted) accepted.add(id)
    else refused.add(id)
    response.writeHead(isAccepted ? 200 : 500).end()
  })
  const { key } = await yard.newKey(['webhooks:write'], merchant.owner.accountId)
  const answer = await yard.send('POST', '/v1/webhooks', { token: key, json: { url: receiver.url, types: ['payment.*'] } })
  expect(answer.status).toBe(201)
  secret = answer.json().secret
})

/** Repeats what a killed service did not answer, as every client must. */
async function purchase(): Promise<void> {
  const payment = await eventually(() => merchant.create(created.node.id), 'the payment to be created')
  const credential = credentialOf(payment, await eventually(() => preimageFrom(created, payment), 'the preimage'))
  await eventually(() => isPaid(payment), 'the payment to be paid')
  await eventually(async () => {
    const { status, text } = await merchant.redeem({ ...payment, credential }, { requestId: payment.id })
    if (status !== 200) throw new Error(text)
    return true
  }, 'the payment to be redeemed')
}

async function isPaid(payment: Payment): Promise<boolean> {
  const { status, text } = await yard.operator('POST', '/sandbox/pay', { json: { invoice: invoiceIn(payment.challenge) } })
  if (status !== 200 && !text.includes('already been paid')) throw new Error(text)
  return true
}

/** What only takes time otherwise: attempts become due, and the leases of a process that was killed end. */
async function letTimePass(isDead: boolean): Promise<void> {
  await sql`
    UPDATE webhook_deliveries SET next_at = now(), lease_until = NULL
    WHERE next_at > now() AND lease_until IS NULL OR lease_until IS NOT NULL AND ${isDead}`
  await sql`SELECT pg_notify(${DELIVERIES_DUE}, '')`
}

test('C53, C56: kill -9 and a receiver that fails half of the time: every event is in the feed once, and arrives', async () => {
  let isOver = false
  const buying = inTurns(Array.from({ length: PAYMENTS }), AT_ONCE, purchase).finally(() => {
    isOver = true
  })
  let kills = 0
  while (!isOver) {
    // Not at the first chance, so that other work is under way.
    yard.arm(POINTS[kills % POINTS.length] ?? '', 3)
    await eventually(async () => {
      await letTimePass(false)
      return isOver || yard.child.signalCode !== null
    }, 'the service to be killed, or the purchases to end')
    if (yard.child.signalCode === null) break
    kills++
    await letTimePass(true)
    await yard.start()
  }
  await buying
  expect(kills).toBeGreaterThanOrEqual(POINTS.length)
  await yard.restart('SIGKILL')
  await letTimePass(true)

  await eventually(async () => {
    await letTimePass(false)
    const [left] = await sql`
      SELECT 1 FROM event_outbox UNION ALL SELECT 1 FROM webhook_deliveries WHERE status = 'pending' LIMIT 1`
    return !left
  }, 'every event to arrive')

  const { accountId } = merchant.owner
  const payments = await sql<{ types: string[] }[]>`
    SELECT ARRAY(SELECT type FROM events e WHERE e.account_id = ${accountId} AND e.data ->> 'paymentId' = p.id ORDER BY seq) AS types
    FROM gateway_payments p WHERE account_id = ${accountId} AND settled_at IS NOT NULL`
  expect(payments).toHaveLength(PAYMENTS)
  for (const { types } of payments) expect(types).toEqual(['payment.settled', 'payment.paid', 'payment.redeemed'])
  const events = await sql<{ seq: number; id: string; type: string }[]>`
    SELECT seq, id, type FROM events WHERE account_id = ${accountId} ORDER BY seq`
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1))

  // Every request is signed; those about one event have the same bytes, and one of them was answered with success.
  const bodies = new Map<string, string>()
  for (const request of receiver.received) {
    const { id } = verified(secret, request)
    expect(bodies.get(id) ?? request.body).toBe(request.body)
    bodies.set(id, request.body)
  }
  const wanted = events.filter(({ type }) => type.startsWith('payment.')).map(({ id }) => id)
  expect([...bodies.keys()].sort()).toEqual([...wanted].sort())
  expect([...accepted].sort()).toEqual([...wanted].sort())
})
