import { beforeAll, describe, expect, test } from 'vitest'
import { newId } from '../../src/platform/ids.ts'
import {
  charge,
  credentialOf,
  newMerchant,
  type Payment,
  type Protocol,
  pay,
  rowOf,
  storeOf,
  untilSettled,
  validate,
} from '../support/gateway.ts'
import type { Created, Owner } from '../support/nodes.ts'
import type { Answer } from '../support/server.ts'
import {
  ask,
  BAD,
  invoicesMade,
  merchant,
  PROTOCOLS,
  paymentsKept,
  rival,
  type Shown,
  server,
  shop,
  stall,
  times,
  wish,
} from '../support/shop.ts'

type Page = { payments: Shown[]; nextCursor: string | null }

describe('C39: reading', () => {
  test.each(PROTOCOLS)(
    'C39, C37: one payment, with its challenge as it was issued: new, settled and paid (%s)',
    async (protocol) => {
      const payment = await charge(merchant, shop, { protocol, amountSat: 77, description: 'Moments' })
      const path = `/gateway/payments/${payment.id}`
      const answer = await merchant.send('GET', path)
      expect([answer.status, answer.headers['cache-control']]).toEqual([200, 'no-store'])
      const first = answer.json()
      expect(first).toEqual({
        id: payment.id,
        protocol,
        status: 'payment_required',
        challenge: payment.challenge,
        nodeId: shop.node.id,
        amountSat: 77,
        description: 'Moments',
        resource: null,
        createdAt: expect.any(Number),
        expiresAt: expect.any(Number),
        settledAt: null,
        paidAt: null,
        redeemedAt: null,
      })
      const preimage = await pay(server, payment)
      await untilSettled(merchant, payment)
      const settled = await merchant.want<Shown>(200, 'GET', path)
      expect(settled).toEqual({ ...first, settledAt: expect.any(Number) })
      expect(Number.isInteger(settled.settledAt)).toBe(true)
      expect((await validate(merchant, payment.id, credentialOf(payment, preimage))).status).toBe(200)
      const paid = await merchant.want<Shown>(200, 'GET', path)
      expect(paid).toEqual({ ...settled, status: 'paid', paidAt: expect.any(Number) })
      expect(Number.isInteger(paid.paidAt)).toBe(true)
    },
  )

  test('C39: an unknown payment, one of another account and an invalid id are the same 404', async () => {
    const { id } = await charge(merchant, shop)
    const ids = [newId('pay'), shop.node.id, 'x', '%00', 'pay_', id.toUpperCase(), `${id}x`]
    const answers = [...(await Promise.all(ids.map((one) => merchant.send('GET', `/gateway/payments/${one}`))))]
    answers.push(await rival.send('GET', `/gateway/payments/${id}`))
    expect(answers[0]?.json()).toEqual({ error: { code: 'gateway_payment_not_found', message: expect.any(String) } })
    expect(answers.map(({ status, text }) => [status, text])).toEqual(answers.map(() => [404, answers[0]?.text]))
  })

  describe('the list', () => {
    const COUNT = 23
    let lister: Owner
    let nodes: Created[]
    /** Newest first. */
    let made: Payment[]
    const list = async (query = '', by = lister): Promise<Page> => by.want(200, 'GET', `/gateway/payments${query}`)
    const ids = ({ payments }: Page): string[] => payments.map(({ id }) => id)
    const wanted = (choose: (payment: Payment, index: number) => boolean): string[] => made.filter(choose).map(({ id }) => id)

    beforeAll(async () => {
      lister = await newMerchant(server)
      nodes = await Promise.all([lister.createReady(), lister.createReady()])
      made = []
      for (let index = 0; index < COUNT; index++) {
        const node = nodes[index % 2] as Created
        made.unshift(await charge(lister, node, { protocol: PROTOCOLS[index % 3 === 0 ? 1 : 0] as Protocol }))
      }
    })

    test('C39: an account without payments has an empty list', async () => {
      expect(await list('', await newMerchant(server))).toEqual({ payments: [], nextCursor: null })
    })

    test('C39: newest first, 20 by default, each as in GET but without its challenge', async () => {
      const page = await list()
      expect(Object.keys(page)).toEqual(['payments', 'nextCursor'])
      expect(ids(page)).toEqual(wanted((_, index) => index < 20))
      expect(page.nextCursor).toEqual(expect.any(String))
      for (const payment of [page.payments[0], page.payments[19]] as Shown[]) {
        const { challenge, ...rest } = await lister.want<Shown>(200, 'GET', `/gateway/payments/${payment.id}`)
        expect([payment, challenge]).toEqual([rest, expect.any(String)])
      }
    })

    test.each([1, 2, 7, 22, 23, 24, 100])(
      'C39: page by page, %i at a time, each payment is seen once, whatever is created meanwhile',
      async (limit) => {
        const seen: string[] = []
        let pages = 0
        let cursor: string | null = null
        const before = (await list('?limit=100')).payments.length
        do {
          const page: Page = await list(`?limit=${limit}${cursor === null ? '' : `&cursor=${cursor}`}`)
          expect(page.payments.length).toBeLessThanOrEqual(limit)
          seen.push(...ids(page))
          cursor = page.nextCursor
          if (pages++ === 0 && limit === 7) made.unshift(await charge(lister, nodes[0] as Created))
        } while (cursor !== null)
        expect(seen).toEqual(wanted(() => true).slice(-before))
        expect(pages).toBe(Math.ceil(before / limit))
      },
    )

    test('C39: filtered by node; another account’s or an unknown node gives an empty list', async () => {
      const [first, second] = nodes as [Created, Created]
      const sets = await Promise.all([first, second].map(({ node }) => list(`?limit=100&nodeId=${node.id}`)))
      for (const [index, { node }] of [first, second].entries())
        expect(new Set(sets[index]?.payments.map(({ nodeId }) => nodeId))).toEqual(new Set([node.id]))
      expect(sets.flatMap(ids).sort()).toEqual(wanted(() => true).sort())
      const page = await list(`?limit=3&nodeId=${second.node.id}`)
      const rest = await list(`?limit=100&nodeId=${second.node.id}&cursor=${page.nextCursor}`)
      expect([...ids(page), ...ids(rest)]).toEqual(ids(sets[1] as Page))
      for (const nodeId of [stall.node.id, newId('node'), 'x', '%00'])
        expect(await list(`?nodeId=${nodeId}`)).toEqual({ payments: [], nextCursor: null })
    })

    test('C39, C37: filtered by status; a payment is expired if its time has passed and it is not settled', async () => {
      const [paid, settled, late, lateSettled] = made as [Payment, Payment, Payment, Payment]
      const preimage = await pay(server, paid)
      await validate(lister, paid.id, credentialOf(paid, preimage))
      await pay(server, settled)
      await pay(server, lateSettled)
      for (const one of [settled, lateSettled]) await untilSettled(lister, one)
      const sql = storeOf(server)
      await sql`UPDATE gateway_payments SET expires_at = now() WHERE id IN (${late.id}, ${lateSettled.id})`
      expect(ids(await list('?status=paid&limit=100'))).toEqual([paid.id])
      expect(ids(await list('?status=expired&limit=100'))).toEqual([late.id])
      const open = await list('?status=payment_required&limit=100')
      expect(ids(open)).toEqual(wanted(({ id }) => ![paid.id, late.id, settled.id, lateSettled.id].includes(id)))
      expect(ids(await list('?status=settled&limit=100'))).toEqual(wanted(({ id }) => [settled.id, lateSettled.id].includes(id)))
      for (const status of ['paid', 'expired', 'payment_required'])
        for (const payment of (await list(`?status=${status}`)).payments) expect(payment.status).toBe(status)
      expect(await rowOf(server, late.id)).toMatchObject({ paid_at: null, settled_at: null })
      expect((await list(`?status=paid&nodeId=${stall.node.id}`)).payments).toEqual([])
    })

    test('C39: other accounts’ payments are never listed, not even with one of their cursors', async () => {
      const theirs = await charge(rival, stall)
      const own = new Set(wanted(() => true))
      const page = await list(`?limit=100&cursor=${theirs.id}`)
      expect(ids(page).every((id) => own.has(id))).toBe(true)
      expect(ids(await list('?limit=100', rival)).some((id) => own.has(id))).toBe(false)
    })

    const bad = [
      ...['0', '101', '-1', '1.5', '1e1', 'x', '', '01', '%201', '+1', '0x10', '999999999999999999999'].map((v) => `limit=${v}`),
      ...['x', '', 'pay_', '%00', 'node_d1vpw4x9a04n0ba9zxcr', 'pay_d1vpw4x9a04n0ba9zxcr%27'].map((v) => `cursor=${v}`),
      ...['PAID', '', 'held', 'x', 'paid,expired'].map((v) => `status=${v}`),
      'limit=1&limit=2',
      'status=paid&status=expired',
      'nodeId=a&nodeId=b',
      'cursor=a&cursor=b',
      'offset=1',
      'Limit=1',
    ]
    test.each(bad)('C39: ?%s is 400', async (query) => {
      expect(await lister.refusal('GET', `/gateway/payments?${query}`)).toEqual(BAD)
    })
  })
})

describe('C41: repeating a creation', () => {
  const repeat = (key: string, json: unknown = wish(), by = merchant): Promise<Answer> =>
    ask(json, by, { 'idempotency-key': key })

  test.each(PROTOCOLS)('C41: the same key and body get the first answer again, and one payment (%s)', async (protocol) => {
    const [made, kept] = [await invoicesMade(shop), await paymentsKept()]
    const key = `again ${protocol}`
    const first = await repeat(key, wish({ protocol }))
    expect([first.status, first.headers['cache-control']]).toEqual([201, 'no-store'])
    const second = await repeat(key, { protocol, description: 'A test', amountSat: 10, nodeId: shop.node.id })
    expect([second.status, second.headers['cache-control'], second.text]).toEqual([201, 'no-store', first.text])
    expect([await invoicesMade(shop), await paymentsKept()]).toEqual([made + 1, kept + 1])
    const payment = first.json()
    expect((await validate(merchant, payment.id, credentialOf(payment, await pay(server, payment)))).status).toBe(200)
    expect((await repeat(key, wish({ protocol }))).text).toBe(first.text)
  })

  test('C41: of ten concurrent requests, one creates; the others get its answer or are told to wait', async () => {
    const kept = await paymentsKept()
    const answers = await Promise.all(times(10, () => repeat('ten at once')))
    const good = answers.filter(({ status }) => status === 201)
    const busy = answers.filter(({ status }) => status === 409)
    expect([good.length + busy.length, new Set(good.map(({ text }) => text)).size]).toEqual([10, 1])
    for (const { json, headers } of busy)
      expect([json().error.code, Number(headers['retry-after']) >= 1]).toEqual(['operation_in_progress', true])
    expect(await paymentsKept()).toBe(kept + 1)
  })

  test('C41: a different body with the same key is 409, even one that only spells out the default', async () => {
    expect((await repeat('conflict')).status).toBe(201)
    for (const json of [
      wish({ amountSat: 11 }),
      wish({ description: 'a test' }),
      wish({ protocol: 'l402' }),
      wish({ protocol: 'mpp' }),
    ]) {
      const answer = await repeat('conflict', json)
      expect([answer.status, answer.json().error.code]).toEqual([409, 'idempotency_conflict'])
    }
  })

  test('C41: after an error the key can be reused, even with a different body', async () => {
    const { node } = await merchant.createReady({ name: 'errors' })
    await merchant.act(node.id, 'stop')
    expect((await repeat('after errors', wish({ amountSat: 0 }))).status).toBe(400)
    expect((await repeat('after errors', wish({ nodeId: stall.node.id }))).status).toBe(404)
    expect((await repeat('after errors', wish({ nodeId: node.id }))).status).toBe(502)
    expect((await repeat('after errors')).status).toBe(201)
    await merchant.delete(node.id)
  })

  test('C41: the key is scoped to the API key and to the route', async () => {
    const colleague = await newMerchant(server, merchant.accountId)
    const first = await repeat('scoped')
    const [other, node] = [
      await repeat('scoped', wish(), colleague),
      await merchant.create({ name: 'scoped' }, { 'idempotency-key': 'scoped' }),
    ]
    expect([other.status, other.json().id === first.json().id]).toEqual([201, false])
    expect(node.node.name).toBe('scoped')
    await merchant.delete(node.node.id)
  })

  test('C41: without a key each call creates a payment; an invalid key is 400; other routes ignore it', async () => {
    const answers = [await ask(wish()), await ask(wish())].map((answer) => answer.json())
    expect(answers[0].id).not.toBe(answers[1].id)
    for (const key of ['x'.repeat(256), 'tab\there', 'ü']) expect([key, (await repeat(key)).status]).toEqual([key, 400])
    expect((await repeat('x'.repeat(255))).status).toBe(201)
    const path = `/gateway/payments/${answers[0].id}/validate`
    const headers = { 'idempotency-key': 'scoped' }
    const code = (await merchant.send('POST', path, { headers, json: { credential: 'x' } })).json().error.code
    expect(code).toBe('invalid_payment_credential')
  })
})
