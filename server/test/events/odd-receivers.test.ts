import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { hangs, inTurn, ok, openReceiver, type Receiver, verified } from '../../../testing/receiver.ts'
import { storeOf } from '../support/gateway.ts'
import type { Owner } from '../support/nodes.ts'
import { eventually, type Server, startServer } from '../support/server.ts'
import { afterAttempts, createWebhook, deliveriesOf, happen, newSubscriber, type Webhook } from './subscriber.ts'

/** Receivers that break HTTP, and what happens to a webhook while a request to it is open. */

const KEYS = { types: ['key.created'] }

let server: Server
let owner: Owner

beforeAll(async () => {
  server = await startServer({ env: { TRUST_PROXY: '1', NODE_PRICE_SAT_PER_DAY: '0' } })
})
beforeEach(async () => {
  owner = await newSubscriber(server)
})

describe('C57: a receiver that breaks HTTP', () => {
  let says = ''
  const liar = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => socket.end(says))
  })
  let url: string
  beforeAll(async () => {
    await once(liar.listen(0, '127.0.0.1'), 'listening')
    url = `http://127.0.0.1:${(liar.address() as AddressInfo).port}/`
  })
  afterAll(() => {
    liar.close()
  })

  const head = (...lines: string[]): string => ['HTTP/1.1 200 OK', ...lines, '', ''].join('\r\n')

  test('C57: without a response that can be read, the attempt fails', async () => {
    const { id } = await createWebhook(owner, { url })
    const unreadable = [
      '',
      'hello\r\n\r\n',
      'HTTP/1.1 200 OK\r\n',
      `${head('content-length: 2', 'content-length: 3')}ok`,
      `${head('content-length: 2', 'transfer-encoding: chunked')}2\r\nok\r\n0\r\n\r\n`,
      head(`x: ${'x'.repeat(100_000)}`),
      'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n',
    ]
    for (const bytes of unreadable) {
      says = bytes
      const result = await owner.want(200, 'POST', `/webhooks/${id}/test`, { json: {} })
      const error = expect.stringMatching(/^The connection failed( \(\w+\))?\.$/)
      expect(result, bytes.slice(0, 100)).toMatchObject({ status: null, response: null, error })
    }
  })

  test('C57: the status decides, whatever the length and the body claim', async () => {
    const { id } = await createWebhook(owner, { url })
    const readable: [bytes: string, status: number, response: string][] = [
      [`${head('content-length: 2')}ok and more`, 200, 'ok'],
      [`${head('content-length: 1000')}ok`, 200, 'ok'],
      [`${head('transfer-encoding: chunked')}nonsense`, 200, ''],
      [`${head('content-encoding: gzip', 'content-length: 2')}ok`, 200, 'ok'],
      ['HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n', 204, ''],
      ['HTTP/1.0 200 OK\r\n\r\nok', 200, 'ok'],
      ['HTTP/1.1 999 ?\r\ncontent-length: 0\r\n\r\n', 999, ''],
    ]
    for (const [bytes, status, response] of readable) {
      says = bytes
      const error = status < 300 ? null : `The response was ${status}.`
      const result = await owner.want(200, 'POST', `/webhooks/${id}/test`, { json: {} })
      expect(result, bytes).toMatchObject({ status, response, error })
    }
  })

  test('C57: a 101 that was not requested ends the attempt, and leaves nothing open', async () => {
    says = 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'
    const webhook = await createWebhook(owner, { url, ...KEYS })
    await happen(owner)
    const { status, attempts } = await afterAttempts(owner, webhook, 1)
    expect([status, attempts[0]?.error]).toEqual(['pending', 'The connection failed.'])
  })
})

/** A receiver that responds when the test says so. */
async function openPatient(): Promise<{ receiver: Receiver; waiting: ServerResponse[] }> {
  const waiting: ServerResponse[] = []
  return { receiver: await openReceiver((response) => waiting.push(response)), waiting }
}

/** Waits until a later event arrives: by then, every attempt that was due before it has been made. */
async function laterEventArrives(): Promise<void> {
  const later = await openReceiver()
  await createWebhook(owner, { url: later.url, ...KEYS })
  await happen(owner)
  await later.until(1)
}

describe('while a request is open', () => {
  const respond = (waiting: ServerResponse[], status: number): void => {
    waiting.shift()?.writeHead(status).end()
  }

  test.each([500, 410, 200])('C57: a webhook that is deleted gets no other attempt after a %i', async (status) => {
    const { receiver, waiting } = await openPatient()
    const webhook = await createWebhook(owner, { url: receiver.url, ...KEYS })
    await happen(owner)
    await receiver.until(1)
    await owner.want(204, 'DELETE', `/webhooks/${webhook.id}`)
    respond(waiting, status)
    const sql = storeOf(server)
    await eventually(async () => {
      const [open] = await sql`SELECT 1 FROM webhook_deliveries WHERE webhook_id = ${webhook.id} AND lease_until IS NOT NULL`
      return !open
    }, 'the attempt to end')
    await sql`UPDATE webhook_deliveries SET next_at = now() WHERE webhook_id = ${webhook.id} AND next_at IS NOT NULL`
    await laterEventArrives()
    expect(receiver.received).toHaveLength(1)
    const log = await sql`SELECT action FROM activity WHERE target = ${webhook.id} ORDER BY id`
    expect(log.map(({ action }) => action)).toEqual(['webhook.created', 'webhook.deleted'])
  })

  test('C59: a secret that is rotated signs the next attempt; the open one may still succeed', async () => {
    const { receiver, waiting } = await openPatient()
    const webhook = await createWebhook(owner, { url: receiver.url, ...KEYS })
    await happen(owner)
    await receiver.until(1)
    const { secret } = await owner.want<Webhook>(200, 'POST', `/webhooks/${webhook.id}/rotate-secret`, {
      json: { graceSeconds: 0 },
    })
    respond(waiting, 204)
    expect((await afterAttempts(owner, webhook, 1)).status).toBe('delivered')
    receiver.respond = ok
    await happen(owner)
    const [before, after] = await receiver.until(2)
    if (before) verified(webhook.secret, before)
    if (after) verified(secret, after)
  })

  test('C60: a delivery that is sent again starts over, and the open attempt no longer counts', async () => {
    const { receiver, waiting } = await openPatient()
    const webhook = await createWebhook(owner, { url: receiver.url, ...KEYS })
    await happen(owner)
    await receiver.until(1)
    const [delivery] = await deliveriesOf(owner, webhook)
    await owner.want(202, 'POST', `/webhooks/${webhook.id}/deliveries/${delivery?.id}/redeliver`)
    await receiver.until(2)
    respond(waiting, 410)
    respond(waiting, 204)
    const { status, attempts } = await afterAttempts(owner, webhook, 1)
    expect([status, attempts[0]?.status]).toEqual(['delivered', 204])
    await laterEventArrives()
    expect(await owner.want(200, 'GET', `/webhooks/${webhook.id}`)).toMatchObject({ enabled: true })
  })
})

describe('while the service stops', () => {
  test('C56: an open request that is answered counts; one that is not is made again after the next start', async () => {
    const { receiver, waiting } = await openPatient()
    const silent = await openReceiver(inTurn(hangs))
    const answered = await createWebhook(owner, { url: receiver.url, ...KEYS })
    const cut = await createWebhook(owner, { url: silent.url, ...KEYS })
    await happen(owner)
    await receiver.until(1)
    await silent.until(1)
    const stopped = server.stop()
    waiting.shift()?.end()
    await stopped
    const sql = server.sql()
    const statuses = await sql`
      SELECT webhook_id, status, lease_until IS NOT NULL AS "isLeased" FROM webhook_deliveries
      WHERE webhook_id IN (${answered.id}, ${cut.id}) ORDER BY status`
    expect(statuses).toEqual([
      { webhook_id: answered.id, status: 'delivered', isLeased: false },
      { webhook_id: cut.id, status: 'pending', isLeased: true },
    ])
    await sql`UPDATE webhook_deliveries SET lease_until = now() WHERE webhook_id = ${cut.id}`
    await server.start()
    expect((await afterAttempts(owner, cut, 1)).status).toBe('delivered')
    expect(new Set(silent.received.map(({ body }) => body)).size).toBe(1)
    expect(silent.received).toHaveLength(2)
    expect(receiver.received).toHaveLength(1)
  })
})
