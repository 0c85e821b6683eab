import type { ServerResponse } from 'node:http'
import { beforeAll, expect, test } from 'vitest'
import { openReceiver, type Receiver, verified } from '../../../testing/receiver.ts'
import type { Database } from '../../src/store/db.ts'
import { DELIVERIES_DUE } from '../../src/store/events/webhooks.ts'
import { createWebhook, deliveriesOf, happen, newSubscriber, type Webhook } from '../events/subscriber.ts'
import type { Owner } from '../support/nodes.ts'
import { eventually, PROCESS, type Server, startServer } from '../support/server.ts'

/** Two services on one database send to the same receivers. */

const AT_ONCE = 4

let first: Server
let second: Server
let owner: Owner
let sql: Database

beforeAll(async () => {
  const env = { TRUST_PROXY: '1', NODE_PRICE_SAT_PER_DAY: '0' }
  first = await startServer({ command: PROCESS, env })
  const shared = { ...first.sharedStoreEnv, ROLE: 'api', NODE_CALLBACK_URL: first.url }
  second = await startServer({ command: PROCESS, dataDir: first.dataDir, env: { ...env, ...shared } })
  sql = first.sql()
  owner = await newSubscriber(first)
})

/** A receiver that responds when the test says so, and its webhook. */
async function openPatient(): Promise<{ receiver: Receiver; webhook: Webhook; waiting: Set<ServerResponse> }> {
  const waiting = new Set<ServerResponse>()
  const receiver = await openReceiver((response) => {
    waiting.add(response)
    response.once('close', () => waiting.delete(response))
  })
  return { receiver, webhook: await createWebhook(owner, { url: receiver.url, types: ['key.disabled'] }), waiting }
}

/** Written directly to the database, because a paused process would not answer a request. */
const eventsHappen = (count: number) => sql`
  INSERT INTO activity (account_id, actor, action, target)
  SELECT ${owner.accountId}, 'test', 'key.disabled', 'key_' || n FROM generate_series(1, ${count}) n`

const hasDelivered = (webhook: Webhook, count: number): Promise<boolean> =>
  eventually(
    async () => (await deliveriesOf(owner, webhook, '?status=delivered&limit=100')).length === count,
    `${count} deliveries`,
  )

test('C56: if a process is killed with open requests, the other sends them again, and repeats none of its own', async () => {
  // While the requests of one process begin, the other is paused, so that each process has open requests.
  second.child.kill('SIGSTOP')
  const killed = await openPatient()
  await eventsHappen(AT_ONCE)
  await killed.receiver.until(AT_ONCE)
  await owner.want(200, 'PATCH', `/webhooks/${killed.webhook.id}`, { json: { types: ['key.revoked'] } })
  const kept = await openPatient()
  first.child.kill('SIGSTOP')
  second.child.kill('SIGCONT')
  await eventsHappen(AT_ONCE)
  await kept.receiver.until(AT_ONCE)

  await first.kill('SIGKILL')
  await eventually(() => killed.waiting.size === 0, 'the killed process’s connections to close')
  expect(kept.waiting.size).toBe(AT_ONCE)
  for (const response of kept.waiting) response.end()
  const leases = await sql`
    UPDATE webhook_deliveries SET lease_until = now() WHERE webhook_id = ${killed.webhook.id} AND lease_until > now() RETURNING 1`
  expect(leases, 'nobody else may send them before their leases end').toHaveLength(AT_ONCE)
  await sql`SELECT pg_notify(${DELIVERIES_DUE}, '')`
  await killed.receiver.until(2 * AT_ONCE)
  for (const response of killed.waiting) response.end()

  await first.start()
  await hasDelivered(killed.webhook, AT_ONCE)
  await hasDelivered(kept.webhook, AT_ONCE)
  const ids = killed.receiver.ids()
  expect(ids.slice(AT_ONCE).sort()).toEqual(ids.slice(0, AT_ONCE).sort())
  expect(new Set(killed.receiver.received.map(({ body }) => body)).size).toBe(AT_ONCE)
  for (const request of killed.receiver.received) verified(killed.webhook.secret, request)
  expect(killed.receiver.received).toHaveLength(2 * AT_ONCE)
  expect(kept.receiver.received).toHaveLength(AT_ONCE)
})

test('C56, C57: while both run, no event is sent twice, and at most four requests to a webhook are open', async () => {
  const events = 40
  const receivers = await Promise.all([1, 2, 3].map(() => openReceiver((response) => setTimeout(() => response.end(), 5))))
  const webhooks = await Promise.all(receivers.map(({ url }) => createWebhook(owner, { url, types: ['key.created'] })))
  for (let count = 1; count <= events; count++) await happen(owner)
  for (const webhook of webhooks) await hasDelivered(webhook, events)
  for (const receiver of receivers) {
    expect(receiver.received).toHaveLength(events)
    expect(new Set(receiver.ids()).size).toBe(events)
    expect(receiver.mostOpen).toBeLessThanOrEqual(AT_ONCE)
  }
})
