import { createHmac, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { Hopeless } from '../../../testing/eventually.ts'
import { newId } from '../../src/platform/ids.ts'
import type { Database } from '../../src/store/db.ts'
import { countIssued } from '../../src/store/overview.ts'
import { removeUnpaidPayments } from '../../src/store/payments/payments.ts'
import { lockingTransaction } from '../support/database.ts'
import { credentialOf, invoiceIn, preimageFrom } from '../support/gateway.ts'
import { catalogue, directoryOf, fault, type Node, runningPidOf, withhold } from '../support/nodes.ts'
import { inTurns, type Merchant, NOWHERE, newMerchant, type Paid, type Payment, report } from '../support/payments.ts'
import { type Answer, eventually, PROCESS, type Server, send, startServer } from '../support/server.ts'

/** C40: settlements arrive quickly by event and reliably by polling. Here the daemons' events are lost; the tests send their own. */

const [OLD, BOTH] = [
  { NODE_VERSIONS: catalogue([{ version: '0.8.0' }]) },
  { NODE_VERSIONS: catalogue([{ version: '0.8.0' }, { version: '0.9.0' }]) },
]

let server: Server
let sql: Database
let merchant: Merchant
let node: Node
/** Runs the old version, so that it can be updated. */
let oldNode: Node
let neighbour: Merchant
let neighbourNode: Node

beforeAll(async () => {
  server = await startServer({
    command: PROCESS,
    env: { TRUST_PROXY: '1', LOG_LEVEL: 'warn', NODE_PRICE_SAT_PER_DAY: '0', NODE_CALLBACK_URL: NOWHERE, ...OLD },
  })
  merchant = await newMerchant(server)
  neighbour = await newMerchant(server)
  oldNode = (await merchant.owner.createReady()).node
  await server.restart('SIGTERM', BOTH)
  node = (await merchant.owner.createReady()).node
  neighbourNode = (await neighbour.owner.createReady()).node
  await merchant.owner.until(oldNode.id, 'ready')
  sql = server.sql()
})

const secretOf = ({ id }: Node): string =>
  /^webhook-secret=(.+)$/m.exec(readFileSync(join(directoryOf(server, { id }), 'phoenix.conf'), 'utf8'))?.[1] ?? ''

const hashOf = async ({ id }: { id: string }): Promise<string> => {
  const [row] = await sql<{ hash: string }[]>`SELECT encode(payment_hash, 'hex') AS hash FROM gateway_payments WHERE id = ${id}`
  return row?.hash ?? ''
}

const sign = (body: string | Buffer, secret: string): Record<string, string> => ({
  'x-phoenix-signature': createHmac('sha256', secret).update(body).digest('hex'),
})

/** As the daemon writes it: indented, with nulls. */
const eventOf = (paymentHash: string, more: object = {}): string =>
  JSON.stringify(
    { type: 'payment_received', timestamp: Date.now(), amountSat: 10, paymentHash, externalId: null, payerNote: null, ...more },
    null,
    4,
  )

let addresses = 0
/** Each event comes from its own address, so that only the test of the rate limit (C44) reaches that limit. */
const from = (): Record<string, string> => ({ 'x-forwarded-for': `10.200.${(addresses >> 8) & 255}.${addresses++ & 255}` })

const tell = async (of: Node, payment: Payment, more: object = {}): Promise<Answer> => {
  const body = eventOf(await hashOf(payment), more)
  return report(server, of.id, body, { ...sign(body, secretOf(of)), ...from() })
}

const settlementsOf = ({ id }: { id: string }): Promise<{ actor: string }[]> =>
  sql<{ actor: string }[]>`SELECT actor FROM activity WHERE target = ${id} AND action = 'payment.settled'`

const isSettled = async ({ id }: { id: string }): Promise<boolean> => (await merchant.get(id)).settledAt !== null

/** Paid by its customer, but not due in the sweep for an hour: only an event, a validation or a stop of the node causes a query. */
const paidInSilence = async (of: Node): Promise<Paid> => {
  const payment = await merchant.create(of.id)
  await notBefore([payment], '1 hour')
  return merchant.pay(payment)
}

/** An event's query has two seconds. If that is not enough on a busy machine, the sweep asks: the event made the payment due. */
const untilSettled = (payment: { id: string }): Promise<boolean> => eventually(() => isSettled(payment), 'the settlement')

const hasFunds = async ({ id }: Node): Promise<boolean | undefined> =>
  (await sql<{ funds: boolean }[]>`SELECT has_funds AS funds FROM nodes WHERE id = ${id}`)[0]?.funds

/** The sweep does not ask about these payments until the interval has passed. */
const notBefore = (payments: { id: string }[], interval: string): Promise<unknown> =>
  sql`UPDATE gateway_payments SET ask_at = now() + ${interval}::interval WHERE id = ANY (${payments.map(({ id }) => id)}) AND settled_at IS NULL`

/** Makes payments look as if they had expired this long ago, and makes them due now. */
const expiredAgo = (payments: { id: string }[], interval: string): Promise<unknown> => sql`
  UPDATE gateway_payments SET created_at = now() - ${interval}::interval - interval '5 minutes',
    expires_at = now() - ${interval}::interval, ask_at = now()
  WHERE id = ANY (${payments.map(({ id }) => id)})`

const askAtOf = async ({ id }: { id: string }): Promise<{ fromNow: number | null; fromExpiry: number | null }> => {
  const [row] = await sql<{ fromNow: number | null; fromExpiry: number | null }[]>`
    SELECT extract(epoch FROM ask_at - now())::float8 AS "fromNow", extract(epoch FROM ask_at - expires_at)::float8 AS "fromExpiry"
    FROM gateway_payments WHERE id = ${id}`
  if (!row) throw new Error('it is gone')
  return row
}

describe('the event', () => {
  /** Paid, so that a genuine event about it would settle it. */
  let payment: Payment
  beforeAll(async () => {
    payment = await paidInSilence(node)
  })

  test('C40, security 7: makes us ask the node, whose answer settles the payment once, at the node’s time, without marking it paid', async () => {
    const before = Math.floor(Date.now() / 1000) - 60
    const told = await paidInSilence(node)
    expect(await isSettled(told)).toBe(false)
    expect((await tell(node, told, { timestamp: Date.now() - 3_600_000 })).status).toBe(204)
    await untilSettled(told)
    const first = await merchant.get(told.id)
    expect(first).toMatchObject({ status: 'payment_required', settledAt: expect.any(Number), paidAt: null })
    expect(first.settledAt).toBeGreaterThan(before)
    // Nothing prevents the replay of a signed event, so a repeated event must not matter.
    for (const _ of [1, 2]) expect((await tell(node, told)).status).toBe(204)
    expect(await merchant.get(told.id)).toEqual(first)
    expect(await settlementsOf(told)).toEqual([{ actor: node.id }])
    expect(await askAtOf(told)).toEqual({ fromNow: null, fromExpiry: null })
    // C37: a settled payment is not shown as expired, even after its expiry: the money was received.
    await sql`UPDATE gateway_payments SET expires_at = now() - interval '1 day' WHERE id = ${told.id}`
    expect(await merchant.get(told.id)).toMatchObject({ status: 'payment_required', settledAt: first.settledAt })
    const listed = await merchant.send('GET', '?status=expired&limit=100')
    expect(listed.json().payments.map(({ id }: Payment) => id)).not.toContain(told.id)
    const answer = await merchant.validate(told)
    expect(answer.status).toBe(200)
    const receipt = JSON.parse(Buffer.from(answer.json().receipt, 'base64url').toString('utf8'))
    expect(Math.floor(Date.parse(receipt.timestamp) / 1000)).toBe(first.settledAt)
    expect(await merchant.get(told.id)).toMatchObject({ status: 'paid', settledAt: first.settledAt, paidAt: expect.any(Number) })
  })

  test('security 7: signed, but about an unpaid invoice: nothing is settled, and the credential is refused', async () => {
    const { node: own, credentials } = await merchant.owner.createReady()
    const unpaid = await merchant.create(own.id)
    await notBefore([unpaid], '1 hour')
    expect((await tell(own, unpaid)).status).toBe(204)
    expect(await isSettled(unpaid)).toBe(false)
    expect(await hasFunds(own)).toBe(false)
    const preimage = await preimageFrom({ node: own, credentials }, unpaid)
    const refused = await merchant.validate({ ...unpaid, credential: credentialOf(unpaid, preimage) })
    expect([refused.status, refused.json().error.reason]).toEqual([400, 'not_settled'])
    await merchant.owner.delete(own.id)
  })

  test('security 7: if the node does not respond, the sweep asks it, even about an invoice that had no query left', async () => {
    const told = await paidInSilence(node)
    await sql`UPDATE gateway_payments SET ask_at = NULL WHERE id = ${told.id}`
    await fault(server, { node }, 'hang')
    expect((await tell(node, told)).status).toBe(204)
    expect(await isSettled(told)).toBe(false)
    await fault(server, { node }, 'none')
    await untilSettled(told)
  })

  type Forged = { nodeId?: string; body?: string | Buffer; headers?: Record<string, string> }
  /** Fixed, so that the genuine event always has the same bytes, and the change below is the only thing wrong. */
  const timestamp = Date.now()
  const genuine = async (): Promise<{ body: string; headers: Record<string, string> }> => {
    const body = eventOf(await hashOf(payment), { timestamp })
    return { body, headers: sign(body, secretOf(node)) }
  }
  const attempt = async (forged: Forged): Promise<Answer> => {
    const { body, headers } = await genuine()
    return report(server, forged.nodeId ?? node.id, forged.body ?? body, { ...(forged.headers ?? headers), ...from() })
  }
  const nothingChanged = async (): Promise<void> => {
    expect(await merchant.get(payment.id)).toMatchObject({ status: 'payment_required', settledAt: null, paidAt: null })
    expect(await settlementsOf(payment)).toEqual([])
    expect(await hasFunds(neighbourNode)).toBe(false)
  }
  const signature = (text: string) => ({ 'x-phoenix-signature': text })

  test.each<[what: string, status: number, forge: (right: string) => Forged]>([
    ['a wrong signature', 401, () => ({ headers: signature(randomBytes(32).toString('hex')) })],
    ['no signature', 401, () => ({ headers: {} })],
    ['an empty signature', 401, () => ({ headers: signature('') })],
    ['half of the signature', 401, (right) => ({ headers: signature(right.slice(0, 32)) })],
    ['upper-case hex', 401, (right) => ({ headers: signature(right.toUpperCase()) })],
    ['a signature with more after it', 401, (right) => ({ headers: signature(`${right}zz`) })],
    ['two signatures', 401, (right) => ({ headers: signature(`${right}, ${right}`) })],
    ['no hex at all', 401, () => ({ headers: signature('é'.repeat(64)) })],
    ['an unknown node', 401, () => ({ nodeId: newId('node') })],
    ['an invalid node id', 401, () => ({ nodeId: 'node_%00' })],
    ['a very long name of a node', 401, () => ({ nodeId: 'x'.repeat(90) })],
    ['another node’s name', 401, () => ({ nodeId: neighbourNode.id })],
    ['no body', 401, () => ({ body: '' })],
    ['a huge body', 413, () => ({ body: Buffer.alloc(2 * 1024 * 1024, 'a') })],
  ])('C40: with %s it is refused (%i)', async (_what, status, forge) => {
    const right = (await genuine()).headers['x-phoenix-signature'] ?? ''
    const answer = await attempt(forge(right))
    expect([answer.status, answer.text]).toEqual([status, expect.stringContaining('"error"')])
    await nothingChanged()
  })

  test('C40: a changed byte and another node’s secret are refused', async () => {
    const { body, headers } = await genuine()
    expect((await attempt({ body: body.replace('"amountSat": 10', '"amountSat": 11'), headers })).status).toBe(401)
    expect((await attempt({ body: `${body} `, headers })).status).toBe(401)
    expect((await attempt({ body, headers: sign(body, secretOf(neighbourNode)) })).status).toBe(401)
    expect((await attempt({ body, headers: sign(body, '') })).status).toBe(401)
    await nothingChanged()
  })

  test.each<[what: string, body: (hash: string) => string | Buffer]>([
    ['what is not JSON', () => 'payment_received'],
    ['bytes that are not text', (hash) => Buffer.concat([Buffer.of(0xff, 0xfe), Buffer.from(eventOf(hash))])],
    ['another type', (hash) => eventOf(hash, { type: 'payment_sent' })],
    ['no type', (hash) => eventOf(hash, { type: undefined })],
    ['an unknown hash', () => eventOf(randomBytes(32).toString('hex'))],
    ['an upper-case hash', (hash) => eventOf(hash.toUpperCase())],
    ['a hash that is a list', (hash) => eventOf(hash, { paymentHash: [hash] })],
    ['a hash with a zero byte', (hash) => eventOf(`${hash}\u0000`)],
    ['a list', (hash) => JSON.stringify([JSON.parse(eventOf(hash))])],
    ['null', () => 'null'],
    ['a number', () => '1e999'],
    ['a depth of ten thousand', () => '['.repeat(10_000) + ']'.repeat(10_000)],
    ['a prototype', (hash) => `{"__proto__":${eventOf(hash)}}`],
  ])('C40: signed, but %s: accepted and ignored', async (_what, body) => {
    const bytes = body(await hashOf(payment))
    expect((await attempt({ body: bytes, headers: sign(bytes, secretOf(node)) })).status).toBe(204)
    await nothingChanged()
  })

  test('C40: a node can only report its own payments', async () => {
    const body = eventOf(await hashOf(payment))
    const answer = await report(server, neighbourNode.id, body, { ...sign(body, secretOf(neighbourNode)), ...from() })
    expect(answer.status).toBe(204)
    await nothingChanged()
  })

  test('C44: from the 31st failure of an address it is 429, and an event signed by the node is never refused', async () => {
    const address = from()
    const { body, headers } = await genuine()
    const failures = await inTurns(Array.from({ length: 40 }), 1, () =>
      report(server, node.id, body, { ...signature('0'.repeat(64)), ...address }),
    )
    expect(failures.map(({ status }) => status)).toEqual([...Array(30).fill(401), ...Array(10).fill(429)])
    await nothingChanged()
    const other = eventOf(randomBytes(32).toString('hex'))
    expect((await report(server, node.id, other, { ...sign(other, secretOf(node)), ...address })).status).toBe(204)
    expect((await report(server, node.id, body, { ...headers, ...from(), 'content-type': 'text/html' })).status).toBe(204)
    await untilSettled(payment)
  })

  test.each([undefined, null, -1, 1.5, 1e300, '1700000000000', {}])('C40: the timestamp %s is ignored', async (timestamp) => {
    const before = Math.floor(Date.now() / 1000) - 60
    const told = await paidInSilence(node)
    expect((await tell(node, told, { timestamp })).status).toBe(204)
    await untilSettled(told)
    const { settledAt } = await merchant.get(told.id)
    expect(settledAt).toBeGreaterThan(before)
    expect(settledAt).toBeLessThanOrEqual(Math.ceil(Date.now() / 1000) + 60)
    expect((await merchant.validate(told)).status).toBe(200)
  })

  test('security 7: a deleted node cannot be asked, so its event is accepted and settles nothing', async () => {
    const short = (await merchant.owner.createReady()).node
    const secret = secretOf(short)
    const last = await merchant.create(short.id)
    expect((await merchant.owner.delete(short.id)).status).toBe(204)
    const body = eventOf(await hashOf(last))
    expect((await report(server, short.id, body, { ...signature('0'.repeat(64)), ...from() })).status).toBe(401)
    expect((await report(server, short.id, body, { ...sign(body, secret), ...from() })).status).toBe(204)
    expect(await isSettled(last)).toBe(false)
  })

  test('C40: sent by a real daemon, it arrives long before the sweep is due', async () => {
    const other = await startServer({ env: { TRUST_PROXY: '1', LOG_LEVEL: 'warn', NODE_PRICE_SAT_PER_DAY: '0' } })
    const seller = await newMerchant(other)
    const its = (await seller.owner.createReady()).node
    const payment = await seller.create(its.id)
    await other.sql()`UPDATE gateway_payments SET ask_at = now() + interval '1 hour' WHERE id = ${payment.id}`
    await seller.pay(payment)
    const shown = await eventually(async () => {
      const one = await seller.get(payment.id)
      return one.settledAt === null ? undefined : one
    }, 'the event')
    expect(shown).toMatchObject({ status: 'payment_required', paidAt: null })
  })
})

describe('the sweep', () => {
  const free = async (): Promise<void> => {
    await fault(server, { node }, 'none')
    await merchant.owner.until(node.id, 'ready')
  }
  afterEach(free)

  test('C40: without any event the settlement is known within 20 s, and the payment is not marked paid', async () => {
    // Checks when the first query is due, because how long it then takes depends on the machine.
    await sql.unsafe(`
      CREATE TABLE first_asks (id text, seconds float8);
      CREATE FUNCTION note_first_ask() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO first_asks VALUES (NEW.id, extract(epoch FROM NEW.ask_at - now())); RETURN NEW; END $$;
      CREATE TRIGGER note_first_ask AFTER INSERT ON gateway_payments FOR EACH ROW EXECUTE FUNCTION note_first_ask()`)
    const paid = await merchant.createPaid(node.id)
    await sql`DROP TRIGGER note_first_ask ON gateway_payments`
    expect([...(await sql`SELECT id, seconds FROM first_asks`)]).toEqual([{ id: paid.id, seconds: 15 }])
    await untilSettled(paid)
    expect(await merchant.get(paid.id)).toMatchObject({ status: 'payment_required', paidAt: null })
    expect(await settlementsOf(paid)).toEqual([{ actor: node.id }])
  })

  test('C40: a payment made while the service was down is known once it is back', async () => {
    const payment = await merchant.create(node.id)
    await server.kill('SIGKILL')
    const { port } = JSON.parse(readFileSync(join(server.dataDir, 'run', 'hub', 'run.json'), 'utf8'))
    const [, token = ''] = /^control-token=(.+)$/m.exec(readFileSync(join(server.dataDir, 'hub', 'hub.conf'), 'utf8')) ?? []
    // The customer does not need our service to pay.
    const answer = await send(port, 'POST', '/pay', { token, json: { invoice: invoiceIn(payment.challenge) } })
    expect(answer.status).toBe(200)
    await server.start(BOTH)
    await untilSettled(payment)
  })

  test.each<[ago: string, at: { fromNow?: [number, number]; fromExpiry?: number | null }]>([
    ['-4 minutes', { fromNow: [12, 15.5] }],
    ['1 second', { fromNow: [12, 15.5] }],
    ['61 seconds', { fromExpiry: 600 }],
    ['9 minutes', { fromExpiry: 600 }],
    ['601 seconds', { fromExpiry: 3600 }],
    ['59 minutes', { fromExpiry: 3600 }],
    ['1 hour', { fromExpiry: null }],
    ['3 days', { fromExpiry: null }],
  ])(
    'C40: an unpaid invoice that expired %s ago is next asked about at the scheduled time',
    async (ago, { fromNow, fromExpiry }) => {
      const payment = await merchant.create(node.id)
      await expiredAgo([payment], ago)
      await eventually(async () => {
        const next = await askAtOf(payment)
        if (fromNow) return next.fromNow !== null && next.fromNow > fromNow[0] && next.fromNow <= fromNow[1]
        return fromExpiry === null ? next.fromNow === null : Math.abs((next.fromExpiry ?? 0) - (fromExpiry ?? 0)) < 0.01
      }, 'its next time')
      expect(await isSettled(payment)).toBe(false)
    },
  )

  test('C40: a query without an answer does not count: the last one is repeated until the node answers', async () => {
    const paid = await paidInSilence(node)
    await fault(server, { node }, 'hang')
    await expiredAgo([paid], '2 hours')
    // The hung node accepts the connection but does not answer in time, so each query is followed by another.
    const isAsked = async (after: number): Promise<number | undefined> => {
      const { fromExpiry } = await askAtOf(paid)
      if (fromExpiry === null) throw new Hopeless('it is not asked about again')
      return fromExpiry > after ? fromExpiry : undefined
    }
    const next = await eventually(() => isAsked(2 * 3_600 + 1), 'an ask')
    await eventually(() => isAsked(next), 'the next one')
    await free()
    await notBefore([paid], '0')
    await untilSettled(paid)
  })

  test('C40: the last query does not count if the service dies during it', async () => {
    const paid = await paidInSilence(node)
    await fault(server, { node }, 'hang')
    await expiredAgo([paid], '2 hours')
    await eventually(async () => ((await askAtOf(paid)).fromExpiry ?? 0) > 2 * 3_600 + 1, 'an ask')
    await server.kill('SIGKILL')
    await server.start(BOTH)
    await free()
    await untilSettled(paid)
  })

  test('C40: the invoices of a stopped node wait, and are asked about when it is back', async () => {
    const [paid, unpaid] = [await paidInSilence(node), await merchant.create(node.id)]
    // Not due, so that the last query before the stop does not include them.
    await sql`UPDATE gateway_payments SET ask_at = NULL WHERE id = ANY (${[paid.id, unpaid.id]})`
    await merchant.owner.act(node.id, 'stop')
    await expiredAgo([paid, unpaid], '2 days')
    await pause(2_500)
    expect((await askAtOf(paid)).fromNow).toBeLessThan(-2)
    expect((await askAtOf(unpaid)).fromNow).toBeLessThan(-2)
    await merchant.owner.act(node.id, 'start')
    await eventually(() => isSettled(paid), 'the settlement')
    await eventually(async () => (await askAtOf(unpaid)).fromNow === null, 'the last ask')
  })

  test('C40: a hung node does not hold up the invoices of others', async () => {
    const stuck = await inTurns(Array.from({ length: 60 }), 6, () => merchant.create(node.id))
    const { giveBack } = await withhold(sql, node)
    await fault(server, { node }, 'hang')
    // A call to a hung node is given up after 10 s. On a busy machine, the neighbour's settlement may take as long; then the round is
    // repeated.
    await eventually(async () => {
      const payment = await neighbour.create(neighbourNode.id)
      await notBefore([payment], '1 hour')
      await neighbour.pay(payment)
      // The invoices must look expired, because for many open ones the service would ask the node for a list instead.
      await expiredAgo(stuck, '5 minutes')
      const fromNow = async (): Promise<number> => (await askAtOf(stuck[0] as Payment)).fromNow ?? -1
      await eventually(async () => (await fromNow()) > 1, 'the sweep to be stuck')
      await notBefore([payment], '0')
      await eventually(async () => (await neighbour.get(payment.id)).settledAt !== null, 'the settlement')
      return (await fromNow()) > 15 - 9
    }, 'a settlement while the sweep is stuck')
    await giveBack()
  })
})

describe('C50, security 11: an unpaid challenge', () => {
  const isThere = async ({ id }: { id: string }): Promise<boolean> =>
    (await sql`SELECT 1 FROM gateway_payments WHERE id = ${id}`).length === 1
  const removeAll = async (): Promise<void> => {
    while ((await removeUnpaidPayments(sql, 100)) > 0);
  }
  const isAsked = async (payment: { id: string }): Promise<boolean> => (await askAtOf(payment)).fromNow === null

  test('is removed a day after its expiry if the node reported it unpaid after that; and is still counted as issued', async () => {
    const [old, young] = [await merchant.create(node.id), await merchant.create(node.id)]
    const issued = async (): Promise<number> =>
      countIssued(sql, merchant.owner.accountId, Math.floor(Date.now() / 1000) - 7 * 86_400)
    const before = await issued()
    await expiredAgo([old], '25 hours')
    await expiredAgo([young], '23 hours')
    await eventually(async () => (await isAsked(old)) && (await isAsked(young)), 'the last ask')
    await removeAll()
    expect([await isThere(old), await isThere(young)]).toEqual([false, true])
    expect((await merchant.send('GET', `/${old.id}`)).status).toBe(404)
    expect(await issued()).toBe(before)
  })

  test('is kept if it was paid after all, if the node was not asked after the expiry, or if one more query is due', async () => {
    const paid = await merchant.createPaid(node.id)
    const unasked = await merchant.create(node.id)
    const askedSoon = await merchant.create(node.id)
    await expiredAgo([paid], '3 days')
    await eventually(() => isSettled(paid), 'the settlement')
    await expiredAgo([askedSoon], '2 minutes')
    await eventually(async () => (await askAtOf(askedSoon)).fromExpiry === 600, 'an ask')
    await sql`UPDATE gateway_payments SET expires_at = expires_at - interval '3 days', ask_at = now() + interval '1 hour' WHERE id = ${askedSoon.id}`
    await sql`UPDATE gateway_payments SET expires_at = now() - interval '3 days', ask_at = NULL WHERE id = ${unasked.id}`
    await removeAll()
    for (const one of [paid, unasked, askedSoon]) expect(await isThere(one)).toBe(true)
    expect((await merchant.validate(paid)).status).toBe(200)
  })

  test('is kept while the node does not answer, and removed once it has', async () => {
    const silent = await merchant.create(node.id)
    await fault(server, { node }, 'hang')
    await expiredAgo([silent], '2 days')
    await eventually(async () => ((await askAtOf(silent)).fromNow ?? 99) > 1, 'an ask')
    await removeAll()
    expect(await isThere(silent)).toBe(true)
    await fault(server, { node }, 'none')
    await notBefore([silent], '0')
    await eventually(() => isAsked(silent), 'the last ask')
    await removeAll()
    expect(await isThere(silent)).toBe(false)
  })

  test('is not removed while a settlement is being written, nor afterwards', async () => {
    const old = await merchant.create(node.id)
    await expiredAgo([old], '2 days')
    await eventually(() => isAsked(old), 'the last ask')
    await sql.begin(async (transaction) => {
      await transaction`UPDATE gateway_payments SET settled_at = now(), receipt = 'x', unpaid_at = NULL WHERE id = ${old.id}`
      await removeAll()
    })
    await removeAll()
    expect(await isThere(old)).toBe(true)
  })
})

describe('before a node stops', () => {
  test.each(['stop', 'restart'] as const)('C40: %s: the node is asked once more', async (action) => {
    const own = (await merchant.owner.createReady()).node
    const paid = await paidInSilence(own)
    await merchant.owner.act(own.id, action)
    expect(await isSettled(paid)).toBe(true)
    await merchant.owner.delete(own.id, '?force=true')
  })

  test('C40: update: the node is asked once more', async () => {
    const paid = await paidInSilence(oldNode)
    await merchant.owner.want(202, 'POST', `/nodes/${oldNode.id}/update`)
    await eventually(async () => (await merchant.owner.get(oldNode.id)).updateStatus === 'updated', 'the update')
    expect(await isSettled(paid)).toBe(true)
  })

  test('C40: delete: the node is asked once more', async () => {
    const own = (await merchant.owner.createReady()).node
    const paid = await paidInSilence(own)
    expect((await merchant.owner.delete(own.id, '?force=true')).status).toBe(204)
    await eventually(() => isSettled(paid), 'the settlement')
  })

  test('C40: it is asked about all open invoices, not only the first', async () => {
    const own = (await merchant.owner.createReady()).node
    const paid = await inTurns(Array.from({ length: 40 }), 6, () => merchant.createPaid(own.id))
    await notBefore(paid, '1 hour')
    await merchant.owner.act(own.id, 'stop')
    for (const one of paid) expect(await isSettled(one)).toBe(true)
  })

  test('C26: a settlement counts as funds, even if the node is gone before it was observed', async () => {
    const own = (await merchant.owner.createReady()).node
    const payment = await merchant.create(own.id)
    await notBefore([payment], '1 hour')
    await merchant.pay(payment)
    expect((await tell(own, payment)).status).toBe(204)
    await untilSettled(payment)
    process.kill(runningPidOf(server, own), 'SIGKILL')
    expect(await merchant.owner.refusal('DELETE', `/nodes/${own.id}`)).toEqual([409, 'node_has_funds'])
    expect(await hasFunds(own)).toBe(true)
  })

  /** Holds the reconciler between its observation of the node and the last query. */
  const between = async (act: () => Promise<void>, begin: () => Promise<unknown>): Promise<void> => {
    let asked: Promise<unknown> | undefined
    await lockingTransaction(sql, async (transaction) => {
      await transaction`LOCK TABLE gateway_payments IN ACCESS EXCLUSIVE MODE`
      asked = begin()
      await eventually(
        async () =>
          (
            await sql`SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%ask_at IS NOT NULL ORDER BY%'
                      AND pid <> pg_backend_pid()`
          ).length > 0,
        'the last ask to wait',
      )
      await act()
    })
    await asked
  }
  const pay = async (payment: Payment): Promise<void> => void (await merchant.pay(payment))

  test('C26: money received between the last observation and the stop counts as funds', async () => {
    const own = (await merchant.owner.createReady()).node
    const payment = await merchant.create(own.id, { amountSat: 100_000 })
    await notBefore([payment], '1 hour')
    await between(
      () => pay(payment),
      () => merchant.owner.act(own.id, 'stop'),
    )
    expect(await isSettled(payment)).toBe(true)
    expect(await merchant.owner.refusal('DELETE', `/nodes/${own.id}`)).toEqual([409, 'node_has_funds'])
  })

  test('C40: a node that hangs just before the last query is still stopped in time', async () => {
    const own = (await merchant.owner.createReady()).node
    const open = await inTurns(Array.from({ length: 40 }), 6, () => merchant.create(own.id))
    await notBefore(open, '1 hour')
    let silentSince = 0
    const silence = async (): Promise<void> => {
      await fault(server, { node: own }, 'hang')
      silentSince = Date.now()
    }
    await between(silence, () => merchant.owner.act(own.id, 'stop'))
    // The queries may take two seconds, and a process that does not exit on SIGTERM is killed after 45.
    // If the 40 queries were made one after the other, they would take 80 s.
    expect(Date.now() - silentSince).toBeLessThan(60_000)
    expect((await merchant.owner.get(own.id)).status).toBe('stopped')
  })

  test('C40: a node that has been hung for a while is stopped without being asked', async () => {
    const own = (await merchant.owner.createReady()).node
    const paid = await paidInSilence(own)
    await fault(server, { node: own }, 'hang')
    const started = Date.now()
    await merchant.owner.act(own.id, 'stop')
    expect(Date.now() - started).toBeLessThan(60_000)
    expect(await isSettled(paid)).toBe(false)
    // Nothing is lost: the node is asked when it is back.
    await notBefore([paid], '0')
    await merchant.owner.act(own.id, 'start')
    await eventually(() => isSettled(paid), 'the settlement')
  })
})
