import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import type { Sql } from '../../src/store/db.ts'
import { bound, REPORT } from '../gateway/x402-sales.ts'
import { CrashingYard } from '../support/crash-matrix.ts'
import type { Protocol } from '../support/gateway.ts'
import { withhold } from '../support/nodes.ts'
import { type Merchant, NOWHERE, newMerchant, type Paid } from '../support/payments.ts'
import { type Answer, eventually } from '../support/server.ts'

/** Reliability 1, 7 and 8 at the gateway: if the service dies between an effect and its answer, a repeated request gets the same answer. */

/** C41: if the first request never ends, a repeated one is carried out after this time. */
const TAKEN_OVER_SECONDS = 30

let yard: CrashingYard
let merchant: Merchant
let nodeId: string

beforeAll(async () => {
  // The nodes' events must not arrive, because the service would then record settlements at unpredictable times.
  yard = await new CrashingYard({ store: 'embedded', env: { NODE_CALLBACK_URL: NOWHERE } }).start()
  merchant = await newMerchant(yard)
  nodeId = (await merchant.owner.createReady()).node.id
})

/** The service dies when it first reaches the crash point, before it has answered. Then it is started again. */
async function dieAt(point: string, work: () => Promise<Answer>, meanwhile?: () => Promise<void>): Promise<void> {
  await merchant.owner.until(nodeId, 'ready')
  yard.arm(point)
  await expect(work(), 'nobody was answered').rejects.toThrow()
  await yard.died(point)
  await meanwhile?.()
  await yard.start()
}

async function inStore<T>(look: (sql: Sql) => Promise<T>): Promise<T> {
  const sql = yard.sql()
  try {
    return await look(sql)
  } finally {
    await sql.end()
  }
}

const idsOf = (description: string): Promise<string[]> =>
  inStore(async (sql) =>
    (await sql<{ id: string }[]>`SELECT id FROM gateway_payments WHERE description = ${description}`).map(({ id }) => id),
  )

const rowOf = ({ id }: { id: string }): Promise<Record<string, unknown> | undefined> =>
  inStore(
    async (sql) =>
      (
        await sql`SELECT paid_at, settled_at, receipt, redeemed_at FROM gateway_payments LEFT JOIN paid_payments USING (account_id, id) WHERE id = ${id}`
      )[0],
  )

const activitiesOf = ({ id }: { id: string }, action: string): Promise<number> =>
  inStore(async (sql) => (await sql`SELECT 1 FROM activity_log WHERE target = ${id} AND action = ${action}`).length)

describe('create', () => {
  test('C41: before the commit: nothing exists, and within 30 s the same request creates the payment, once', async () => {
    for (const point of ['payment: invoice made', 'payment: inserted']) {
      const description = `died at ${point}`
      const key = randomUUID()
      const ask = (): Promise<Answer> => merchant.ask(nodeId, { description }, { 'idempotency-key': key })
      // On a busy machine, starting the service again may take longer than TAKEN_OVER_SECONDS, so the test extends that time.
      await dieAt(point, ask, async () => {
        const [row] = await inStore(
          (sql) => sql<{ seconds: number }[]>`
            UPDATE idempotency_keys SET running_until = now() + interval '1 hour' WHERE key = ${key}
            RETURNING extract(epoch FROM old.running_until - created_at)::float AS seconds`,
        )
        expect(row?.seconds).toBe(TAKEN_OVER_SECONDS)
      })
      expect(await idsOf(description)).toEqual([])
      await merchant.owner.until(nodeId, 'ready')
      const early = await ask()
      expect([early.status, early.json().error.code]).toEqual([409, 'operation_in_progress'])
      expect(early.headers['retry-after']).toBe('1')
      // Simulates that the time has passed.
      await inStore((sql) => sql`UPDATE idempotency_keys SET running_until = now() WHERE key = ${key}`)
      const answer = await ask()
      expect([answer.status, answer.text]).toEqual([201, expect.any(String)])
      expect(await idsOf(description)).toEqual([answer.json().id])
      // Now the answer is stored.
      expect((await ask()).text).toBe(answer.text)
      expect(await idsOf(description)).toHaveLength(1)
      expect((await merchant.validate(await merchant.pay(answer.json()))).status).toBe(200)
    }
  })

  test('C41: after the commit: the same request gets that payment immediately', async () => {
    const description = 'committed'
    const headers = { 'idempotency-key': randomUUID() }
    await dieAt('payment: committed', () => merchant.ask(nodeId, { description }, headers))
    const kept = await idsOf(description)
    expect(kept).toHaveLength(1)
    const again = await merchant.create(nodeId, { description }, headers)
    expect([again.id]).toEqual(kept)
    expect(await idsOf(description)).toEqual(kept)
    await merchant.owner.until(nodeId, 'ready')
    expect((await merchant.validate(await merchant.pay(again))).status).toBe(200)
  })

  test('without a key, a retry creates a second payment, and the first stays unpaid', async () => {
    const description = 'no key'
    await dieAt('payment: inserted', () => merchant.ask(nodeId, { description }))
    await merchant.owner.until(nodeId, 'ready')
    // Without a key, the insert commits on its own, before this crash point.
    const [first = '', ...others] = await idsOf(description)
    expect([first, others]).toEqual([expect.stringMatching(/^pay_/), []])
    const second = await merchant.create(nodeId, { description })
    expect((await idsOf(description)).sort()).toEqual([first, second.id].sort())
    expect((await merchant.validate(await merchant.pay(second))).status).toBe(200)
    expect(await rowOf({ id: first })).toMatchObject({ settled_at: null, paid_at: null })
  })
})

/** Keeps the sweep from asking the node about the payment, so that the service learns of the settlement only from the credential. */
const createPaid = async (protocol: Protocol): Promise<Paid> => {
  await merchant.owner.until(nodeId, 'ready')
  const payment = await merchant.create(nodeId, { protocol, ...(protocol === 'x402' ? { x402: bound() } : {}) })
  await inStore((sql) => sql`UPDATE gateway_payments SET ask_at = now() + interval '1 hour' WHERE id = ${payment.id}`)
  return merchant.pay(payment)
}

describe.each(['mpp', 'l402'] as const)('%s', (protocol) => {
  test('C38: validate, between the transition and its answer: the same credential gets the one receipt', async () => {
    const payment = await createPaid(protocol)
    await dieAt('validate: paid', () => merchant.validate(payment))
    const kept = await rowOf(payment)
    expect(kept?.paid_at).toBeInstanceOf(Date)
    const answers = [await merchant.validate(payment), await merchant.validate(payment)]
    const receipt = protocol === 'mpp' ? { receipt: kept?.receipt } : {}
    for (const answer of answers)
      expect([answer.status, answer.json()]).toEqual([200, { id: payment.id, protocol, status: 'paid', ...receipt }])
    expect(await rowOf(payment)).toEqual(kept)
    expect(await activitiesOf(payment, 'payment.paid')).toBe(1)
    expect(await activitiesOf(payment, 'payment.settled')).toBe(1)
  })

  const claim = protocol === 'l402' ? { singleUse: true } : {}
  test('C45: redeem, between the claim and its answer: the same requestId gets the delivery again, and no other does', async () => {
    const payment = await createPaid(protocol)
    await dieAt('redeem: claimed', () => merchant.redeem(payment, { requestId: 'mine', ...claim }))
    const kept = await rowOf(payment)
    const redeemedAt = Math.floor(Number(kept?.redeemed_at) / 1000)
    await pause(1_100)
    for (const requestId of [undefined, 'other']) {
      const refused = await merchant.redeem(payment, { ...(requestId === undefined ? {} : { requestId }), ...claim })
      expect([refused.status, refused.json().error.code]).toEqual([409, 'already_redeemed'])
    }
    const again = await merchant.redeem(payment, { requestId: 'mine', ...claim })
    expect([again.status, again.json().redeemedAt]).toEqual([200, redeemedAt])
    expect(await rowOf(payment)).toEqual(kept)
  })
})

describe('mpp, without a requestId', () => {
  test('C45: redeem, between the settlement and the claim: the delivery is still available, once', async () => {
    const payment = await createPaid('mpp')
    await dieAt('redeem: settled', () => merchant.redeem(payment, { requestId: 'one' }))
    expect(await rowOf(payment)).toMatchObject({ settled_at: expect.any(Date), paid_at: null, redeemed_at: null })
    expect((await merchant.redeem(payment, { requestId: 'another' })).status).toBe(200)
    expect((await merchant.redeem(payment, { requestId: 'one' })).status).toBe(409)
    expect(await activitiesOf(payment, 'payment.paid')).toBe(1)
  })

  test('C45: without a requestId, a delivery whose answer was lost is not granted again', async () => {
    const payment = await createPaid('mpp')
    await dieAt('redeem: claimed', () => merchant.redeem(payment))
    for (const more of [{}, { requestId: 'late' }]) {
      const refused = await merchant.redeem(payment, more)
      expect([refused.status, refused.json().error.code]).toEqual([409, 'already_redeemed'])
    }
    expect((await merchant.validate(payment)).status).toBe(200)
  })
})

describe('x402', () => {
  const redeem = ({ credential }: Paid, requestId: string): Promise<Answer> =>
    merchant.send('POST', '/redeem', { json: { credential, requestHash: REPORT, requestId } })
  const refusal = async (answer: Promise<Answer>) => [(await answer).status, (await answer).json().error.errorReason]

  test('C64: redeem, between the claim and its answer: the same requestId gets the delivery again, and any other is a replay', async () => {
    const payment = await createPaid('x402')
    await dieAt('redeem: claimed', () => redeem(payment, 'mine'))
    const kept = await rowOf(payment)
    expect(kept?.redeemed_at).toBeInstanceOf(Date)
    expect(await refusal(redeem(payment, 'other'))).toEqual([409, 'duplicate_settlement'])
    expect((await redeem(payment, 'mine')).status).toBe(200)
    expect(await rowOf(payment)).toEqual(kept)
  })

  test('C64: redeem, between the settlement and the claim: nothing is used up', async () => {
    const payment = await createPaid('x402')
    await dieAt('redeem: settled', () => redeem(payment, 'one'))
    expect(await rowOf(payment)).toMatchObject({ settled_at: expect.any(Date), paid_at: null, redeemed_at: null })
    expect((await redeem(payment, 'another')).status).toBe(200)
    expect(await refusal(redeem(payment, 'one'))).toEqual([409, 'duplicate_settlement'])
  })
})

describe('a held delivery', () => {
  const held = async (requestId: string): Promise<Paid> => {
    const payment = await createPaid('mpp')
    expect((await merchant.redeem(payment, { requestId, holdSeconds: 600 })).status).toBe(200)
    return payment
  }

  test('C45: redeem with a hold, between the claim and its answer: the same request keeps the delivery, and no other gets it until the hold ends', async () => {
    const payment = await createPaid('mpp')
    await dieAt('redeem: claimed', () => merchant.redeem(payment, { requestId: 'mine', holdSeconds: 600 }))
    const refused = await merchant.redeem(payment, { requestId: 'other' })
    expect([refused.status, refused.json().error.code]).toEqual([409, 'delivery_in_progress'])
    expect((await merchant.redeem(payment, { requestId: 'mine', holdSeconds: 600 })).status).toBe(200)
    await inStore((sql) => sql`UPDATE paid_payments SET held_until = now() WHERE id = ${payment.id}`)
    expect((await merchant.redeem(payment, { requestId: 'other' })).status).toBe(200)
  })

  test('C45: delivered, between the confirmation and its answer: the delivery is final, and a repeated request gets the same answer', async () => {
    const payment = await held('mine')
    const confirm = { json: { deliveries: [{ id: payment.id, requestId: 'mine' }] } }
    await dieAt('delivered: confirmed', () => merchant.send('POST', '/delivered', confirm))
    expect(await merchant.delivered(confirm.json.deliveries)).toEqual(['delivered'])
    expect((await merchant.redeem(payment, { requestId: 'other' })).json().error.code).toBe('already_redeemed')
  })

  test('C48: release, between the release and its answer: the delivery is free; a repeated request gets the same answer and frees no other claim', async () => {
    const payment = await held('mine')
    await dieAt('release: released', () => merchant.release(payment, 'mine'))
    expect((await merchant.release(payment, 'mine')).json()).toEqual({ id: payment.id, status: 'paid', redeemable: true })
    expect(await activitiesOf(payment, 'payment.released')).toBe(1)
    expect((await merchant.redeem(payment, { requestId: 'other', holdSeconds: 600 })).status).toBe(200)
    expect((await merchant.release(payment, 'mine')).json().error.code).toBe('not_claimed')
    expect((await merchant.redeem(payment, { requestId: 'third' })).json().error.code).toBe('delivery_in_progress')
  })
})

describe('the node dies', () => {
  const killNode = (): void => {
    const daemon = yard.daemon(nodeId)
    if (!daemon) throw new Error('it does not run')
    process.kill(daemon.pid, 'SIGKILL')
  }

  test('between invoice and payment: the invoice can be paid when it is back', async () => {
    await merchant.owner.until(nodeId, 'ready')
    const payment = await merchant.create(nodeId)
    killNode()
    const paid = await eventually(() => merchant.pay(payment), 'the node to take the payment')
    const answer = await merchant.validate(paid)
    expect([answer.status, answer.json().status]).toEqual([200, 'paid'])
  })

  test('C38: between payment and validation: 502 while the outcome is unknown, then paid; never a refusal', async () => {
    const payment = await createPaid('mpp')
    const statuses: number[] = []
    const validate = async (): Promise<boolean> => {
      statuses.push((await merchant.validate(payment)).status)
      return statuses.at(-1) === 200
    }
    await inStore(async (sql) => {
      const { giveBack } = await withhold(sql, { id: nodeId })
      killNode()
      await validate()
      await giveBack()
    })
    await eventually(validate, 'the validation')
    expect(statuses[0], 'it was really gone').toBe(502)
    expect(new Set(statuses)).toEqual(new Set([502, 200]))
    expect(await activitiesOf(payment, 'payment.paid')).toBe(1)
  })
})

test('C38: PostgreSQL dies during validations: 503 or the right answer, one transition each', async () => {
  await merchant.owner.until(nodeId, 'ready')
  const payments = await Promise.all(Array.from({ length: 30 }, () => merchant.createPaid(nodeId)))
  const answers = payments.map((): Answer[] => [])
  let isOver = false
  const client = async (payment: Paid, at: number): Promise<void> => {
    // The clients begin at different times, so that PostgreSQL dies during different steps of their validations.
    await pause(at * 15)
    while (!isOver) answers[at]?.push(await merchant.validate(payment))
  }
  const last = payments.length - 1
  const clients = payments.slice(0, last).map(client)
  await pause(250)
  const store = await yard.takeStoreAway()
  // This client begins while the store is down. On a busy machine, all other payments may have been validated before, and are
  // then served from the cache of verified credentials.
  clients.push(client(payments[last] as Paid, last))
  await eventually(() => answers[last]?.some(({ status }) => status === 503), 'a validation without the store')
  store.giveBack()
  await eventually(() => answers.every((of) => of.at(-1)?.status === 200), 'all to be answered again')
  isOver = true
  await Promise.all(clients)
  const statuses = answers.flat().map(({ status }) => status)
  expect([...new Set(statuses)].sort()).toEqual([200, 503])
  for (const [at, payment] of payments.entries()) {
    const words = new Set(answers[at]?.filter(({ status }) => status === 200).map(({ text }) => text))
    expect(words.size).toBe(1)
    expect([...words][0]).toContain(`"receipt":"${(await rowOf(payment))?.receipt}"`)
    expect(await activitiesOf(payment, 'payment.paid')).toBe(1)
    expect(await activitiesOf(payment, 'payment.settled')).toBe(1)
  }
})

/** Must be the last test of the file: it checks the payments of all tests above. */
test('C53: whatever was killed, each step of a payment is in the feed once, in order, and without a gap', async () => {
  await eventually(
    () => inStore(async (sql) => (await sql`SELECT 1 FROM event_outbox LIMIT 1`).length === 0),
    'all events to be in the feed',
  )
  type Row = { id: string; types: string[]; steps: string[] }
  const payments = await inStore(
    (sql) => sql<Row[]>`
      SELECT p.id, ARRAY(SELECT type FROM events WHERE data ->> 'paymentId' = p.id AND type <> 'payment.released' ORDER BY seq) AS types,
             array_remove(ARRAY['payment.settled', CASE WHEN paid_at IS NOT NULL THEN 'payment.paid' END,
                                CASE WHEN redeemed_at IS NOT NULL AND held_until IS NULL THEN 'payment.redeemed' END], NULL) AS steps
      FROM gateway_payments p LEFT JOIN paid_payments USING (account_id, id) WHERE settled_at IS NOT NULL`,
  )
  expect(payments.length).toBeGreaterThan(30)
  for (const { id, types, steps } of payments) expect(types, id).toEqual(steps)
  const [account] = await inStore(
    (sql) => sql<{ first: number; last: number; count: number }[]>`
      SELECT min(seq) AS first, max(seq) AS last, count(*) AS count FROM events WHERE account_id = ${merchant.owner.accountId}`,
  )
  expect(account).toMatchObject({ first: 1, last: account?.count })
})
