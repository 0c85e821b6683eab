import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { answers, hangs, ok, openReceiver, type Respond, verified } from '../../../testing/receiver.ts'
import { storeOf } from '../support/gateway.ts'
import type { Owner } from '../support/nodes.ts'
import { eventually, type Server, startServer } from '../support/server.ts'
import {
  type Attempt,
  afterAttempts,
  createWebhook,
  deliveriesOf,
  getWebhook,
  happen,
  newSubscriber,
  skipPause,
  type Webhook,
} from './subscriber.ts'

const KEYS = { types: ['key.created'] }

let server: Server
let owner: Owner

beforeAll(async () => {
  server = await startServer({ env: { TRUST_PROXY: '1', NODE_PRICE_SAT_PER_DAY: '0' } })
})
beforeEach(async () => {
  owner = await newSubscriber(server)
})

describe('the good case', () => {
  test('C56: an event is sent once, signed, with the event of the feed as its body', async () => {
    const receiver = await openReceiver()
    const webhook = await createWebhook(owner, { url: receiver.url, ...KEYS })
    const keyId = await happen(owner)
    const [request] = await receiver.until(1)
    const event = request && verified(webhook.secret, request)
    expect(event).toMatchObject({ type: 'key.created', accountId: owner.accountId, data: { keyId } })
    const { events } = await owner.want<{ events: unknown[] }>(200, 'GET', '/events?types=key.created')
    expect(events).toContainEqual(event)
    expect(request?.headers).toMatchObject({ 'content-type': 'application/json', 'webhook-id': event?.id })
    const delivery = await afterAttempts(owner, webhook, 1)
    expect(delivery).toMatchObject({ eventId: event?.id, type: 'key.created', status: 'delivered', nextAttemptAt: null })
    expect(delivery.attempts).toEqual([
      { at: expect.any(Number), status: 200, durationMs: expect.any(Number), response: 'thank you', error: null },
    ])
    expect(await getWebhook(owner, webhook)).toMatchObject({ lastSuccessAt: expect.any(Number), failingSince: null })
  })

  test('C56: a webhook gets only the types and nodes that it asks for, and nothing of another account', async () => {
    const receiver = await openReceiver()
    const others = await openReceiver()
    const stranger = await newSubscriber(server)
    await createWebhook(stranger, { url: others.url })
    await createWebhook(owner, { url: others.url, types: ['payment.*', 'key.revoked'] })
    await createWebhook(owner, { url: receiver.url, types: ['key.*'] })
    await happen(owner)
    await receiver.until(1)
    await storeOf(
      server,
    )`INSERT INTO activity (account_id, actor, action, target) VALUES (${owner.accountId}, 'test', 'key.revoked', 'key_1')`
    await receiver.until(2)
    await others.until(1)
    expect(others.received.map(({ body }) => JSON.parse(body).type)).toEqual(['key.revoked'])
  })
})

describe('failures', () => {
  test('C57: every attempt has the same id and bytes; the schedule ends with the tenth', async () => {
    const receiver = await openReceiver(answers(500))
    const webhook = await createWebhook(owner, { url: receiver.url, ...KEYS })
    await happen(owner)
    const pauses: number[] = []
    for (let count = 1; count < 10; count++) {
      const { attempts, nextAttemptAt, status } = await afterAttempts(owner, webhook, count)
      expect(status).toBe('pending')
      pauses.push((nextAttemptAt ?? 0) - (attempts.at(-1)?.at ?? 0))
      await skipPause(server, webhook)
    }
    const delivery = await afterAttempts(owner, webhook, 10)
    expect(delivery).toMatchObject({ status: 'failed', nextAttemptAt: null })
    expect(delivery.attempts.at(-1)).toMatchObject({ status: 500, response: 'status 500', error: 'The response was 500.' })
    const promised = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]
    for (const [index, seconds] of promised.entries()) {
      expect(pauses[index]).toBeGreaterThanOrEqual(seconds)
      expect(pauses[index]).toBeLessThan(seconds * 1.1 + 60)
    }
    expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1)
    expect(new Set(receiver.ids()).size).toBe(1)
    for (const request of receiver.received) verified(webhook.secret, request)
    expect(await deliveriesOf(owner, webhook, '?status=failed')).toHaveLength(1)
  })

  test('C57: a redirect is a failure and is not followed', async () => {
    const elsewhere = await openReceiver()
    const receiver = await openReceiver(answers(307, { location: elsewhere.url }))
    const webhook = await createWebhook(owner, { url: receiver.url, ...KEYS })
    await happen(owner)
    const { attempts, status } = await afterAttempts(owner, webhook, 1)
    expect([status, attempts[0]?.status]).toEqual(['pending', 307])
    expect(elsewhere.received).toEqual([])
  })

  test('C57: a connection that is closed before the response is a failure; one that breaks off after a 2xx is not', async () => {
    const receiver = await openReceiver((response, request, nth) => {
      if (nth === 1) return request.socket.destroy()
      response.writeHead(200, { 'content-length': '100' }).write('only this', () => request.socket.destroy())
    })
    const webhook = await createWebhook(owner, { url: receiver.url, ...KEYS })
    await happen(owner)
    const first = await afterAttempts(owner, webhook, 1)
    expect(first.attempts[0]).toMatchObject({ status: null, error: 'The connection failed (ECONNRESET).' })
    await skipPause(server, webhook)
    const { status, attempts } = await afterAttempts(owner, webhook, 2)
    expect([status, attempts[1]?.response]).toEqual(['delivered', 'only this'])
  })

  test('C57: at most one kilobyte of a response is kept, whatever its bytes are', async () => {
    const receiver = await openReceiver((response) =>
      response.end(Buffer.concat([Buffer.from([0, 0xff]), Buffer.alloc(1e6, 'x')])),
    )
    const webhook = await createWebhook(owner, { url: receiver.url, ...KEYS })
    await happen(owner)
    const { status, attempts } = await afterAttempts(owner, webhook, 1)
    expect(status).toBe('delivered')
    expect(attempts[0]?.response).toBe(`\ufffd\ufffd${'x'.repeat(1022)}`)
  })

  test('C57: 429 and 503 wait at least as long as Retry-After says, and at most a day', async () => {
    for (const [code, header, pauseSeconds] of [
      [429, '3600', 3_600],
      [503, new Date(Date.now() + 7_200_000).toUTCString(), 7_200],
      [503, '999999999', 86_400],
      [500, '3600', 5],
    ] as const) {
      const receiver = await openReceiver(answers(code, { 'retry-after': header }))
      const webhook = await createWebhook(owner, { url: receiver.url, ...KEYS })
      await happen(owner)
      const { nextAttemptAt, attempts } = await afterAttempts(owner, webhook, 1)
      const pause = (nextAttemptAt ?? 0) - (attempts[0]?.at ?? 0)
      expect(pause, `${code} ${header}`).toBeGreaterThanOrEqual(pauseSeconds - 5)
      expect(pause, `${code} ${header}`).toBeLessThan(pauseSeconds + 300)
      await owner.want(204, 'DELETE', `/webhooks/${webhook.id}`)
    }
  })

  test('C58: 410 disables the webhook, with an entry in the activity log', async () => {
    const receiver = await openReceiver(answers(410))
    const webhook = await createWebhook(owner, { url: receiver.url, ...KEYS })
    await happen(owner)
    await eventually(async () => !(await getWebhook(owner, webhook)).enabled, 'the webhook to be disabled')
    expect(await getWebhook(owner, webhook)).toMatchObject({ enabled: false, disabledReason: 'gone' })
    const entries = await storeOf(server)`
      SELECT actor, target, detail FROM activity WHERE account_id = ${owner.accountId} AND action = 'webhook.disabled'`
    expect(entries).toEqual([{ actor: 'system', target: webhook.id, detail: { reason: 'gone' } }])
    await happen(owner)
    const later = await openReceiver()
    await createWebhook(owner, { url: later.url, ...KEYS })
    await happen(owner)
    await later.until(1)
    expect(receiver.received).toHaveLength(1)
  })

  test('C58: a webhook is disabled once everything has failed for five days, not before', async () => {
    const sql = storeOf(server)
    const receiver = await openReceiver(answers(500))
    const webhook = await createWebhook(owner, { url: receiver.url, ...KEYS })
    const failingFor = (days: number) =>
      sql`UPDATE webhooks SET failing_since = now() - ${days} * interval '1 day' WHERE id = ${webhook.id}`
    await happen(owner)
    await afterAttempts(owner, webhook, 1)
    expect((await getWebhook(owner, webhook)).failingSince).not.toBeNull()
    await failingFor(4.99)
    await skipPause(server, webhook)
    await afterAttempts(owner, webhook, 2)
    expect(await getWebhook(owner, webhook)).toMatchObject({ enabled: true, disabledReason: null })
    await failingFor(5)
    await skipPause(server, webhook)
    await afterAttempts(owner, webhook, 3)
    expect(await getWebhook(owner, webhook)).toMatchObject({ enabled: false, disabledReason: 'failing' })
    receiver.respond = ok
    await owner.want(200, 'PATCH', `/webhooks/${webhook.id}`, { json: { enabled: true } })
    await skipPause(server, webhook)
    expect((await afterAttempts(owner, webhook, 4)).status).toBe('delivered')
    expect(await getWebhook(owner, webhook)).toMatchObject({ enabled: true, disabledReason: null, failingSince: null })
  })
})

describe('slow receivers', () => {
  test('C57: at most four requests are open at once, and all of them succeed', async () => {
    const waiting: (() => void)[] = []
    const receiver = await openReceiver((response) => waiting.push(() => response.end()))
    const webhook = await createWebhook(owner, { url: receiver.url, ...KEYS })
    await Promise.all(Array.from({ length: 9 }, () => happen(owner)))
    await eventually(async () => (await deliveriesOf(owner, webhook)).length === 9, 'nine deliveries')
    await eventually(() => receiver.open === 4, 'four open requests')
    await storeOf(server)`SELECT pg_notify('boltyard_deliveries_due', '')`
    for (let count = 1; count <= 9; count++) {
      await eventually(() => waiting.length > 0, 'a request')
      waiting.shift()?.()
    }
    await eventually(async () => (await deliveriesOf(owner, webhook, '?status=delivered')).length === 9, 'nine successes')
    expect(receiver.mostOpen).toBe(4)
    expect(new Set(receiver.ids()).size).toBe(9)
  })

  /** Responds only after the service has given up. */
  const late: Respond = (response) => response.once('close', () => response.writeHead(200).end())
  const trickles =
    (head: string): Respond =>
    (response, { socket }) => {
      socket.write(head)
      const timer = setInterval(() => socket.write('x'), 500)
      response.once('close', () => clearInterval(timer))
    }

  test('C57: nine receivers that hang do not delay a tenth, ten do not delay another account, and each attempt ends after 15 seconds', async () => {
    const stuck = await newSubscriber(server)
    for (let count = 1; count <= 10; count++) await createWebhook(stuck, { url: (await openReceiver(hangs)).url, ...KEYS })
    const slow: Respond[] = [
      late,
      trickles('HTTP/1.1 200 OK\r\nx: '),
      trickles('HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n'),
    ]
    const hanging = await Promise.all(Array.from({ length: 9 }, (_, index) => openReceiver(slow[index] ?? hangs)))
    const webhooks = await Promise.all(hanging.map(({ url }) => createWebhook(owner, { url, ...KEYS })))
    const quick = await openReceiver()
    await createWebhook(owner, { url: quick.url, ...KEYS })
    const other = await newSubscriber(server)
    const elsewhere = await openReceiver()
    await createWebhook(other, { url: elsewhere.url, ...KEYS })
    await happen(stuck)
    for (let count = 1; count <= 6; count++) await happen(owner)
    await happen(other)
    await quick.until(6)
    await elsewhere.until(1)
    for (const receiver of hanging) expect(receiver.open).toBe(await receiver.until(1).then(() => receiver.received.length))

    const firstAttempt = (webhook: Webhook | undefined): Promise<Attempt> =>
      eventually(async () => {
        const rows = webhook && (await deliveriesOf(owner, webhook))
        return rows?.find(({ attempts }) => attempts.length > 0)?.attempts[0]
      }, 'an attempt to end')
    const [lateOne, slowHead, slowBody, silent] = webhooks
    for (const webhook of [lateOne, slowHead, silent]) {
      const attempt = await firstAttempt(webhook)
      expect(attempt).toMatchObject({ status: null, error: 'No response within 15 seconds.' })
      expect(attempt.durationMs).toBeGreaterThanOrEqual(14_900)
    }
    // The status 200 arrived in time, so it does not matter that the rest of the response did not.
    expect(await firstAttempt(slowBody)).toMatchObject({ status: 200, error: null, response: expect.stringMatching(/^x+$/) })
  })
})
