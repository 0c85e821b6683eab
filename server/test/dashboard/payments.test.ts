import { beforeAll, describe, expect, test } from 'vitest'
import { newId } from '../../src/platform/ids.ts'
import type { Database } from '../../src/store/db.ts'
import { signUp, type Visitor } from '../support/dashboard.ts'
import { charge, credentialOf, decoded, invoiceIn, redeem, storeOf, untilKnown } from '../support/gateway.ts'
import type { Created } from '../support/nodes.ts'
import { eventually, type Server, startServer } from '../support/server.ts'

let server: Server
let sql: Database
let ann: Visitor

beforeAll(async () => {
  server = await startServer({ env: { TRUST_PROXY: '1' } })
  sql = storeOf(server)
  ann = await signUp(server)
})

type Made = {
  at: string
  nodeId: string
  amountSat?: number
  protocol?: string
  description?: string
  createdBy?: string | null
  settled?: boolean
  /** Whether the delivery is claimed, and until when. */
  claim?: 'done' | 'held' | 'lapsed' | 'none'
  accountId?: string
}

/** A payment as it would have been created at this time. */
async function insert(made: Made): Promise<string> {
  const {
    at,
    nodeId,
    amountSat = 10,
    protocol = 'mpp',
    description = 'Tea',
    createdBy = null,
    settled,
    claim,
    accountId = ann.accountId,
  } = made
  const id = newId('pay', Date.parse(at))
  await sql`
    INSERT INTO gateway_payments (id, account_id, node_id, protocol, amount_sat, description, challenge, payment_hash, protocol_key_id, token_id,
                                  created_at, created_by, expires_at, settled_at, receipt)
    VALUES (${id}, ${accountId}, ${nodeId}, ${protocol}, ${amountSat}, ${description}, '', sha256(${id}::bytea), '',
            CASE WHEN ${protocol} = 'l402' THEN '\\x00'::bytea END, ${at}, ${createdBy}, ${at}::timestamptz + interval '5 minutes',
            CASE WHEN ${settled ?? false} THEN ${at}::timestamptz END, CASE WHEN ${settled ?? false} AND ${protocol} = 'mpp' THEN 'r' END)`
  if (claim !== undefined)
    await sql`
      INSERT INTO paid_payments (account_id, id, actor, redeemed_at, redeem_request_id, held_until)
      VALUES (${accountId}, ${id}, 'test', CASE WHEN ${claim !== 'none'} THEN now() END, CASE WHEN ${claim !== 'none'} THEN 'one' END,
              CASE WHEN ${claim === 'held'} THEN now() + interval '1 hour' WHEN ${claim === 'lapsed'} THEN now() - interval '1 hour' END)`
  return id
}

describe('payments of an account', () => {
  const [shop, podcast] = [newId('node'), newId('node')]
  const [key, other] = [newId('key'), newId('key')]
  const ids: Record<string, string> = {}
  beforeAll(async () => {
    await sql`
      INSERT INTO nodes (id, account_id, host, lightning_id, name, auto_liquidity, access_mode, desired_version, history, next_at)
      SELECT id, ${ann.accountId}, 'elsewhere', '', 'x', '2m', 'limited', '', '{}', 'infinity' FROM unnest(${[shop, podcast]}::text[]) new (id)`
    const made: [string, Made][] = [
      ['september', { at: '2026-09-30T23:59:59Z', nodeId: shop, settled: true, claim: 'done', amountSat: 1 }],
      ['first', { at: '2026-10-01T00:00:00Z', nodeId: shop, settled: true, claim: 'done', amountSat: 20, createdBy: key }],
      ['held', { at: '2026-10-05T00:00:00Z', nodeId: shop, settled: true, claim: 'held', amountSat: 300, protocol: 'l402' }],
      [
        'lapsed',
        { at: '2026-10-06T00:00:00Z', nodeId: shop, settled: true, claim: 'lapsed', amountSat: 4_000, createdBy: other },
      ],
      ['validated', { at: '2026-10-07T00:00:00Z', nodeId: shop, settled: true, claim: 'none', amountSat: 50_000 }],
      ['last', { at: '2026-10-31T23:59:59Z', nodeId: shop, settled: true, amountSat: 600_000, description: '100% Käse_' }],
      ['november', { at: '2026-11-01T00:00:00Z', nodeId: shop, settled: true, amountSat: 7_000_000 }],
      ['elsewhere', { at: '2026-10-10T00:00:00Z', nodeId: podcast, settled: true, amountSat: 80_000_000, protocol: 'x402' }],
      ['never', { at: '2026-10-11T00:00:00Z', nodeId: shop, amountSat: 900_000_000, description: 'Käse' }],
    ]
    for (const [name, one] of made) ids[name] = await insert(one)
  })
  const october = `from=${Date.parse('2026-10-01T00:00:00Z') / 1000}&to=${Date.parse('2026-11-01T00:00:00Z') / 1000}`
  const nameOf = (id: string): string => Object.keys(ids).find((name) => ids[name] === id) ?? id
  const listed = async (query: string): Promise<string[]> =>
    (await ann.want(200, 'GET', `/payments?${query}`)).payments.map(({ id }: { id: string }) => nameOf(id))
  const exported = async (query: string): Promise<string[]> =>
    (await ann.send('GET', `/payments.csv?${query}`)).text
      .split('\r\n')
      .slice(1, -1)
      .map((line) => nameOf(line.slice(0, 24)))

  test('C83: how much a node received in a month is exact to the second, and every payment is in one state', async () => {
    const none = { count: 0, sat: 0 }
    expect(await ann.want(200, 'GET', `/payment-totals?${october}&nodeId=${shop}`)).toEqual({
      unpaid: none,
      expired: { count: 1, sat: 900_000_000 },
      undelivered: { count: 3, sat: 654_000 },
      delivering: { count: 1, sat: 300 },
      delivered: { count: 1, sat: 20 },
    })
    expect(await ann.want(200, 'GET', `/payment-totals?${october}&nodeId=${shop}&state=undelivered`)).toEqual({
      unpaid: none,
      expired: none,
      undelivered: { count: 3, sat: 654_000 },
      delivering: none,
      delivered: none,
    })
    const nobody = await ann.want<Record<string, object>>(200, 'GET', '/payment-totals?nodeId=x')
    expect(Object.values(nobody)).toEqual([none, none, none, none, none])
  })

  test.each([
    ['state=undelivered', ['november', 'last', 'elsewhere', 'validated', 'lapsed']],
    [`state=undelivered&${october}&nodeId=${shop}`, ['last', 'validated', 'lapsed']],
    ['state=delivering', ['held']],
    ['state=delivered', ['first', 'september']],
    ['state=expired', ['never']],
    ['state=unpaid', []],
    ['status=settled', ['november', 'last', 'elsewhere']],
    ['protocol=x402', ['elsewhere']],
    [`keyId=${key}`, ['first']],
    [`keyId=${key}&keyId=${other}`, undefined],
    ['keyId=x', []],
    ['minAmountSat=4000&maxAmountSat=50000', ['validated', 'lapsed']],
    ['search=k%C3%A4se', ['last', 'never']],
    ['search=%C3%A4SE', ['last', 'never']],
    ['search=100%25', ['last']],
    ['search=%25', ['last']],
    ['search=_', ['last']],
    ['search=Milk', []],
  ])('C83: the list, the totals and the export select the same: %s', async (query, names) => {
    if (!names) {
      expect((await ann.refusal('GET', `/payments?${query}`)).slice(0, 2)).toEqual([400, 'bad_request'])
      return
    }
    expect(await listed(query)).toEqual(names)
    expect(await exported(query)).toEqual(names.toReversed())
    const totals = await ann.want<Record<string, { count: number }>>(200, 'GET', `/payment-totals?${query}`)
    expect(Object.values(totals).reduce((sum, { count }) => sum + count, 0)).toBe(names.length)
  })

  test('C54: an export of what the dashboard calls “Paid, got nothing” says so in each line', async () => {
    const lines = async (query: string) => (await ann.send('GET', `/payments.csv?${query}`)).text.split('\r\n').slice(1, -1)
    const outcomes = (all: string[]) => all.map((line) => [nameOf(line.slice(0, 24)), line.split(',').at(-1)])
    const unfulfilled = ['lapsed', 'elsewhere', 'last', 'november'].map((name) => [name, 'paid_got_nothing'])
    expect(outcomes(await lines('state=unfulfilled'))).toEqual(unfulfilled)
    expect(outcomes(await lines(''))).toEqual(
      expect.arrayContaining([...unfulfilled, ['held', 'delivering'], ['first', 'delivered'], ['never', 'expired']]),
    )
  })

  test('C83: a payment is found by its id, the beginning of its id and its payment hash, and only by its owner', async () => {
    const id = ids.held ?? ''
    const { paymentHash } = await ann.want(200, 'GET', `/payments/${id}`)
    const bob = await signUp(server)
    for (const search of [id, id.toUpperCase(), id.slice(0, 18), paymentHash, paymentHash.toUpperCase()]) {
      expect(await listed(`search=${search}`)).toEqual(['held'])
      expect((await bob.want(200, 'GET', `/payments?search=${search}`)).payments).toEqual([])
      expect((await bob.want(200, 'GET', `/payment-totals?search=${search}`)).delivering.count).toBe(0)
    }
    expect((await bob.send('GET', '/payments.csv')).text.trim().split('\r\n')).toHaveLength(1)
    expect((await bob.refusal('GET', `/payments/${id}/events`))[1]).toBe('gateway_payment_not_found')
  })

  test('C83: a period may end in any year up to 9999; a time that PostgreSQL cannot store is refused', async () => {
    const all = await listed('')
    const year = (number: number): number => Date.UTC(number, 0) / 1000
    for (const to of [year(2110), year(2150), year(9999)]) expect(await listed(`to=${to}`)).toEqual(all)
    expect(await listed(`from=${year(2150)}`)).toEqual([])
    for (const path of ['/payments', '/payment-totals', '/payments.csv'])
      expect((await ann.refusal('GET', `${path}?to=999999999999999`))[1]).toBe('bad_request')
  })

  test('dashboard: pages can be followed forward and back, and the page before the second is the first', async () => {
    const page = (query: string) => ann.want(200, 'GET', `/payments?limit=4${query}`)
    const names = ({ payments }: { payments: { id: string }[] }) => payments.map(({ id }) => nameOf(id))
    const first = await page('')
    const second = await page(`&cursor=${first.nextCursor}`)
    const third = await page(`&cursor=${second.nextCursor}`)
    expect([...names(first), ...names(second), ...names(third)]).toEqual(await listed(''))
    expect([first.previousCursor, third.nextCursor]).toEqual([null, null])
    expect(names(await page(`&after=${third.previousCursor}`))).toEqual(names(second))
    expect(await page(`&after=${second.previousCursor}`)).toEqual(first)
    expect(await ann.refusal('GET', '/payments?after=x')).toEqual([400, 'bad_request', expect.stringContaining('"after"')])
  })

  test('the longest description fits into the index of listed payments', async () => {
    const random = Array.from({ length: 500 }, () => String.fromCodePoint(0x1f300 + Math.floor(Math.random() * 600))).join('')
    await insert({ at: '2026-01-01T00:00:00Z', nodeId: shop, description: random, createdBy: key, accountId: newId('acct') })
  })
})

describe('one payment', () => {
  let made: Created
  beforeAll(async () => {
    made = (await ann.createReady()) as unknown as Created
  })

  test('C83: it names the key that created it, also after an idempotent repeat and after the key was revoked', async () => {
    const { id: keyId, key } = await ann.want(201, 'POST', '/keys', { json: { name: 'Shop server', scopes: ['gateway:write'] } })
    const json = { nodeId: made.node.id, amountSat: 7, description: 'Tea' }
    const headers = { authorization: `Bearer ${key}`, 'idempotency-key': 'once' }
    const [first, again] = [
      await server.send('POST', '/v1/gateway/payments', { json, headers }),
      await server.send('POST', '/v1/gateway/payments', { json, headers }),
    ]
    expect([first.status, again.text]).toEqual([201, first.text])
    const { id } = first.json()
    await ann.want(204, 'DELETE', `/keys/${keyId}`)
    expect((await ann.want(200, 'GET', `/payments/${id}`)).createdBy).toEqual({ id: keyId, kind: 'key', name: 'Shop server' })
    expect((await ann.want(200, 'GET', `/payments?keyId=${keyId}`)).payments).toHaveLength(1)
    // A payment that was created in the try-it panel names the person.
    const { id: tried } = await ann.want(201, 'POST', '/payments', { json })
    expect((await ann.want(200, 'GET', `/payments/${tried}`)).createdBy).toEqual({
      id: ann.userId,
      kind: 'person',
      name: ann.email,
    })
    await sql`UPDATE gateway_payments SET created_by = NULL WHERE id = ${tried}`
    expect((await ann.want(200, 'GET', `/payments/${tried}`)).createdBy).toBeNull()
  })

  test('C83: an invoice that is longer than any description finds its payment; a text that long finds nothing', async () => {
    const payment = await charge(await ann.owner(), made, { description: '茶'.repeat(120) })
    const invoice = invoiceIn(payment.challenge)
    expect(invoice.length).toBeGreaterThan(500)
    const found = async (search: string) => (await ann.want(200, 'GET', `/payments?search=${search}`)).payments
    expect(await found(invoice)).toMatchObject([{ id: payment.id }])
    expect(await found('x'.repeat(2_000))).toEqual([])
    expect((await ann.refusal('GET', `/payments?search=${'x'.repeat(2_001)}`))[1]).toBe('bad_request')
  })

  test('dashboard: of very many events, it has the newest', async () => {
    const id = await insert({ at: '2026-10-01T00:00:00Z', nodeId: made.node.id })
    await sql`
      INSERT INTO event_log (account_id, seq, id, type, at, payment_id)
      SELECT ${ann.accountId}, 1000000 + n, 'evt_' || n, 'payment.released', now(), ${id} FROM generate_series(1, 150) n`
    const { events } = await ann.want(200, 'GET', `/payments/${id}/events`)
    expect([events[0].id, events.at(-1).id]).toEqual(['evt_51', 'evt_150'])
  })

  test('dashboard: it has its hash, receipt and events with the attempts to deliver them, and never a preimage', async () => {
    const webhook = await ann.want(201, 'POST', '/webhooks', { json: { url: 'http://127.0.0.1:9/hook' } })
    const owner = await ann.owner()
    const payment = await charge(owner, made)
    const invoice = invoiceIn(payment.challenge)
    const { preimage } = await ann.want(200, 'POST', '/sandbox/pay', { json: { invoice } })
    const credential = credentialOf(payment, preimage)
    await untilKnown(() => redeem(owner, payment.id, credential, { requestId: 'one' }))
    await owner.want(200, 'POST', `/gateway/payments/${payment.id}/release`, {
      json: { requestId: 'one', reason: 'out of paper' },
    })
    const events = () => ann.want(200, 'GET', `/payments/${payment.id}/events`)
    const types = ['payment.settled', 'payment.paid', 'payment.redeemed', 'payment.released']
    await eventually(
      async () => expect((await events()).events.map(({ type }: { type: string }) => type)).toEqual(types),
      'events',
    )
    const shown = await eventually(async () => {
      const { events: all } = await events()
      expect(all[0].deliveries[0].attempts).toHaveLength(1)
      return all
    }, 'an attempt')
    expect(shown[0].deliveries).toMatchObject([{ webhookId: webhook.id, url: 'http://127.0.0.1:9/hook', status: 'pending' }])
    expect(shown[3].reason).toBe('out of paper')
    const details = await ann.want(200, 'GET', `/payments/${payment.id}`)
    expect(details).toMatchObject({ paymentHash: decoded(invoice).paymentHash, receipt: expect.any(String), releases: 1 })
    expect((await ann.want(200, 'GET', `/payments?search=lightning:${invoice.toUpperCase()}`)).payments).toHaveLength(1)
    for (const secret of [preimage, credential, Buffer.from(preimage, 'hex').toString('base64')]) {
      expect(JSON.stringify(details)).not.toContain(secret)
      expect(JSON.stringify(shown)).not.toContain(secret)
    }
    expect(Buffer.from(details.receipt, 'base64url').toString()).not.toContain(preimage)
  })
})
