import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook as Verifier } from 'standardwebhooks'
import { afterAll } from 'vitest'
import { storeOf } from '../support/gateway.ts'
import { Owner } from '../support/nodes.ts'
import { eventually, type Server } from '../support/server.ts'

/** The HTTP server of a webhook's owner. */

export type Received = { headers: IncomingHttpHeaders; body: string; path: string }
export type SentEvent = { id: string; type: string; accountId: string; createdAt: number; data: Record<string, unknown> }
type Respond = (response: ServerResponse, request: IncomingMessage, nth: number) => void

const closing: (() => void)[] = []
afterAll(() => {
  for (const close of closing.splice(0)) close()
})

export class Receiver {
  readonly received: Received[] = []
  /** How many requests it is responding to, now and at most so far. */
  open = 0
  mostOpen = 0
  url = ''
  respond: Respond

  constructor(respond: Respond) {
    this.respond = respond
  }

  async listen(): Promise<this> {
    const server = createServer(async (request, response) => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      this.received.push({ headers: request.headers, body: Buffer.concat(chunks).toString(), path: request.url ?? '' })
      this.mostOpen = Math.max(this.mostOpen, ++this.open)
      response.once('close', () => this.open--)
      this.respond(response, request, this.received.length)
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    closing.push(() => {
      server.close()
      server.closeAllConnections()
    })
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`
    return this
  }

  ids(): string[] {
    return this.received.map(({ headers }) => String(headers['webhook-id']))
  }

  async until(count: number): Promise<Received[]> {
    await eventually(() => this.received.length >= count, `${count} requests to the receiver, which got ${this.received.length}`)
    return this.received
  }
}

export const ok: Respond = (response) => response.end('thank you')
export const answers =
  (status: number, headers: Record<string, string> = {}): Respond =>
  (response) =>
    response.writeHead(status, headers).end(`status ${status}`)
export const hangs: Respond = () => undefined

export const openReceiver = (respond: Respond = ok): Promise<Receiver> => new Receiver(respond).listen()

/** Throws unless the request is signed with this secret, as the library of Standard Webhooks sees it. */
export function verified(secret: string, { headers, body }: Received): SentEvent {
  return new Verifier(secret).verify(body, headers as Record<string, string>) as SentEvent
}

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
