import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { charge, credentialOf, newMerchant, pay, redeem, storeOf, untilKnown, untilSettled } from '../support/gateway.ts'
import { type Created, Owner } from '../support/nodes.ts'
import { eventually, PROCESS, type Server, startServer } from '../support/server.ts'
import { openEventStream } from './event-stream.ts'

type Event = { id: string; type: string; createdAt: number; accountId: string; data: Record<string, unknown> }
type Page = { events: Event[]; nextCursor: string }

let server: Server
let merchant: Owner
let reader: Owner
let created: Created
const closing: (() => void)[] = []

beforeAll(async () => {
  server = await startServer({ command: PROCESS, env: { TRUST_PROXY: '1' } })
  merchant = await newMerchant(server)
  reader = new Owner(server, await server.newKey(['events:read'], merchant.accountId))
  created = await merchant.createReady({ name: 'Shop' })
})
afterAll(() => {
  for (const close of closing) close()
})

/** All events after the cursor. Waits until each of these types is among them, in any order. */
function eventsAfter(cursor: string, ...types: string[]): Promise<Event[]> {
  return eventually(async () => {
    const { events } = await reader.want<Page>(200, 'GET', `/events?limit=200&cursor=${cursor}`)
    for (const type of types) if (!events.some((event) => event.type === type)) throw new Error(`${type} is missing`)
    return events
  }, `the events ${types}`)
}

/** A cursor after everything that has happened so far: writes one more event, and waits until it is in the feed. */
async function endOfFeed(): Promise<string> {
  const { id } = await server.newKey([], merchant.accountId)
  return eventually(async () => {
    const { events, nextCursor } = await reader.want<Page>(200, 'GET', '/events?limit=200')
    if (!events.some(({ data }) => data.keyId === id)) throw new Error('the last event is not in the feed')
    return nextCursor
  }, 'the feed to catch up')
}

async function purchase(): Promise<{ id: string }> {
  const payment = await charge(merchant, created, { description: '=1+1, "quoted"' })
  const preimage = await pay(server, payment)
  const answer = await untilKnown(() => redeem(merchant, payment.id, credentialOf(payment, preimage), { requestId: 'first' }))
  expect(answer.status).toBe(200)
  return payment
}

describe('C53: GET /v1/events', () => {
  test('C53: a purchase is three events, in order, with what was sold', async () => {
    const cursor = await endOfFeed()
    const { id } = await purchase()
    const events = await eventsAfter(cursor, 'payment.redeemed')
    expect(events.map(({ type }) => type)).toEqual(['payment.settled', 'payment.paid', 'payment.redeemed'])
    for (const event of events)
      expect(event).toMatchObject({
        id: expect.stringMatching(/^evt_[0-9a-f]{32}$/),
        createdAt: expect.any(Number),
        accountId: merchant.accountId,
        data: {
          paymentId: id,
          nodeId: created.node.id,
          protocol: 'mpp',
          amountSat: 1000,
          description: '=1+1, "quoted"',
          resource: null,
        },
      })
    expect(JSON.stringify(events)).not.toMatch(/lnbcrt|preimage|Payment id=/)
  })

  test('C53: nodes and keys are events too, and filters select them', async () => {
    const cursor = await endOfFeed()
    const { node } = await merchant.createReady({ name: 'Second' })
    await merchant.act(node.id, 'stop')
    await merchant.delete(node.id)
    const events = await eventsAfter(cursor, 'node.ready', 'node.stopped', 'node.deleted')
    expect(events.find(({ type }) => type === 'node.ready')?.data).toEqual({ nodeId: node.id, name: 'Second' })
    const select = async (query: string): Promise<string[]> =>
      (await reader.want<Page>(200, 'GET', `/events?cursor=${cursor}&${query}`)).events.map(({ type }) => type)
    expect(await select('types=node.deleted')).toEqual(['node.deleted'])
    expect(await select('types=node.*')).toEqual(['node.ready', 'node.stopped', 'node.deleted'])
    expect(await select(`nodeId=${created.node.id}`)).toEqual([])
    expect(await select(`nodeId=${node.id}&types=payment.*,node.stopped`)).toEqual(['node.stopped'])
    expect(await select('nodeId=%00')).toEqual([])
  })

  test('C11: a key without events:read cannot read events', async () => {
    const shop = new Owner(server, await server.newKey(['nodes:write', 'gateway:write'], merchant.accountId))
    expect(await shop.refusal('GET', '/events')).toEqual([401, 'unauthorized'])
    expect(await shop.refusal('GET', '/events/stream')).toEqual([401, 'unauthorized'])
  })

  test('C5: an unknown type, a bad limit and a bad cursor are 400', async () => {
    for (const query of [
      'types=payment',
      'types=payment.*,nope.*',
      'types=',
      'limit=0',
      'limit=201',
      'cursor=abc',
      'cursor=',
      'page=2',
    ])
      expect(await reader.refusal('GET', `/events?${query}`), query).toEqual([400, 'bad_request'])
  })

  test('another account sees none of it', async () => {
    const stranger = new Owner(server, await server.newKey(['events:read']))
    const events = await eventually(async () => {
      const page = await stranger.want<Page>(200, 'GET', '/events?limit=200')
      return page.events.length > 0 ? page.events : undefined
    }, 'the first event')
    expect(events.map(({ type, accountId }) => [type, accountId])).toEqual([['key.created', stranger.accountId]])
    expect(await stranger.refusal('GET', `/events?cursor=${await endOfFeed()}`)).toEqual([400, 'bad_request'])
  })
})

describe('C54: GET /v1/events/stream', () => {
  const open = async (query = '', lastEventId?: string) => {
    const stream = await openEventStream(server, reader.key.key, query, lastEventId)
    closing.push(stream.close)
    return stream
  }

  test('C54: shows what happens from now on, and its ids are cursors of the feed', async () => {
    await endOfFeed()
    const stream = await open()
    expect(stream.status).toBe(200)
    expect(stream.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    const { id } = await purchase()
    const last = await stream.first('payment.redeemed')
    expect(stream.messages.map(({ type }) => type)).toEqual(['payment.settled', 'payment.paid', 'payment.redeemed'])
    expect(stream.messages.every(({ event }) => event.data.paymentId === id)).toBe(true)
    const { events } = await reader.want<Page>(200, 'GET', `/events?cursor=${stream.messages[0]?.id}`)
    expect(events).toEqual(stream.messages.slice(1).map(({ event }) => event))
    expect((await reader.want<Page>(200, 'GET', `/events?cursor=${last.id}`)).events).toEqual([])
  })

  test('C54: Last-Event-ID resumes without a gap, across a kill -9', async () => {
    const before = await open('?types=payment.settled')
    await purchase()
    const { id } = await before.first('payment.settled')
    await server.restart('SIGKILL')
    await before.ended
    await merchant.until(created.node.id, 'ready')
    const missed = await purchase()
    const after = await open('?types=payment.settled', id)
    expect((await after.first('payment.settled')).event.data.paymentId).toBe(missed.id)
    expect(after.messages).toHaveLength(1)
  })

  test('C54: a client that is disconnected before the first event resumes where its stream began', async () => {
    await endOfFeed()
    const before = await open('?types=payment.settled')
    const start = await eventually(() => before.starts[0], 'the first cursor')
    before.close()
    const missed = await purchase()
    const after = await open('?types=payment.settled', start)
    expect((await after.first('payment.settled')).event.data.paymentId).toBe(missed.id)
  })

  test('C54: a bad cursor is an error, not a stream', async () => {
    expect(await reader.refusal('GET', '/events/stream?cursor=abc')).toEqual([400, 'bad_request'])
    expect(await reader.refusal('GET', '/events/stream', { headers: { 'last-event-id': 'abc' } })).toEqual([400, 'bad_request'])
  })

  test('C54: SIGTERM ends open streams, and the service exits 0', async () => {
    const stream = await open()
    const { code } = await server.stop()
    await stream.ended
    expect(code).toBe(0)
    await server.start()
    await merchant.until(created.node.id, 'ready')
  })
})

describe('C54: GET /v1/gateway/payments.csv', () => {
  const csv = async (query = ''): Promise<string[]> => {
    const answer = await merchant.send('GET', `/gateway/payments.csv${query}`)
    expect([answer.status, answer.headers['content-type']], answer.text).toEqual([200, 'text/csv; charset=utf-8; header=present'])
    return answer.text.split('\r\n')
  }

  test('C54: one line per payment, oldest first, safe in a spreadsheet', async () => {
    const { id } = await purchase()
    const open = await charge(merchant, created, { description: '-5', amountSat: 7 })
    const lines = await csv()
    expect(lines[0]).toBe(
      'id,created_at,settled_at,paid_at,redeemed_at,status,delivery,protocol,amount_sat,node_id,description,resource,outcome',
    )
    expect(lines.at(-1)).toBe('')
    const time = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.000Z`
    expect(lines.at(-3)).toMatch(
      new RegExp(`^${id}(,${time}){4},paid,done,mpp,1000,${created.node.id},"'=1\\+1, ""quoted""",,delivered$`),
    )
    expect(lines.at(-2)).toMatch(new RegExp(`^${open.id},${time},,,,payment_required,none,mpp,7,${created.node.id},'-5,,unpaid$`))
  })

  test('C54: filters by time, node and status; thousands of payments arrive complete', async () => {
    const sql = storeOf(server)
    const { id } = await purchase()
    const { settledAt } = await untilSettled(merchant, { id })
    await sql`
      INSERT INTO gateway_payments (id, account_id, node_id, protocol, amount_sat, description, challenge, payment_hash, protocol_key_id,
                                    created_at, expires_at)
      SELECT 'pay_00000000' || lpad(n::text, 12, '0'), ${merchant.accountId}, ${created.node.id}, 'mpp', 1, 'old', '', sha256(n::text::bytea), '',
             to_timestamp(n), to_timestamp(n) FROM generate_series(1, 2500) n`
    const idsOf = async (query: string): Promise<string[]> => (await csv(query)).slice(1, -1).map((line) => line.slice(0, 24))
    expect(await idsOf('?to=2501')).toHaveLength(2500)
    expect((await idsOf('?from=1&to=3000')).at(-1)).toBe('pay_00000000000000002500')
    expect(await idsOf('?from=10&to=12')).toEqual(['pay_00000000000000000010', 'pay_00000000000000000011'])
    expect(await idsOf(`?from=${settledAt - 3600}&status=paid`)).toContain(id)
    expect(await idsOf(`?from=${settledAt + 3600}`)).toEqual([])
    expect(await idsOf(`?nodeId=${'node_00000000000000000000'}`)).toEqual([])
    expect(await merchant.refusal('GET', '/gateway/payments.csv?from=yesterday')).toEqual([400, 'bad_request'])
    expect(await reader.refusal('GET', '/gateway/payments.csv')).toEqual([401, 'unauthorized'])
  })
})
