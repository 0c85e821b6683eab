import { storeOf } from '../support/gateway.ts'
import { Owner } from '../support/nodes.ts'
import { eventually, type Server } from '../support/server.ts'

/** Helpers for tests of webhooks: an account that has some, and its requests to the service. */

export type Webhook = {
  id: string
  url: string
  secret: string
  types: string[] | null
  nodeIds: string[] | null
  enabled: boolean
  disabledReason: string | null
  lastSuccessAt: number | null
  failingSince: number | null
}
export type Attempt = { at: number; status: number | null; durationMs: number; response: string | null; error: string | null }
export type Delivery = {
  id: string
  eventId: string
  type: string
  status: string
  nextAttemptAt: number | null
  attempts: Attempt[]
}

export const createWebhook = (owner: Owner, json: Record<string, unknown>): Promise<Webhook> =>
  owner.want<Webhook>(201, 'POST', '/webhooks', { json })

export const getWebhook = (owner: Owner, { id }: { id: string }): Promise<Webhook> => owner.want(200, 'GET', `/webhooks/${id}`)

export async function deliveriesOf(owner: Owner, { id }: { id: string }, query = ''): Promise<Delivery[]> {
  return (await owner.want<{ deliveries: Delivery[] }>(200, 'GET', `/webhooks/${id}/deliveries${query}`)).deliveries
}

/** The only delivery, once it has this many attempts. */
export function afterAttempts(owner: Owner, webhook: { id: string }, count: number): Promise<Delivery> {
  return eventually(async () => {
    const [delivery] = await deliveriesOf(owner, webhook)
    return delivery?.attempts.length === count ? delivery : undefined
  }, `${count} attempts`)
}

/** A new account, whose first event is in the feed already, so that no webhook gets it. */
export async function newSubscriber(server: Server): Promise<Owner> {
  const owner = new Owner(server, await server.newKey(['webhooks:write', 'events:read']))
  await eventually(
    async () => (await owner.want<{ events: unknown[] }>(200, 'GET', '/events')).events.length > 0,
    'the first event',
  )
  return owner
}

/** Writes an event of the account, `key.created`, and returns the id of the key. */
export const happen = async (owner: Owner): Promise<string> => (await owner.server.newKey([], owner.accountId)).id

/** Makes every attempt that is scheduled for later due now. */
export async function skipPause(server: Server, { id }: { id: string }): Promise<void> {
  const sql = storeOf(server)
  await sql`UPDATE webhook_deliveries SET next_at = now() WHERE webhook_id = ${id} AND next_at > now()`
  await sql`SELECT pg_notify('boltyard_deliveries_due', '')`
}
