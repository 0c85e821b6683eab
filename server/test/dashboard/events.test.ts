import { request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Database } from '../../src/store/db.ts'
import { type Changed, type Stream, signUp, Visitor } from '../support/dashboard.ts'
import { lockingTransaction } from '../support/database.ts'
import { charge, credentialOf, pay, validate } from '../support/gateway.ts'
import { eventually, Server, startServer } from '../support/server.ts'

let server: Server
let ann: Visitor
let sql: Database
const streams: Stream[] = []

beforeAll(async () => {
  server = await startServer({ env: { TRUST_PROXY: '1', NODE_PRICE_SAT_PER_DAY: '0' } })
  sql = server.sql()
  ann = await signUp(server)
})
afterAll(() => {
  for (const stream of streams) stream.close()
})

async function listen(visitor: Visitor): Promise<Stream> {
  const stream = await visitor.listen()
  streams.push(stream)
  return stream
}
const ofNodes = ({ nodes }: Changed): boolean => nodes
const ofPayments = ({ payments }: Changed): boolean => payments
/** Long enough for any event to arrive. */
const QUIET_MS = 1_500
const quiet = async (stream: Stream): Promise<void> => {
  const seen = stream.events.length
  await pause(QUIET_MS)
  expect(stream.events.slice(seen)).toEqual([])
}
/** Waits until all earlier events have been delivered. */
const settled = (stream: Stream): Promise<boolean> =>
  eventually(async () => {
    const seen = stream.events.length
    await pause(QUIET_MS)
    return stream.events.length === seen
  }, 'a quiet moment')

test('it is an event stream that is neither cached nor buffered', async () => {
  const stream = await listen(ann)
  expect(stream.headers).toMatchObject({
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
    'x-request-id': expect.stringMatching(/^req_/),
  })
  expect(stream.headers['content-encoding']).toBeUndefined()
  await eventually(() => stream.comments.length > 0, 'the first comment')
  await settled(stream)
  await quiet(stream)
  stream.close()
})

test('a node becomes ready without a reload: reported within 2 s, like all its visible changes', async () => {
  const stream = await listen(ann)
  const { node } = await ann.create()
  await ann.until(node.id, 'ready')
  await settled(stream)
  const [row] =
    await sql`SELECT extract(epoch FROM created_at) * 1000 AS made, extract(epoch FROM updated_at) * 1000 AS ready FROM nodes WHERE id = ${node.id}`
  for (const moment of [Number(row?.made), Number(row?.ready)]) {
    const after = stream.times.filter((time, index) => stream.events[index]?.nodes && time >= moment)
    // Ten times the promised 2 s, for a busy machine. A change that is not reported would be seen only with the next change.
    expect(Math.min(...after) - moment).toBeLessThan(20_000)
  }
  const renamed = stream.next(ofNodes)
  await ann.want(200, 'PATCH', `/nodes/${node.id}`, { json: { name: 'Other' } })
  await renamed
  const stopped = stream.next(ofNodes)
  await ann.want(200, 'POST', `/nodes/${node.id}/stop`)
  await stopped
  await settled(stream)
  const deleted = stream.next(ofNodes)
  await ann.want(204, 'DELETE', `/nodes/${node.id}?force=true`)
  await deleted
  stream.close()
})

test('a payment is reported when created, settled and paid, whatever caused it', async () => {
  const { node } = await ann.createReady()
  const owner = await ann.owner()
  const stream = await listen(ann)
  await settled(stream)
  const told = async (act: () => Promise<unknown>): Promise<Changed> => {
    const [seen] = [stream.events.length]
    await Promise.all([stream.next(ofPayments), act()])
    return stream.events.slice(seen).find(ofPayments) as Changed
  }
  const payment: { current?: Awaited<ReturnType<typeof charge>>; preimage: string } = { preimage: '' }
  expect(await told(async () => (payment.current = await charge(owner, { node: node as never })))).toMatchObject({ nodes: false })
  if (!payment.current) throw new Error('no payment')
  const { current } = payment
  await told(async () => (payment.preimage = await pay(server, current)))
  await told(() => validate(owner, current.id, credentialOf(current, payment.preimage)))
  await settled(stream)
  stream.close()
})

test('a row that becomes visible after one with a higher id is reported too: transactions commit in any order', async () => {
  const stream = await listen(ann)
  await settled(stream)
  let [release, isInserted] = [(): void => undefined, (): void => undefined]
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  const inserted = new Promise<void>((resolve) => {
    isInserted = resolve
  })
  const slow = lockingTransaction(sql, async (transaction) => {
    await transaction`INSERT INTO activity (account_id, actor, action) VALUES (${ann.accountId}, 'test', 'slow')`
    isInserted()
    await held
  })
  await inserted
  const quick = stream.next(({ activity }) => activity)
  await sql`INSERT INTO activity (account_id, actor, action) VALUES (${ann.accountId}, 'test', 'quick')`
  await quick
  const late = stream.next(({ activity, payments, nodes }) => activity && !payments && !nodes)
  release()
  await Promise.all([slow, late])
  stream.close()
})

test('nothing of another account is reported', async () => {
  const bob = await signUp(server)
  const stream = await listen(bob)
  await settled(stream)
  await ann.create()
  await quiet(stream)
  stream.close()
})

test('changes by another process on the same database are reported: nodes, payments and activity', async () => {
  const replica = new Server({
    env: { ...server.sharedStoreEnv, ROLE: 'api', TRUST_PROXY: '1', PUBLIC_URL: server.url },
  })
  await replica.launch()
  await replica.printed(/^boltyard ready/m)
  const { node } = await ann.createReady()
  const owner = await ann.owner()
  const stream = await listen(new Visitor(replica, ann.cookie, ann))
  await settled(stream)
  const told = async (wanted: (changed: Changed) => boolean, act: () => Promise<unknown>): Promise<void> => {
    await Promise.all([stream.next(wanted), act()])
  }
  await told(ofNodes, () => ann.want(200, 'PATCH', `/nodes/${node.id}`, { json: { name: 'There' } }))
  await told(ofPayments, () => charge(owner, { node: node as never }))
  await told(
    ({ activity }) => activity,
    () => ann.want(201, 'POST', '/keys', { json: { name: 'k', scopes: [] } }),
  )
  stream.close()
  await replica.stop()
})

test('at most ten connections per account: the eleventh replaces the oldest, which does not reconnect at once', async () => {
  const dora = await signUp(server)
  const ten: Stream[] = []
  for (let count = 0; count < 10; count++) ten.push(await listen(dora))
  await pause(100)
  expect(ten.every((stream) => stream.isOpen())).toBe(true)
  const eleventh = await listen(dora)
  await ten[0]?.ended
  expect(ten[0]?.retries).toEqual(['retry: 30000'])
  expect(ten.slice(1).every((stream) => stream.isOpen())).toBe(true)
  const told = Promise.all([...ten.slice(1), eleventh].map((stream) => stream.next(({ activity }) => activity)))
  await dora.want(201, 'POST', '/keys', { json: { name: 'k', scopes: [] } })
  await told
  for (const stream of [...ten, eleventh]) stream.close()
  // A closed stream makes room.
  await eventually(async () => {
    const again = await listen(dora)
    await pause(50)
    return again.isOpen()
  }, 'room')
})

test('the end of a session ends its stream, and no other', async () => {
  const eve = await signUp(server)
  const other = await signUp(server)
  const [stream, kept] = [await listen(eve), await listen(other)]
  const cookie = eve.cookie
  await eve.want(200, 'POST', '/auth/sign-out', { json: {} })
  await stream.ended
  expect(kept.isOpen()).toBe(true)
  eve.cookie = cookie
  await expect(eve.listen()).rejects.toThrow('events: 401')
  kept.close()
})

test('HEAD opens no stream', async () => {
  const { status } = await ann.send('HEAD', '/events')
  expect([404, 405]).toContain(status)
})

test('a client that does not read does not affect others', async () => {
  const fay = await signUp(server)
  const silent = request({
    host: '127.0.0.1',
    port: server.port,
    path: '/dashboard/api/events',
    headers: fay.headers(),
    agent: false,
  })
  const paused = new Promise<void>((resolve) =>
    silent.on('response', (response) => {
      response.pause()
      resolve()
    }),
  )
  silent.on('error', () => undefined)
  silent.end()
  await paused
  const stream = await listen(fay)
  const told = stream.next(({ activity }) => activity)
  await fay.want(201, 'POST', '/keys', { json: { name: 'k', scopes: [] } })
  await told
  silent.destroy()
  stream.close()
})

describe('when the service stops or the store goes down', () => {
  test('SIGTERM with open streams: they end, the service exits 0 within 10 s, and clients can listen to the next one', async () => {
    const own = await startServer({ env: { TRUST_PROXY: '1', NODE_PRICE_SAT_PER_DAY: '0' } })
    const gus = await signUp(own)
    // If the service waited for the streams, every stop would take 10 s. The fastest of three stops counts, because a busy
    // machine may delay one of them.
    let leastMs = Number.POSITIVE_INFINITY
    for (let time = 0; time < 3 && leastMs > 9_000; time++) {
      const open = await Promise.all([gus.listen(), gus.listen(), gus.listen()])
      const since = performance.now()
      const { code } = await own.stop()
      expect(code).toBe(0)
      leastMs = Math.min(leastMs, performance.now() - since)
      await Promise.all(open.map(({ ended }) => ended))
      await own.start()
    }
    expect(leastMs).toBeLessThan(9_000)
    const again = await gus.listen()
    const told = again.next(({ activity }) => activity)
    await gus.want(201, 'POST', '/keys', { json: { name: 'k', scopes: [] } })
    await told
    again.close()
  })

  test('the store goes down and comes back: the stream stays open, and changes in between are reported', async () => {
    const own = await startServer({ store: 'embedded', env: { TRUST_PROXY: '1', NODE_PRICE_SAT_PER_DAY: '0' } })
    const hal = await signUp(own)
    const stream = await hal.listen()
    const { giveBack } = await own.takeStoreAway()
    await pause(3_000)
    expect(stream.isOpen()).toBe(true)
    const told = stream.next(({ activity }) => activity)
    giveBack()
    await eventually(
      async () => (await hal.send('POST', '/keys', { json: { name: 'k', scopes: [] } })).status === 201,
      'the store',
    )
    await told
    stream.close()
  })
})
