import { randomInt } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Database } from '../../src/store/db.ts'
import { inTurns, Line, Merchant, NOWHERE, newMerchant, type Paid } from '../support/payments.ts'
import { eventually, type Server, startServer } from '../support/server.ts'

/** Reliability 6: concurrent requests through two processes that share only the store. */

/**
 * How many payments each test uses: many in the two most important tests (the transition to paid, and the claim), some in the
 * others. If a transition or a claim read the row before it wrote it, the test would fail with every payment; if both processes
 * recorded a settlement, with four payments of ten.
 */
const [MANY, SOME] = process.env.FULL === '1' ? [100, 15] : [20, 3]
const CLIENTS = 100
/** Only this many payments at a time, so that the hundred requests for each of them really overlap. */
const TOGETHER = 5

/** To repeat the order of a failed run, set SEED to the number in the names of its tests. */
const seed = Number(process.env.SEED ?? randomInt(2 ** 31))

let server: Server
let replica: Server
let sql: Database
let nodeId: string
let lines: Line[]
/** Creates its payments at a process that receives the node's events about them. */
let heard: Merchant
/** The same shop at the other process: the node's events about payments created there are lost. */
let unheard: Merchant

beforeAll(async () => {
  server = await startServer({ env: { TRUST_PROXY: '1', LOG_LEVEL: 'warn', NODE_PRICE_SAT_PER_DAY: '0' } })
  replica = await startServer({
    dataDir: server.dataDir,
    env: { ...server.sharedStoreEnv, ROLE: 'api', LOG_LEVEL: 'warn', NODE_CALLBACK_URL: NOWHERE },
  })
  heard = await newMerchant(server)
  unheard = new Merchant(replica, heard.owner, heard.key)
  nodeId = (await heard.owner.createReady()).node.id
  lines = [server, replica].map((one) => new Line(one, heard.key.key, (TOGETHER * CLIENTS) / 2))
  sql = server.sql()
  // The final state does not show a second transition with the same result, so triggers in the database record each transition.
  await sql.unsafe(`
    CREATE TABLE witness (payment text NOT NULL, what text NOT NULL);
    CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO witness VALUES (coalesce(NEW.id, OLD.id), TG_ARGV[0]); RETURN NULL; END';
    CREATE TRIGGER see_paid AFTER INSERT OR DELETE ON paid_payments FOR EACH ROW EXECUTE FUNCTION see('paid');
    CREATE TRIGGER see_paid_otherwise AFTER UPDATE ON paid_payments FOR EACH ROW
      WHEN ((OLD.id, OLD.paid_at, OLD.actor, OLD.log_id) IS DISTINCT FROM (NEW.id, NEW.paid_at, NEW.actor, NEW.log_id))
      EXECUTE FUNCTION see('paid');
    CREATE TRIGGER see_redeemed_at_once AFTER INSERT ON paid_payments FOR EACH ROW
      WHEN (NEW.redeemed_at IS NOT NULL) EXECUTE FUNCTION see('redeemed');
    CREATE TRIGGER see_redeemed AFTER UPDATE ON paid_payments FOR EACH ROW
      WHEN ((OLD.redeemed_at, OLD.redeem_request_id, OLD.held_until) IS DISTINCT FROM (NEW.redeemed_at, NEW.redeem_request_id, NEW.held_until))
      EXECUTE FUNCTION see('redeemed');
    CREATE TRIGGER see_settled AFTER UPDATE ON gateway_payments FOR EACH ROW
      WHEN ((OLD.settled_at, OLD.receipt) IS DISTINCT FROM (NEW.settled_at, NEW.receipt)) EXECUTE FUNCTION see('settled');
    CREATE FUNCTION hide() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.ask_at := NULL; RETURN NEW; END';
    CREATE TRIGGER hide BEFORE INSERT ON gateway_payments FOR EACH ROW EXECUTE FUNCTION hide();
    ALTER TABLE gateway_payments DISABLE TRIGGER hide`)
})

afterAll(() => {
  for (const line of lines) line.close()
})

/** Payments that customers have paid. The store knows of the settlement only if the events arrived. */
async function paidPayments(count: number, protocol: 'mpp' | 'l402', isHeard: boolean): Promise<Paid[]> {
  const merchant = isHeard ? heard : unheard
  // Without events, the sweep would ask about the payments before the validations do, so they are hidden from it.
  await sql.unsafe(`ALTER TABLE gateway_payments ${isHeard ? 'DISABLE' : 'ENABLE'} TRIGGER hide`)
  const paid = await inTurns(Array.from({ length: count }), 8, () => merchant.createPaid(nodeId, { protocol }))
  const ids = paid.map(({ id }) => id)
  const settled = async (): Promise<number> =>
    (await sql`SELECT 1 FROM gateway_payments WHERE id = ANY (${ids}) AND settled_at IS NOT NULL`).length
  if (isHeard) await eventually(async () => (await settled()) === count, 'all events to come')
  else expect(await settled()).toBe(0)
  return paid
}

type Outcome = { payment: Paid; answers: { status: number; text: string }[] }

/** A hundred requests for each payment, over both processes, in random order; optionally mixed with as many of another kind. */
async function storm(
  payments: Paid[],
  path: string,
  body: (payment: Paid) => object,
  other?: (payment: Paid, line: Line) => Promise<unknown>,
): Promise<Outcome[]> {
  const random = numbersFrom(seed)
  const anyLine = (): Line => lines[random() < 0.5 ? 0 : 1] as Line
  const outcomes: Outcome[] = payments.map((payment) => ({ payment, answers: [] }))
  for (let at = 0; at < outcomes.length; at += TOGETHER) {
    const wave = outcomes.slice(at, at + TOGETHER).flatMap(({ payment, answers }) => {
      const ask = async (): Promise<void> => {
        const [line, json] = [anyLine(), body(payment)]
        const post = () => line.post(`/v1/gateway/payments/${payment.id}/${path}`, json)
        let answer = await post()
        // 502: the node has not answered within two seconds. On a busy machine that may happen, and clients ask again.
        while (answer.status === 502) answer = await post()
        answers.push(answer)
      }
      const senders = other ? [ask, () => other(payment, anyLine())] : [ask]
      return Array.from({ length: CLIENTS }, () => senders).flat()
    })
    const shuffled = wave.map((send) => ({ send, place: random() })).sort((one, other) => one.place - other.place)
    await Promise.all(shuffled.map(({ send }) => send()))
  }
  return outcomes
}

/** A random number generator with a seed: mulberry32. */
function numbersFrom(start: number): () => number {
  let state = start
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** How often `what` happened to each payment: the minimum and the maximum. */
async function transitions(payments: Paid[], what: string): Promise<[least: number, most: number]> {
  const ids = payments.map(({ id }) => id)
  const rows = await sql<{ count: number }[]>`
    SELECT count(w.payment)::int AS count FROM unnest(${ids}::text[]) id LEFT JOIN witness w ON w.payment = id AND w.what = ${what} GROUP BY id`
  const counts = rows.map(({ count }) => count)
  expect(counts).toHaveLength(payments.length)
  return [Math.min(...counts), Math.max(...counts)]
}

async function activities(payments: Paid[], action: string): Promise<number> {
  const ids = payments.map(({ id }) => id)
  return (await sql`SELECT 1 FROM activity_log WHERE action = ${action} AND target = ANY (${ids})`).length
}

async function expectOnePaidEach(payments: Paid[]): Promise<void> {
  expect(await transitions(payments, 'paid')).toEqual([1, 1])
  expect(await transitions(payments, 'settled')).toEqual([1, 1])
  expect(await activities(payments, 'payment.paid')).toBe(payments.length)
  expect(await activities(payments, 'payment.settled')).toBe(payments.length)
}

const statusesOf = ({ answers }: Outcome): Record<string, number> => {
  const counts: Record<string, number> = {}
  for (const { status, text } of answers) {
    const name = status === 200 ? '200' : `${status} ${JSON.parse(text).error.code}`
    counts[name] = (counts[name] ?? 0) + 1
  }
  return counts
}

/** The different texts of all successful responses about a payment. */
const wordsOf = ({ answers }: Outcome): string[] => [
  ...new Set(answers.filter(({ status }) => status === 200).map(({ text }) => text)),
]

describe(`order ${seed}`, () => {
  describe.each([
    { told: 'the node has reported the settlement', isHeard: true },
    { told: 'the event is lost, and every request asks the node itself', isHeard: false },
  ])('$told', ({ isHeard }) => {
    test('C38, MPP 46: of a hundred validations, one makes the transition and all get the same answer', async () => {
      const payments = await paidPayments(isHeard ? SOME : MANY, 'mpp', isHeard)
      const outcomes = await storm(payments, 'validate', ({ credential }) => ({ credential }))
      for (const outcome of outcomes) {
        expect(statusesOf(outcome)).toEqual({ 200: CLIENTS })
        expect(wordsOf(outcome)).toHaveLength(1)
      }
      await expectOnePaidEach(payments)
      // The receipt in every answer is the one that was stored.
      for (const { payment, answers } of outcomes) {
        const [row] = await sql<{ receipt: string }[]>`SELECT receipt FROM gateway_payments WHERE id = ${payment.id}`
        expect(JSON.parse(answers[0]?.text ?? '{}').receipt).toBe(row?.receipt)
      }
    })

    test.each([
      { protocol: 'mpp' as const, body: {} },
      { protocol: 'l402' as const, body: { singleUse: true } },
    ])('C45: of a hundred redemptions ($protocol) one gets the delivery', async ({ protocol, body }) => {
      const payments = await paidPayments(isHeard && protocol === 'mpp' ? MANY : SOME, protocol, isHeard)
      const outcomes = await storm(payments, 'redeem', ({ credential }) => ({ credential, ...body }))
      for (const outcome of outcomes) expect(statusesOf(outcome)).toEqual({ 200: 1, '409 already_redeemed': CLIENTS - 1 })
      await expectOnePaidEach(payments)
      expect(await transitions(payments, 'redeemed')).toEqual([1, 1])
    })

    test.each([
      { protocol: 'mpp' as const, body: {} },
      { protocol: 'l402' as const, body: { singleUse: true } },
    ])(
      'C45: of a hundred redemptions ($protocol) with a hold, each with its own requestId, one gets the delivery',
      async (kind) => {
        const payments = await paidPayments(SOME, kind.protocol, isHeard)
        let requests = 0
        const outcomes = await storm(payments, 'redeem', ({ credential }) => ({
          credential,
          requestId: `try ${requests++}`,
          holdSeconds: 600,
          ...kind.body,
        }))
        for (const outcome of outcomes) expect(statusesOf(outcome)).toEqual({ 200: 1, '409 delivery_in_progress': CLIENTS - 1 })
        await expectOnePaidEach(payments)
        expect(await transitions(payments, 'redeemed')).toEqual([1, 1])
      },
    )
  })

  test('C45: of a hundred redemptions after a lapsed hold, one gets the delivery, even with concurrent confirmations', async () => {
    const payments = await paidPayments(SOME, 'mpp', true)
    const bodyOf =
      (requestId: string) =>
      ({ credential }: Paid) => ({ credential, requestId, holdSeconds: 600 })
    await inTurns(payments, 8, (one) => heard.redeem(one, bodyOf('dead')(one)))
    const ids = payments.map(({ id }) => id)
    await sql`UPDATE paid_payments SET held_until = now() - interval '1 second' WHERE id = ANY (${ids})`
    let requests = 0
    const confirmed = new Set<string>()
    const confirm = async ({ id }: Paid, line: Line): Promise<void> => {
      const { text } = await line.post('/v1/gateway/payments/delivered', { deliveries: [{ id, requestId: 'dead' }] })
      if (JSON.parse(text).deliveries[0].result === 'delivered') confirmed.add(id)
    }
    const outcomes = await storm(payments, 'redeem', (one) => bodyOf(`try ${requests++}`)(one), confirm)
    for (const outcome of outcomes)
      expect(statusesOf(outcome)).toEqual(
        confirmed.has(outcome.payment.id)
          ? { '409 already_redeemed': CLIENTS }
          : { 200: 1, '409 delivery_in_progress': CLIENTS - 1 },
      )
  })

  test.each([
    { protocol: 'mpp' as const, body: {}, isHeard: false },
    { protocol: 'l402' as const, body: { singleUse: true }, isHeard: true },
  ])('C45: a hundred redemptions ($protocol) with one requestId count as one', async ({ protocol, body, isHeard }) => {
    const payments = await paidPayments(SOME, protocol, isHeard)
    const outcomes = await storm(payments, 'redeem', ({ id, credential }) => ({
      credential,
      requestId: `delivery of ${id}`,
      ...body,
    }))
    for (const outcome of outcomes) {
      expect(statusesOf(outcome)).toEqual({ 200: CLIENTS })
      expect(wordsOf(outcome)).toHaveLength(1)
    }
    await expectOnePaidEach(payments)
    expect(await transitions(payments, 'redeemed')).toEqual([1, 1])
  })
})
