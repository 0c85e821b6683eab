import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { answers, ok, openReceiver, verified } from '../../../testing/receiver.ts'
import { storeOf } from '../support/gateway.ts'
import { Owner } from '../support/nodes.ts'
import { eventually, type Server, startServer } from '../support/server.ts'
import {
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
const URL = 'https://shop.example/hook'

let server: Server
let owner: Owner

beforeAll(async () => {
  server = await startServer({ env: { TRUST_PROXY: '1', NODE_PRICE_SAT_PER_DAY: '0' } })
})
beforeEach(async () => {
  owner = await newSubscriber(server)
})

const rotate = async (webhook: Webhook, graceSeconds: number): Promise<string> =>
  (await owner.want<{ secret: string }>(200, 'POST', `/webhooks/${webhook.id}/rotate-secret`, { json: { graceSeconds } })).secret

describe('C55: the webhooks of an account', () => {
  test('C55: the secret is shown once, has 32 bytes, and is sealed in the store', async () => {
    const created = await createWebhook(owner, { url: URL, types: ['payment.*'], description: 'Shop' })
    const { secret, ...shown } = created
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    expect(shown).toMatchObject({ url: URL, types: ['payment.*'], nodeIds: null, description: 'Shop', enabled: true })
    expect(await getWebhook(owner, created)).toEqual(shown)
    expect(await owner.want(200, 'GET', '/webhooks')).toEqual({ webhooks: [shown] })
    const [row] = await storeOf(server)<[{ text: string }]>`SELECT webhooks::text AS text FROM webhooks WHERE id = ${created.id}`
    const bytes = Buffer.from(secret.slice(6), 'base64')
    for (const spelling of [secret, bytes.toString('base64'), bytes.toString('hex')]) expect(row.text).not.toContain(spelling)
  })

  test('C55: of twelve concurrent creations ten succeed; after a deletion there is room for one', async () => {
    const results = await Promise.all(Array.from({ length: 12 }, () => owner.send('POST', '/webhooks', { json: { url: URL } })))
    expect(results.filter(({ status }) => status === 201)).toHaveLength(10)
    const [refused] = results.filter(({ status }) => status !== 201)
    expect([refused?.status, refused?.json().error.code]).toEqual([409, 'limit_reached'])
    const [first] = (await owner.want<{ webhooks: Webhook[] }>(200, 'GET', '/webhooks')).webhooks
    await owner.want(204, 'DELETE', `/webhooks/${first?.id}`)
    expect(await owner.refusal('GET', `/webhooks/${first?.id}`)).toEqual([404, 'not_found'])
    await createWebhook(owner, { url: URL })
    expect(await owner.refusal('POST', '/webhooks', { json: { url: URL } })).toEqual([409, 'limit_reached'])
  })

  test('C55: absent fields stay as they are, and null means all', async () => {
    const { secret: _, ...webhook } = await createWebhook(owner, { url: URL, types: ['payment.*'], description: 'Shop' })
    const changed = await owner.want<Webhook>(200, 'PATCH', `/webhooks/${webhook.id}`, { json: { types: null, enabled: false } })
    expect(changed).toEqual({ ...webhook, types: null, enabled: false })
    expect(await owner.refusal('PATCH', `/webhooks/${webhook.id}`, { json: {} })).toEqual([400, 'bad_request'])
  })

  test('C55: an invalid type, node, grace period or page is refused', async () => {
    const { id } = await createWebhook(owner, { url: URL })
    for (const json of [
      { url: URL, types: ['payment'] },
      { url: URL, types: [] },
      { types: ['key.*'] },
      { url: URL, secret: 'x' },
    ])
      expect(await owner.refusal('POST', '/webhooks', { json })).toEqual([400, 'bad_request'])
    for (const nodeId of ['node_00000000000000000000', 'x\0'])
      expect(await owner.refusal('POST', '/webhooks', { json: { url: URL, nodeIds: [nodeId] } })).toEqual([404, 'node_not_found'])
    const graceSeconds = 86_401
    expect(await owner.refusal('POST', `/webhooks/${id}/rotate-secret`, { json: { graceSeconds } })).toEqual([400, 'bad_request'])
    for (const query of ['?cursor=x', '?limit=101', '?status=lost'])
      expect(await owner.refusal('GET', `/webhooks/${id}/deliveries${query}`)).toEqual([400, 'bad_request'])
  })

  test('C9, C12: another account’s webhook does not exist, and a key without the scope is refused', async () => {
    const { id } = await createWebhook(owner, { url: URL })
    const stranger = await newSubscriber(server)
    const reader = new Owner(server, await server.newKey(['nodes:write', 'gateway:write', 'events:read'], owner.accountId))
    const calls: [method: string, path: string, json?: unknown][] = [
      ['GET', ''],
      ['PATCH', '', { enabled: false }],
      ['DELETE', ''],
      ['POST', '/rotate-secret', {}],
      ['POST', '/test', {}],
      ['GET', '/deliveries'],
      ['POST', '/deliveries/dlv_1/redeliver', {}],
      ['POST', '/replay', { from: 0, to: 1 }],
    ]
    for (const [method, path, json] of calls) {
      const options = json === undefined ? {} : { json }
      expect(await stranger.refusal(method, `/webhooks/${id}${path}`, options)).toEqual([404, 'not_found'])
      expect(await owner.refusal(method, `/webhooks/hook_${'0'.repeat(20)}${path}`, options)).toEqual([404, 'not_found'])
      expect(await owner.refusal(method, `/webhooks/%00${path}`, options)).toEqual([404, 'not_found'])
      expect(await reader.refusal(method, `/webhooks/${id}${path}`, options)).toEqual([401, 'unauthorized'])
    }
    for (const method of ['GET', 'POST']) expect(await reader.refusal(method, '/webhooks')).toEqual([401, 'unauthorized'])
    expect(await getWebhook(owner, { id })).toMatchObject({ enabled: true })
  })

  test('C56: with nodeIds, only events of those nodes', async () => {
    const merchant = new Owner(server, await server.newKey(['nodes:write', 'webhooks:write']))
    const [wanted, other] = [await merchant.createReady(), await merchant.createReady()]
    const receiver = await openReceiver()
    await createWebhook(merchant, { url: receiver.url, nodeIds: [wanted.node.id] })
    for (const action of ['stop', 'start'] as const) for (const { node } of [other, wanted]) await merchant.act(node.id, action)
    const received = await receiver.until(2)
    expect(received.map(({ body }) => JSON.parse(body)).map(({ type, data }) => [type, data.nodeId])).toEqual([
      ['node.stopped', wanted.node.id],
      ['node.ready', wanted.node.id],
    ])
  })
})

describe('C59: secrets', () => {
  test('C59: during the grace period both secrets sign, afterwards only the new one', async () => {
    const receiver = await openReceiver()
    const webhook = await createWebhook(owner, { url: receiver.url, ...KEYS })
    const next = await rotate(webhook, 3600)
    expect(next).not.toBe(webhook.secret)
    await happen(owner)
    const [both] = await receiver.until(1)
    for (const secret of [webhook.secret, next]) if (both) verified(secret, both)
    await storeOf(server)`UPDATE webhooks SET previous_until = now() WHERE id = ${webhook.id}`
    await happen(owner)
    const [, single] = await receiver.until(2)
    if (single) verified(next, single)
    expect(() => single && verified(webhook.secret, single)).toThrow('No matching signature')
  })

  test('security: a secret that still needs the previous master key counts in the operator’s statistics', async () => {
    const { id } = await createWebhook(owner, { url: URL })
    const underPreviousKey = async (): Promise<number> => (await server.operator('GET', '/stats')).json().rowsUnderPreviousKey
    expect(await underPreviousKey()).toBe(0)
    await storeOf(server)`UPDATE webhooks SET key_id = 'previous' WHERE id = ${id}`
    expect(await underPreviousKey()).toBe(1)
    await storeOf(server)`DELETE FROM webhooks WHERE id = ${id}`
  })

  test('C59: an attempt that was outstanding is signed with the new secret, and has the same body', async () => {
    const receiver = await openReceiver(answers(500))
    const webhook = await createWebhook(owner, { url: receiver.url, ...KEYS })
    await happen(owner)
    await afterAttempts(owner, webhook, 1)
    const next = await rotate(webhook, 0)
    receiver.respond = ok
    await skipPause(server, webhook)
    const [before, after] = await receiver.until(2)
    if (before) verified(webhook.secret, before)
    if (after) verified(next, after)
    expect(() => after && verified(webhook.secret, after)).toThrow('No matching signature')
    expect(after?.body).toBe(before?.body)
  })
})

describe('C57: deletion', () => {
  test('C57: after a deletion no attempt begins, and everything about the webhook is removed', async () => {
    const receiver = await openReceiver(answers(500))
    const webhook = await createWebhook(owner, { url: receiver.url, ...KEYS })
    await happen(owner)
    await afterAttempts(owner, webhook, 1)
    await owner.want(204, 'DELETE', `/webhooks/${webhook.id}`)
    await skipPause(server, webhook)
    const other = await openReceiver()
    await createWebhook(owner, { url: other.url, ...KEYS })
    await happen(owner)
    await other.until(1)
    expect(receiver.received).toHaveLength(1)
    const [row] = await storeOf(server)`SELECT length(secret) AS bytes, previous_secret FROM webhooks WHERE id = ${webhook.id}`
    expect(row).toEqual({ bytes: 0, previous_secret: null })
  })
})

describe('C60: sending again', () => {
  test('C60: a sample is sent at once, is marked, and is not a delivery', async () => {
    const receiver = await openReceiver((response) => response.writeHead(418).end('x'.repeat(3000)))
    const webhook = await createWebhook(owner, { url: receiver.url })
    const result = await owner.want<{ durationMs: number }>(200, 'POST', `/webhooks/${webhook.id}/test`, {
      json: { type: 'node.ready' },
    })
    expect(result).toEqual({
      status: 418,
      response: 'x'.repeat(1024),
      durationMs: result.durationMs,
      error: 'The response was 418.',
    })
    const [request] = receiver.received
    expect(request && verified(webhook.secret, request)).toMatchObject({
      type: 'node.ready',
      test: true,
      accountId: owner.accountId,
    })
    expect(await deliveriesOf(owner, webhook)).toEqual([])
    expect(await getWebhook(owner, webhook)).toMatchObject({ enabled: true, failingSince: null })
  })

  test('C60: a delivery can be sent again, also after it arrived, with the same id and body', async () => {
    const receiver = await openReceiver()
    const webhook = await createWebhook(owner, { url: receiver.url, ...KEYS })
    await happen(owner)
    const { id } = await afterAttempts(owner, webhook, 1)
    const again = await owner.want(202, 'POST', `/webhooks/${webhook.id}/deliveries/${id}/redeliver`)
    expect(again).toMatchObject({ id, status: 'pending' })
    const [first, second] = await receiver.until(2)
    expect(second?.body).toBe(first?.body)
    expect(new Set(receiver.ids()).size).toBe(1)
    expect((await afterAttempts(owner, webhook, 2)).status).toBe('delivered')
    for (const deliveryId of ['dlv_999', 'dlv_0', 'x', 'dlv_9999999999999999'])
      expect(await owner.refusal('POST', `/webhooks/${webhook.id}/deliveries/${deliveryId}/redeliver`)).toEqual([
        404,
        'not_found',
      ])
  })

  test('C60: a replay keeps the ids, and includes what happened before the webhook existed', async () => {
    const keyIds = [await happen(owner), await happen(owner)]
    const receiver = await openReceiver()
    const webhook = await createWebhook(owner, { url: receiver.url, ...KEYS })
    const { events } = await eventually(async () => {
      const page = await owner.want<{ events: { id: string; data: { keyId: string } }[] }>(200, 'GET', '/events')
      return page.events.length === 3 ? page : undefined
    }, 'three events')
    const replay = (json: Record<string, unknown>) => owner.want(202, 'POST', `/webhooks/${webhook.id}/replay`, { json })
    const [from, to] = [0, 99_999_999_999]
    expect(await replay({ from, to: 1 })).toEqual({ count: 0 })
    expect(await replay({ from, to, types: ['payment.*'] })).toEqual({ count: 0 })
    expect(await replay({ from, to, types: ['key.*'] })).toEqual({ count: 3 })
    const wanted = events.map(({ id }) => id).sort()
    await eventually(() => wanted.every((id) => receiver.ids().includes(id)), 'each event')
    const bodies = new Map(receiver.received.map(({ headers, body }) => [headers['webhook-id'], body]))
    await eventually(async () => (await deliveriesOf(owner, webhook, '?status=delivered')).length === 3, 'three successes')
    const before = receiver.received.length
    expect(await replay({ from, to })).toEqual({ count: 3 })
    await receiver.until(before + 3)
    for (const { headers, body } of receiver.received) expect(bodies.get(headers['webhook-id'])).toBe(body)
    expect([...bodies.values()].map((body) => JSON.parse(body).data.keyId)).toEqual(expect.arrayContaining(keyIds))
  })

  test('C60: deliveries are listed newest first, in pages', async () => {
    const receiver = await openReceiver()
    const webhook = await createWebhook(owner, { url: receiver.url, ...KEYS })
    for (let count = 1; count <= 3; count++) await happen(owner)
    await receiver.until(3)
    const all = await eventually(async () => {
      const found = await deliveriesOf(owner, webhook, '?status=delivered')
      return found.length === 3 ? found : undefined
    }, 'three successes')
    type Page = { deliveries: unknown[]; nextCursor: string | null }
    const page = (query: string) => owner.want<Page>(200, 'GET', `/webhooks/${webhook.id}/deliveries?limit=2${query}`)
    const first = await page('')
    expect(first.deliveries).toEqual(all.slice(0, 2))
    expect(await page(`&cursor=${first.nextCursor}`)).toEqual({ deliveries: all.slice(2), nextCursor: null })
    expect(all.map(({ id }) => Number(id.slice(4)))).toEqual(all.map(({ id }) => Number(id.slice(4))).sort((a, b) => b - a))
  })
})
