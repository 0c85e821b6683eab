import type { ServerResponse } from 'node:http'
import { beforeAll, expect, test } from 'vitest'
import { ok, openReceiver, verified } from '../../../testing/receiver.ts'
import { createWebhook, deliveriesOf, happen, newSubscriber } from '../events/subscriber.ts'
import { CrashingYard } from '../support/crash-matrix.ts'
import { eventually } from '../support/server.ts'

/** Reliability 1 for webhooks: if the service dies during an attempt, the next process repeats the attempt. */

let yard: CrashingYard
beforeAll(async () => {
  yard = await new CrashingYard({ store: 'embedded', env: { TRUST_PROXY: '1' } }).start()
})

test.each([
  ['webhook: claimed', 0],
  ['webhook: sent', 1],
])('C56: if the service dies at "%s", the event is delivered again with the same id and body', async (point, sentBefore) => {
  const owner = await newSubscriber(yard)
  const receiver = await openReceiver()
  const webhook = await createWebhook(owner, { url: receiver.url, types: ['key.created'] })
  yard.arm(point)
  const sql = yard.sql()
  // The test writes the event directly, because the service may die before it responds to a request.
  await sql`INSERT INTO activity (account_id, actor, action, target) VALUES (${owner.accountId}, 'test', 'key.created', 'key_1')`
  await yard.died(point)
  expect(receiver.received).toHaveLength(sentBefore)
  const [lease] = await sql<{ isHeld: boolean }[]>`
    UPDATE webhook_deliveries SET lease_until = now() WHERE webhook_id = ${webhook.id} AND lease_until IS NOT NULL
    RETURNING old.lease_until > now() AS "isHeld"`
  expect(lease?.isHeld).toBe(true)
  await sql.end()
  await yard.start()
  await eventually(async () => (await deliveriesOf(owner, webhook, '?status=delivered')).length === 1, 'the delivery')
  expect(receiver.received).toHaveLength(sentBefore + 1)
  expect(new Set(receiver.ids()).size).toBe(1)
  expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1)
  for (const request of receiver.received) verified(webhook.secret, request)
})

test('C53, C56: if PostgreSQL dies while a request is open, that event and later ones still arrive', async () => {
  const owner = await newSubscriber(yard)
  const waiting: ServerResponse[] = []
  const receiver = await openReceiver((response) => waiting.push(response))
  const webhook = await createWebhook(owner, { url: receiver.url, types: ['key.created'] })
  const first = await happen(owner)
  await receiver.until(1)
  const { giveBack } = await yard.takeStoreAway()
  receiver.respond = ok
  waiting.shift()?.end()
  giveBack()
  await eventually(() => deliveriesOf(owner, webhook), 'the service to work again')
  const second = await happen(owner)
  const sql = yard.sql()
  // If the result of the first attempt could not be recorded, its lease must end before the event is sent again.
  await sql`UPDATE webhook_deliveries SET lease_until = now() WHERE webhook_id = ${webhook.id} AND lease_until IS NOT NULL`
  const isDelivered = async () => (await deliveriesOf(owner, webhook, '?status=delivered')).length === 2
  await eventually(isDelivered, 'both deliveries')
  await sql.end()
  const bodies = new Set(receiver.received.map(({ body }) => body))
  expect([...bodies].map((body) => JSON.parse(body).data.keyId).sort()).toEqual([first, second].sort())
})
