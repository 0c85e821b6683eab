import { beforeAll, expect, test } from 'vitest'
import { Hopeless } from '../../../testing/eventually.ts'
import { openReceiver, type Receiver, verified } from '../../../testing/receiver.ts'
import type { Database } from '../../src/store/db.ts'
import { DELIVERIES_DUE } from '../../src/store/events/webhooks.ts'
import { createWebhook } from '../events/subscriber.ts'
import { CrashingYard } from '../support/crash-matrix.ts'
import { credentialOf, invoiceIn, preimageFrom } from '../support/gateway.ts'
import { type Created, Owner } from '../support/nodes.ts'
import { inTurns, type Merchant, newMerchant, type Paid, type Payment } from '../support/payments.ts'
import { type Answer, eventually } from '../support/server.ts'

/**
 * Makes payments while the service is killed again and again, transactions stay open, and the receiver accepts only every second
 * attempt to deliver an event.
 * With FULL=1: 10,000 payments on a PostgreSQL that syncs to disk, which is killed too.
 */

const IS_FULL = process.env.FULL === '1'
const PAYMENTS = IS_FULL ? 10_000 : 40
const AT_ONCE = IS_FULL ? 12 : 6
const TIMEOUT_MS = (IS_FULL ? 180 : 5) * 60_000
/** The service dies when it reaches a crash point for the nth time. Not the first time, so that other work is under way. */
const PASSES = IS_FULL ? 100 : 2
/** Every crash point that a payment or an event passes. */
const POINTS = [
  'webhook: claimed',
  'payment: invoice made',
  'webhook: sent',
  'payment: inserted',
  'webhook: failed',
  'payment: committed',
  'webhook: delivered',
  'validate: paid',
  'redeem: settled',
  'redeem: claimed',
  'events: numbered',
  'delivered: confirmed',
  'release: released',
]
/**
 * While the test waits for the service to die at these points, it keeps a transaction open. Events get no numbers then, so the
 * service would never reach the points of events and webhooks.
 */
const WITH_OPEN_TRANSACTION = ['payment: committed', 'redeem: claimed']

type Event = { id: string; type: string; data: { paymentId?: string; keyId?: string } }

let yard: CrashingYard
let merchant: Merchant
let created: Created
let receiver: Receiver
let reader: Owner
let sql: Database
/** The ids of events that the receiver accepted, and of those that it will accept next time. */
const [accepted, refused] = [new Set<string>(), new Set<string>()]
const forged: unknown[] = []

beforeAll(async () => {
  yard = await new CrashingYard({ store: IS_FULL ? 'embedded' : 'shared', env: { GATEWAY_RATE_LIMIT_MAX: '0' } }).start()
  sql = yard.sql()
  merchant = await newMerchant(yard)
  created = await merchant.owner.createReady()
  reader = new Owner(yard, await yard.newKey(['webhooks:write', 'events:read'], merchant.owner.accountId))
  receiver = await openReceiver()
  // While a webhook fails, it gets one request at a time. With several webhooks, the service has more to do.
  const secrets = new Map<string, string>()
  for (const type of ['payment.settled', 'payment.paid', 'payment.redeemed', 'payment.released']) {
    const { url, secret } = await createWebhook(reader, { url: `${receiver.url}/${type}`, types: [type] })
    secrets.set(new URL(url).pathname, secret)
  }
  receiver.respond = (response, request, nth) => {
    try {
      // Each signature is verified when it arrives, because it is valid for only five minutes.
      for (const received of receiver.received.slice(nth - 1, nth)) verified(secrets.get(received.path) ?? '', received)
    } catch (error) {
      forged.push(error)
    }
    const id = String(request.headers['webhook-id'])
    const isAccepted = refused.delete(id)
    if (isAccepted) accepted.add(id)
    else refused.add(id)
    if (isAccepted) response.end()
    else if (nth % 2 === 0) response.writeHead(500).end()
    else request.socket.destroy()
  }
})

/** Repeats what a killed service did not answer, as every client must. */
const insist = (what: string, ask: () => Promise<Answer>): Promise<boolean> =>
  eventually(async () => {
    const { status, text } = await ask()
    if (text.includes('"bad_request"')) throw new Hopeless(text)
    if (status !== 200) throw new Error(text)
    return true
  }, what)

const hold = { holdSeconds: 600 }

/** The ways in which a payment is delivered. Each function returns the types of the events that it causes. */
const DELIVERIES: ((payment: Paid) => Promise<string[]>)[] = [
  async (payment) => {
    await insist('the delivery', () => merchant.redeem(payment, { requestId: 'only' }))
    return ['settled', 'paid', 'redeemed']
  },
  async (payment) => {
    await insist('the validation', () => merchant.validate(payment))
    await insist('the held delivery', () => merchant.redeem(payment, { requestId: 'held', ...hold }))
    await eventually(() => merchant.delivered([{ id: payment.id, requestId: 'held' }]), 'the confirmation')
    return ['settled', 'paid', 'redeemed']
  },
  async (payment) => {
    await insist('the first delivery', () => merchant.redeem(payment, { requestId: 'first', ...hold }))
    await insist('the release', () => merchant.release(payment, 'first'))
    await insist('the second delivery', () => merchant.redeem(payment, { requestId: 'second' }))
    return ['settled', 'paid', 'released', 'redeemed']
  },
]

/** The events that each payment must have. */
const wanted = new Map<string, string[]>()

async function purchase(nth: number): Promise<void> {
  const payment = await eventually(() => merchant.create(created.node.id), 'the payment to be created')
  const credential = credentialOf(payment, await eventually(() => preimageFrom(created, payment), 'the preimage'))
  const deliver = DELIVERIES[nth % DELIVERIES.length]
  // At the same time, so that the service learns of some settlements by asking the node.
  const [types = []] = await Promise.all([
    deliver?.({ ...payment, credential }),
    eventually(() => isPaid(payment), 'the payment to be paid'),
  ])
  wanted.set(
    payment.id,
    types.map((type) => `payment.${type}`),
  )
}

async function isPaid(payment: Payment): Promise<boolean> {
  const { status, text } = await yard.operator('POST', '/sandbox/pay', { json: { invoice: invoiceIn(payment.challenge) } })
  if (status !== 200 && !text.includes('already been paid')) throw new Error(text)
  return true
}

/** Replaces waiting: attempts become due, and the leases of a killed process end. */
async function letTimePass(isDead: boolean): Promise<void> {
  await sql`
    UPDATE webhook_deliveries SET next_at = now(), lease_until = NULL
    WHERE next_at > now() AND lease_until IS NULL OR lease_until IS NOT NULL AND ${isDead}`
  await sql`SELECT pg_notify(${DELIVERIES_DUE}, '')`
}

/** Writes an event and stays open, so that later events commit first. Never idle, because the store ends idle transactions. */
function openTransaction(keyId: string): { commit: () => Promise<unknown> } {
  let mayCommit = false
  const work = sql.begin(async (transaction) => {
    await transaction`
      INSERT INTO activity (account_id, actor, action, target) VALUES (${merchant.owner.accountId}, 'test', 'key.disabled', ${keyId})`
    while (!mayCommit) await transaction`SELECT pg_sleep(0.1)`
  })
  return {
    commit: () => {
      mayCommit = true
      return work
    },
  }
}

/** Follows the feed page by page, as a program with a cursor does. */
class FeedReader {
  readonly events: Event[] = []
  #cursor = ''

  async readOn(): Promise<void> {
    for (;;) {
      const cursor = this.#cursor === '' ? '' : `&cursor=${this.#cursor}`
      type Page = { events: Event[]; nextCursor: string }
      const { events, nextCursor } = await reader.want<Page>(200, 'GET', `/events?limit=200${cursor}`)
      this.events.push(...events)
      if (this.#cursor === nextCursor) return
      this.#cursor = nextCursor
    }
  }
}

const title =
  'C53, C56: kill -9 and a receiver that fails half of the time: every event is in the feed once, in order, and arrives'
test(title, { timeout: TIMEOUT_MS }, async () => {
  const deaths = new Map(POINTS.map((point) => [point, 0]))
  const isMissing = (): boolean => [...deaths.values()].includes(0)
  let isOver = false
  let purchases = 0
  let storeDeaths = 0
  const buy = async (): Promise<void> => {
    while (purchases < PAYMENTS || isMissing()) await purchase(purchases++)
  }
  const buying = inTurns(Array.from({ length: AT_ONCE }), AT_ONCE, buy).finally(() => {
    isOver = true
  })
  const feed = new FeedReader()
  const opened: string[] = []
  for (let round = 0; !isOver; round++) {
    const point = POINTS[round % POINTS.length] ?? ''
    const keyId = `key_${round}`
    const transaction = WITH_OPEN_TRANSACTION.includes(point) ? openTransaction(keyId) : undefined
    if (transaction) opened.push(keyId)
    yard.arm(point, PASSES)
    await eventually(
      async () => {
        await letTimePass(false)
        await feed.readOn().catch(() => undefined)
        return isOver || yard.child.signalCode !== null
      },
      'the service to be killed, or the purchases to end',
      TIMEOUT_MS,
    )
    await transaction?.commit()
    if (yard.child.signalCode === null) break
    deaths.set(point, (deaths.get(point) ?? 0) + 1)
    await letTimePass(true)
    await yard.start()
    if (!IS_FULL || point !== POINTS.at(-1)) continue
    const store = await yard.takeStoreAway()
    store.giveBack()
    await eventually(() => sql`SELECT 1`, 'PostgreSQL to be back')
    storeDeaths++
  }
  await buying
  yard.disarm()
  await yard.restart('SIGKILL')
  await letTimePass(true)

  await eventually(
    async () => {
      await letTimePass(false)
      const [left] = await sql`
        SELECT 1 FROM event_outbox UNION ALL SELECT 1 FROM webhook_deliveries WHERE status = 'pending' LIMIT 1`
      return !left
    },
    'every event to arrive',
    TIMEOUT_MS,
  )
  await feed.readOn()
  const counts = { purchases, ...Object.fromEntries(deaths), storeDeaths, requests: receiver.received.length }
  process.stderr.write(`${JSON.stringify(counts)}\n`)

  const kept = await sql<{ seq: number; id: string }[]>`
    SELECT seq, id FROM events WHERE account_id = ${merchant.owner.accountId} ORDER BY seq`
  expect(kept.map(({ seq }) => seq)).toEqual(kept.map((_, index) => index + 1))
  expect(
    feed.events.map(({ id }) => id),
    'nothing was added before what had been read',
  ).toEqual(kept.map(({ id }) => id))

  const typesOf = new Map<string, string[]>()
  for (const { type, data } of feed.events)
    if (data.paymentId !== undefined) typesOf.set(data.paymentId, [...(typesOf.get(data.paymentId) ?? []), type])
  expect(typesOf).toEqual(wanted)
  expect(wanted.size).toBe(purchases)
  expect(isMissing(), 'points that were never reached').toBe(false)
  if (IS_FULL) expect(storeDeaths).toBeGreaterThan(0)
  expect(feed.events.filter(({ type }) => type === 'key.disabled').map(({ data }) => data.keyId)).toEqual(opened)

  const bodies = new Map<string, Set<string>>()
  for (const { headers, body } of receiver.received) {
    const id = String(headers['webhook-id'])
    bodies.set(id, (bodies.get(id) ?? new Set()).add(body))
  }
  expect(forged).toEqual([])
  expect([...bodies.values()].filter(({ size }) => size > 1)).toEqual([])
  const sent = feed.events.filter(({ type }) => type.startsWith('payment.')).map(({ id }) => id)
  expect([...bodies.keys()].sort()).toEqual([...sent].sort())
  expect([...accepted].sort()).toEqual([...sent].sort())
})
