import { beforeAll, describe, expect, test } from 'vitest'
import { newId } from '../../src/platform/ids.ts'
import type { Database } from '../../src/store/db.ts'
import { confirmDeliveries } from '../../src/store/payments/deliveries.ts'
import { lockingTransaction } from '../support/database.ts'
import { type Merchant, newMerchant, type Paid } from '../support/payments.ts'
import { type Answer, eventually, type Server, startServer } from '../support/server.ts'

/** C45, C48 and C39: claims that are held, confirmed and released, and terms that a payment must match. */

let server: Server
let sql: Database
let merchant: Merchant
let stranger: Merchant
let nodeId: string

beforeAll(async () => {
  server = await startServer({ env: { LOG_LEVEL: 'warn', NODE_PRICE_SAT_PER_DAY: '0' } })
  merchant = await newMerchant(server)
  stranger = await newMerchant(server)
  nodeId = (await merchant.owner.createReady()).node.id
  sql = server.sql()
})

const isSettled = async ({ id }: { id: string }): Promise<boolean> => (await merchant.get(id)).settledAt !== null

async function bought(wish: Parameters<Merchant['create']>[1] = {}): Promise<Paid> {
  const paid = await merchant.createPaid(nodeId, wish)
  await eventually(() => isSettled(paid), `${paid.id} to be settled`)
  return paid
}

const HELD = { holdSeconds: 600 }
const hold = (paid: Paid, requestId: string, more: object = {}): Promise<Answer> =>
  merchant.redeem(paid, { requestId, ...HELD, ...more })

const refusal = async (answer: Promise<Answer>): Promise<[status: number, code: string]> => {
  const { status, json } = await answer
  return [status, json().error?.code]
}
const OK = [200, undefined]
const [IN_PROGRESS, REDEEMED, NOT_CLAIMED] = [
  [409, 'delivery_in_progress'],
  [409, 'already_redeemed'],
  [409, 'not_claimed'],
]

/** As if the shop had died and its hold had lapsed. */
const lapse = ({ id }: Paid): Promise<unknown> =>
  sql`UPDATE paid_payments SET held_until = now() - interval '1 second' WHERE id = ${id} AND held_until IS NOT NULL`

const rowOf = async ({ id }: { id: string }): Promise<object> => ({
  ...(await sql`SELECT * FROM gateway_payments LEFT JOIN paid_payments USING (account_id, id) WHERE id = ${id}`)[0],
})

/** MPP, and L402 with a single delivery. */
const ONCE = [
  { protocol: 'mpp' as const, more: {} },
  { protocol: 'l402' as const, more: { singleUse: true } },
]

describe.each(ONCE)('a held claim, $protocol', ({ protocol, more }) => {
  test('C45: belongs to its request until the hold ends; a repeat gets the same answer and no more time', async () => {
    const paid = await bought({ protocol })
    const first = await hold(paid, 'a', more)
    expect(first.status).toBe(200)
    const row = await rowOf(paid)
    expect((await hold(paid, 'a', more)).text).toBe(first.text)
    expect((await merchant.redeem(paid, { requestId: 'a', ...more })).text).toBe(first.text)
    expect(await rowOf(paid)).toEqual(row)
    for (const other of [{}, { requestId: 'b' }, { requestId: 'b', ...HELD }]) {
      const answer = await merchant.redeem(paid, { ...other, ...more })
      expect([answer.status, answer.json().error.code]).toEqual(IN_PROGRESS)
      const seconds = Number(answer.headers['retry-after'])
      expect(Number.isInteger(seconds) && seconds >= 1 && seconds <= 600).toBe(true)
    }
  })

  test('C45: lapses and can be claimed by another; the previous holder can neither confirm nor release it', async () => {
    const paid = await bought({ protocol })
    expect(await refusal(hold(paid, 'a', more))).toEqual(OK)
    await lapse(paid)
    expect((await merchant.get(paid.id)).redeemedAt).toBeNull()
    expect(await refusal(hold(paid, 'b', more))).toEqual(OK)
    expect(await merchant.delivered([{ id: paid.id, requestId: 'a' }])).toEqual(['not_claimed'])
    expect(await refusal(merchant.release(paid, 'a'))).toEqual(NOT_CLAIMED)
    expect(await refusal(hold(paid, 'a', more))).toEqual(IN_PROGRESS)
    expect(await merchant.delivered([{ id: paid.id, requestId: 'b' }])).toEqual(['delivered'])
    expect(await refusal(hold(paid, 'c', more))).toEqual(REDEEMED)
  })

  test('C45: once lapsed, can be claimed again by its own request, with a full hold', async () => {
    const paid = await bought({ protocol })
    const first = await hold(paid, 'a', more)
    await lapse(paid)
    expect((await hold(paid, 'a', more)).text).toBe(first.text)
    expect(await refusal(hold(paid, 'b', more))).toEqual(IN_PROGRESS)
  })

  test('C45: once lapsed, can still be confirmed while no one else has claimed it', async () => {
    const paid = await bought({ protocol })
    await hold(paid, 'a', more)
    await lapse(paid)
    expect(await merchant.delivered([{ id: paid.id, requestId: 'a' }])).toEqual(['delivered'])
    expect(await refusal(hold(paid, 'b', more))).toEqual(REDEEMED)
    expect((await merchant.get(paid.id)).redeemedAt).toEqual(expect.any(Number))
  })

  test('C48: once released, the credential works for another request, and never again for this one', async () => {
    const paid = await bought({ protocol })
    await hold(paid, 'a', more)
    expect((await merchant.release(paid, 'a', { reason: 'upstream is down' })).json()).toEqual({
      id: paid.id,
      status: 'paid',
      redeemable: true,
    })
    expect(await merchant.get(paid.id)).toMatchObject({ status: 'paid', redeemedAt: null })
    for (const body of [{}, HELD])
      expect(await refusal(merchant.redeem(paid, { requestId: 'a', ...body, ...more }))).toEqual(NOT_CLAIMED)
    expect(await merchant.delivered([{ id: paid.id, requestId: 'a' }])).toEqual(['not_claimed'])
    // As if the response had been lost: a repeated release gets the same one, unless another request has claimed the delivery since.
    expect(await refusal(merchant.release(paid, 'a'))).toEqual(OK)
    expect(await refusal(hold(paid, 'b', more))).toEqual(OK)
    expect(await refusal(merchant.release(paid, 'a'))).toEqual(NOT_CLAIMED)
    expect(await refusal(hold(paid, 'c', more))).toEqual(IN_PROGRESS)
    expect(await refusal(hold(paid, 'a', more))).toEqual(NOT_CLAIMED)
    const lines = await sql`SELECT detail FROM activity WHERE target = ${paid.id} AND action = 'payment.released'`
    expect([...lines]).toEqual([{ detail: { reason: 'upstream is down' } }])
  })

  test('C48: a late duplicate of a release frees nothing, even after the next claim lapsed or was released', async () => {
    const paid = await bought({ protocol })
    await hold(paid, 'a', more)
    await merchant.release(paid, 'a')
    await hold(paid, 'b', more)
    await lapse(paid)
    expect(await refusal(merchant.release(paid, 'a'))).toEqual(NOT_CLAIMED)
    expect(await merchant.delivered([{ id: paid.id, requestId: 'b' }])).toEqual(['delivered'])
    expect(await refusal(merchant.release(paid, 'b'))).toEqual(OK)
    expect(await refusal(merchant.release(paid, 'a'))).toEqual(NOT_CLAIMED)
  })

  test('C48: ten releases, and no more: the eleventh is refused and the claim stays', async () => {
    const paid = await bought({ protocol })
    for (let turn = 1; turn <= 10; turn++) {
      expect(await refusal(hold(paid, `try ${turn}`, more))).toEqual(OK)
      expect(await refusal(merchant.release(paid, `try ${turn}`))).toEqual(OK)
    }
    expect(await refusal(hold(paid, 'try 11', more))).toEqual(OK)
    for (const _ of [1, 2]) expect(await refusal(merchant.release(paid, 'try 11'))).toEqual([409, 'limit_reached'])
    expect(await refusal(hold(paid, 'try 12', more))).toEqual(IN_PROGRESS)
    expect(await refusal(merchant.release(paid, 'try 12'))).toEqual(NOT_CLAIMED)
    expect(await merchant.delivered([{ id: paid.id, requestId: 'try 11' }])).toEqual(['delivered'])
  })
})

describe('release', () => {
  test('C48: of twenty concurrent releases, one frees the delivery, and all get the same answer', async () => {
    const paid = await bought()
    await hold(paid, 'a')
    const answers = await Promise.all(Array.from({ length: 20 }, () => merchant.release(paid, 'a')))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    const lines = await sql`SELECT 1 FROM activity WHERE target = ${paid.id} AND action = 'payment.released'`
    expect(lines).toHaveLength(1)
  })

  test('C48: a final or confirmed delivery can also be released: a handler may fail late', async () => {
    for (const claim of [{}, HELD]) {
      const paid = await bought()
      expect(await refusal(merchant.redeem(paid, { requestId: 'a', ...claim }))).toEqual(OK)
      expect(await merchant.delivered([{ id: paid.id, requestId: 'a' }])).toEqual(['delivered'])
      expect(await refusal(merchant.release(paid, 'a'))).toEqual(OK)
      expect(await refusal(merchant.redeem(paid, { requestId: 'b' }))).toEqual(OK)
    }
  })

  test('C48: a delivery that is unpaid, not claimed, or claimed without a requestId or by another request is 409; another account’s and unknown ids are 404', async () => {
    const unpaid = await merchant.create(nodeId)
    expect(await refusal(merchant.release(unpaid, 'a'))).toEqual(NOT_CLAIMED)
    const paid = await bought()
    expect(await refusal(merchant.release(paid, 'a'))).toEqual(NOT_CLAIMED)
    await merchant.redeem(paid)
    expect(await refusal(merchant.release(paid, 'a'))).toEqual(NOT_CLAIMED)
    const held = await bought()
    await hold(held, 'a')
    const row = await rowOf(held)
    for (const answer of [
      stranger.release(held, 'a'),
      merchant.release({ id: newId('pay') }, 'a'),
      merchant.release({ id: 'x' }, 'a'),
    ])
      expect(await refusal(answer)).toEqual([404, 'gateway_payment_not_found'])
    expect(await refusal(merchant.release(held, 'A'))).toEqual(NOT_CLAIMED)
    expect(await rowOf(held)).toEqual(row)
  })

  test('C5, C48: a bad body is 400 and frees nothing', async () => {
    const held = await bought()
    await hold(held, 'a')
    const row = await rowOf(held)
    const bodies = [
      {},
      { requestId: '' },
      { requestId: 'x'.repeat(129) },
      { requestId: 1 },
      { requestId: 'a', reason: '' },
      { requestId: 'a', reason: 'x'.repeat(201) },
      { requestId: 'a', reason: 'a\nb' },
      { requestId: 'a', reason: 1 },
      { requestId: 'a', more: 1 },
    ]
    for (const json of bodies)
      expect([json, await refusal(merchant.send('POST', `/${held.id}/release`, { json }))]).toEqual([json, [400, 'bad_request']])
    expect(await rowOf(held)).toEqual(row)
  })
})

describe('delivered', () => {
  test('C45: a batch is answered in order; unknown, foreign, unclaimed and repeated entries do not affect the rest', async () => {
    const [one, two, free] = await Promise.all([bought(), bought(), bought()])
    const strangersNode = (await stranger.owner.createReady()).node.id
    const foreign = await stranger.createPaid(strangersNode)
    expect((await stranger.redeem(foreign, { requestId: 'a', ...HELD })).status).toBe(200)
    await hold(one, 'a')
    await hold(two, 'b')
    const deliveries = [
      { id: foreign.id, requestId: 'a' },
      { id: one.id, requestId: 'a' },
      { id: free.id, requestId: 'a' },
      { id: two.id, requestId: 'a' },
      { id: 'pay_\u0000', requestId: 'a' },
      { id: newId('pay'), requestId: 'a' },
      { id: two.id, requestId: 'b' },
      { id: one.id, requestId: 'a' },
    ]
    const results = [
      'not_claimed',
      'delivered',
      'not_claimed',
      'not_claimed',
      'not_claimed',
      'not_claimed',
      'delivered',
      'delivered',
    ]
    for (const _ of ['first', 'again']) {
      const answer = await merchant.send('POST', '/delivered', { json: { deliveries } })
      expect(answer.json()).toEqual({ deliveries: deliveries.map((one, at) => ({ ...one, result: results[at] })) })
    }
    const [row] = await sql`SELECT held_until FROM paid_payments WHERE id = ${foreign.id}`
    expect(row?.held_until).toBeInstanceOf(Date)
    expect(await refusal(hold(two, 'c'))).toEqual(REDEEMED)
  })

  test('C45: a batch has 1 to 100 entries, each with both ids', async () => {
    const one = { id: newId('pay'), requestId: 'a' }
    const sends = (json: object): Promise<Answer> => merchant.send('POST', '/delivered', { json })
    expect((await sends({ deliveries: Array(100).fill(one) })).status).toBe(200)
    const bad = [
      {},
      { deliveries: [] },
      { deliveries: Array(101).fill(one) },
      { deliveries: [{ id: one.id }] },
      { deliveries: [{ ...one, requestId: '' }] },
      { deliveries: [{ ...one, more: 1 }] },
      { deliveries: one },
      { deliveries: [one], more: 1 },
    ]
    for (const json of bad) expect([json, await refusal(sends(json))]).toEqual([json, [400, 'bad_request']])
  })

  test('C45: concurrent batches with the same payments in any order all complete', async () => {
    const payments = await Promise.all(Array.from({ length: 8 }, () => bought()))
    await Promise.all(payments.map((paid) => hold(paid, 'a')))
    const names = payments.map(({ id }) => ({ id, requestId: 'a' }))
    const batches = Array.from({ length: 40 }, (_, at) => (at % 2 === 0 ? names : [...names].reverse()))
    for (const results of await Promise.all(batches.map((batch) => merchant.delivered(batch))))
      expect(new Set(results)).toEqual(new Set(['delivered']))
  })

  /** Does the work while another request has made the change but not committed it. */
  async function during(change: (transaction: Database) => Promise<unknown>, work: () => Promise<void>): Promise<void> {
    await lockingTransaction(sql, async (transaction) => {
      await change(transaction as unknown as Database)
      await work()
    })
  }
  const isWaiting = async (): Promise<boolean> =>
    (
      await sql`SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%paid_payments%'`
    ).length > 0

  test('C45: a claim that lapsed and is being taken over is not confirmed, nor is the one that takes it over', async () => {
    const paid = await bought()
    await hold(paid, 'a')
    await lapse(paid)
    let confirmed: Promise<string[]> | undefined
    await during(
      (transaction) =>
        transaction`UPDATE paid_payments SET redeem_request_id = 'b', held_until = now() + interval '10 minutes' WHERE id = ${paid.id}`,
      async () => {
        confirmed = merchant.delivered([{ id: paid.id, requestId: 'a' }])
        await eventually(isWaiting, 'the confirmation to wait for the claim')
      },
    )
    expect(await confirmed).toEqual(['not_claimed'])
    const [row] = await sql`SELECT redeem_request_id, held_until FROM paid_payments WHERE id = ${paid.id}`
    expect({ ...row }).toEqual({ redeem_request_id: 'b', held_until: expect.any(Date) })
  })

  test('C45: payments are locked in the order of their ids, however a batch or the table orders them', async () => {
    const [low, high] = (await Promise.all([bought(), bought()])).sort((one, other) => (one.id < other.id ? -1 : 1)) as [
      Paid,
      Paid,
    ]
    await hold(high, 'a')
    await hold(low, 'a')
    const batch = [high, low].map(({ id }) => ({ id, requestId: 'a' }))
    // Without indexes, because in a table this small they would happen to return the right order.
    const confirm = () =>
      sql.begin(async (transaction) => {
        await transaction`SET LOCAL enable_indexscan = off`
        await transaction`SET LOCAL enable_bitmapscan = off`
        return confirmDeliveries(transaction as unknown as Database, merchant.key.accountId, batch)
      })
    let confirmed: Promise<unknown> | undefined
    await during(
      (transaction) => transaction`SELECT 1 FROM paid_payments WHERE id = ${low.id} FOR UPDATE`,
      async () => {
        confirmed = confirm()
        await eventually(isWaiting, 'the confirmation to wait')
        expect(
          await sql`SELECT 1 FROM paid_payments WHERE id = ${high.id} FOR UPDATE SKIP LOCKED`,
          'not locked yet',
        ).toHaveLength(1)
      },
    )
    expect(await confirmed).toHaveLength(2)
  })
})

describe('C45: expect', () => {
  const terms = { amountSat: 25, description: 'Weather in Oslo', resource: 'GET /weather/:city' }

  test.each(ONCE)(
    'the terms that differ are named, nothing is claimed, and the payment shows as settled ($protocol)',
    async ({ protocol, more }) => {
      const paid = await bought({ ...terms, protocol })
      const row = await rowOf(paid)
      const cases: [expect: object, mismatch: string[]][] = [
        [{ nodeId: newId('node') }, ['nodeId']],
        [{ resource: 'GET /weather' }, ['resource']],
        [{ resource: terms.description }, ['resource']],
        [{ description: terms.resource }, ['description']],
        [{ amountSat: 24 }, ['amountSat']],
        [{ amountSat: 26 }, ['amountSat']],
        [{ minAmountSat: 26 }, ['minAmountSat']],
        [
          { nodeId: 'no id', resource: 'x', description: 'y', amountSat: 1, minAmountSat: 1000 },
          ['nodeId', 'resource', 'description', 'amountSat', 'minAmountSat'],
        ],
        [{ nodeId, resource: terms.resource, amountSat: 25, minAmountSat: 1000 }, ['minAmountSat']],
      ]
      for (const [expected, mismatch] of cases)
        for (const action of ['redeem', 'validate']) {
          const json = { credential: paid.credential, expect: expected, ...(action === 'redeem' ? more : {}) }
          const answer = await merchant.send('POST', `/${paid.id}/${action}`, { json })
          expect([action, expected, answer.status, answer.json().error]).toEqual([
            action,
            expected,
            409,
            { code: 'terms_mismatch', message: expect.any(String), mismatch, settled: true, redeemed: false },
          ])
        }
      expect(await rowOf(paid)).toEqual(row)
      expect(await merchant.get(paid.id)).toMatchObject({ status: 'payment_required', paidAt: null, redeemedAt: null })
      const listed = (await merchant.send('GET', '?status=settled&limit=100')).json().payments
      expect(listed.map(({ id }: Paid) => id)).toContain(paid.id)

      const right = { nodeId, ...terms, minAmountSat: 25 }
      const answer = await merchant.redeem(paid, { expect: right, requestId: 'a', ...more })
      expect([answer.status, answer.json()]).toMatchObject([200, { ...terms, nodeId }])
      for (const one of [right, { amountSat: 25 }, { minAmountSat: 1 }])
        expect(
          (await merchant.send('POST', `/${paid.id}/validate`, { json: { credential: paid.credential, expect: one } })).status,
        ).toBe(200)
      const used = await merchant.redeem(paid, { expect: { amountSat: 1 }, requestId: 'b', ...more })
      expect(used.json().error).toMatchObject({ code: 'terms_mismatch', redeemed: true })
    },
  )

  test.each(ONCE)('a payment without a resource is compared by its description ($protocol)', async ({ protocol, more }) => {
    const paid = await bought({ description: 'GET /joke', protocol })
    expect((await merchant.get(paid.id)).resource).toBeNull()
    const wrong = await merchant.redeem(paid, { expect: { resource: 'GET /dear' }, ...more })
    expect(wrong.json().error).toMatchObject({ code: 'terms_mismatch', mismatch: ['resource'] })
    const right = await merchant.redeem(paid, { expect: { resource: 'GET /joke', description: 'GET /joke' }, ...more })
    expect([right.status, right.json().resource]).toEqual([200, null])
  })

  test('is checked after the settlement, and an invalid credential keeps its own error', async () => {
    const open = await merchant.create(nodeId, terms)
    const expected = { expect: { amountSat: 1 } }
    expect(await refusal(merchant.redeem({ ...open, credential: 'Payment x' }, expected))).toEqual([
      400,
      'invalid_payment_credential',
    ])
    const paid = await bought(terms)
    expect(await refusal(stranger.redeem(paid, expected))).toEqual([404, 'gateway_payment_not_found'])
    expect(await refusal(merchant.redeem({ ...open, credential: paid.credential }, expected))).toEqual([
      400,
      'invalid_payment_credential',
    ])
    // The request that has the claim is repeated with different terms. It gets an error, and keeps the claim.
    expect(await refusal(merchant.redeem(paid, { requestId: 'a' }))).toEqual(OK)
    expect(await refusal(merchant.redeem(paid, { requestId: 'a', ...expected }))).toEqual([409, 'terms_mismatch'])
  })

  test('C5: empty, unknown and wrongly typed terms are 400, and nothing is claimed', async () => {
    const paid = await bought(terms)
    const row = await rowOf(paid)
    const bad = [
      ...[{}, { price: 1 }, null, [], 'x', { amountSat: '25' }, { amountSat: 1.5 }, { minAmountSat: 0 }, { nodeId: '' }].map(
        (one) => ({
          expect: one,
        }),
      ),
      ...[{ resource: 'a\u0000' }, { resource: ' ' }, { description: 'x'.repeat(501) }].map((one) => ({ expect: one })),
      ...[0, 601, 1.5, '120', null].map((holdSeconds) => ({ holdSeconds, requestId: 'a' })),
      // Without a requestId, no one could confirm or release the delivery.
      HELD,
    ]
    for (const more of bad) expect([more, await refusal(merchant.redeem(paid, more))]).toEqual([more, [400, 'bad_request']])
    expect(await rowOf(paid)).toEqual(row)
  })

  test('C45: resource has 1 to 500 code points and no control characters, and is returned with the payment', async () => {
    for (const resource of ['', ' ', 'a\nb', '\u0085', 'x'.repeat(501), 1, null])
      expect([resource, await refusal(merchant.ask(nodeId, { resource } as object))]).toEqual([resource, [400, 'bad_request']])
    const resource = `GET /ünïcode/${'🦊'.repeat(487)}`
    const { id } = await merchant.create(nodeId, { resource })
    expect((await merchant.get(id)).resource).toBe(resource)
    const [listed] = (await merchant.send('GET', '?limit=1')).json().payments
    expect(listed).toMatchObject({ id, resource })
  })
})

describe('reusable L402', () => {
  test('C45: every redemption is 200 after the first, with or without a hold', async () => {
    const paid = await bought({ protocol: 'l402' })
    const first = await hold(paid, 'a')
    expect(first.status).toBe(200)
    for (const more of [{}, { requestId: 'a' }, { requestId: 'b', ...HELD }])
      expect((await merchant.redeem(paid, more)).text).toBe(first.text)
    const [row] = await sql`SELECT held_until FROM paid_payments WHERE id = ${paid.id}`
    expect(row?.held_until).toBeNull()
    expect(await refusal(merchant.redeem(paid, { singleUse: true }))).toEqual(REDEEMED)
    expect((await merchant.redeem(paid, { expect: { minAmountSat: 11 } })).json().error).toMatchObject({ redeemed: true })
  })

  test('C48: after a release, every redemption is still 200, but the request that released it has no claim any more', async () => {
    const paid = await bought({ protocol: 'l402' })
    await merchant.redeem(paid, { requestId: 'a' })
    expect(await refusal(merchant.release(paid, 'a'))).toEqual(OK)
    for (const _ of [1, 2]) expect(await refusal(merchant.redeem(paid, { requestId: 'a' }))).toEqual(OK)
    expect(await refusal(merchant.release(paid, 'a'))).toEqual(NOT_CLAIMED)
    expect((await merchant.get(paid.id)).redeemedAt).toEqual(expect.any(Number))
  })

  test('C45: while a single use is being delivered, or after it lapsed, a reusable redemption still succeeds', async () => {
    const paid = await bought({ protocol: 'l402' })
    await hold(paid, 'a', { singleUse: true })
    expect(await refusal(merchant.redeem(paid, { requestId: 'b' }))).toEqual(OK)
    await lapse(paid)
    expect(await refusal(merchant.redeem(paid, { requestId: 'b' }))).toEqual(OK)
    expect(await refusal(hold(paid, 'c', { singleUse: true }))).toEqual(REDEEMED)
  })
})

test('C39: the list finds payments that were paid but not delivered', async () => {
  const seller = await newMerchant(server)
  const its = (await seller.owner.createReady()).node.id
  const isSettledThere = async ({ id }: Paid): Promise<boolean> => (await seller.get(id)).settledAt !== null
  const [settled, validated, held, lapsed, final, confirmed, released] = (await Promise.all(
    Array.from({ length: 7 }, () => seller.createPaid(its)),
  )) as [Paid, Paid, Paid, Paid, Paid, Paid, Paid]
  for (const paid of [settled, validated, held, lapsed, final, confirmed, released])
    await eventually(() => isSettledThere(paid), 'the settlement')
  const open = await seller.create(its)
  const expired = await seller.create(its)
  await sql`UPDATE gateway_payments SET expires_at = now() - interval '1 second' WHERE id = ${expired.id}`
  await seller.validate(validated)
  for (const paid of [held, lapsed, confirmed, released]) await seller.redeem(paid, { requestId: 'a', ...HELD })
  await seller.redeem(final)
  await lapse(lapsed)
  await seller.delivered([{ id: confirmed.id, requestId: 'a' }])
  await seller.release(released, 'a')

  const list = async (query: string): Promise<string[]> => {
    const answer = await seller.send('GET', `?limit=100&${query}`)
    expect(answer.status).toBe(200)
    return answer
      .json()
      .payments.map(({ id }: Paid) => id)
      .sort()
  }
  const ids = (...payments: { id: string }[]): string[] => payments.map(({ id }) => id).sort()
  expect(await list('status=settled')).toEqual(ids(settled))
  expect(await list('status=payment_required')).toEqual(ids(open))
  expect(await list('status=expired')).toEqual(ids(expired))
  expect(await list('status=paid')).toEqual(ids(validated, held, lapsed, final, confirmed, released))
  expect(await list('delivery=held')).toEqual(ids(held))
  expect(await list('delivery=done')).toEqual(ids(final, confirmed))
  expect(await list('delivery=none')).toEqual(ids(settled, validated, lapsed, released, open, expired))
  expect(await list('status=paid&delivery=none')).toEqual(ids(validated, lapsed, released))
  expect(await list('status=settled&delivery=done')).toEqual([])
  const redeemedAt = async (paid: Paid): Promise<number | null> => (await seller.get(paid.id)).redeemedAt
  for (const paid of [held, final, confirmed]) expect(await redeemedAt(paid)).toEqual(expect.any(Number))
  for (const paid of [settled, validated, lapsed, released]) expect(await redeemedAt(paid)).toBeNull()
  for (const query of ['status=x', 'delivery=lapsed', 'delivery='])
    expect((await seller.send('GET', `?${query}`)).status).toBe(400)
})
