import { randomUUID } from 'node:crypto'
import type { EventType } from '../../../../contract/src/events.ts'
import {
  type ChangeWebhookParams,
  type CreateWebhookParams,
  DEFAULT_DELIVERY_PAGE_SIZE,
  MOST_WEBHOOKS,
} from '../../../../contract/src/webhooks.ts'
import { isId, newId } from '../../platform/ids.ts'
import type { MasterKey } from '../../platform/secrets.ts'
import { badCursor, noSuchNode, Problem } from '../../problems.ts'
import type { Database } from '../../store/db.ts'
import { type DeliveryRow, type DeliveryStatus, listDeliveries, redeliver, replay } from '../../store/events/deliveries.ts'
import {
  changeWebhook,
  deleteWebhook,
  findTarget,
  findWebhook,
  insertWebhook,
  listWebhooks,
  replaceSecret,
  type WebhookView,
} from '../../store/events/webhooks.ts'
import { hasNodes } from '../../store/nodes/nodes.ts'
import { type AddressGuard, AddressRefused } from './address-guard.ts'
import { requestOf } from './request.ts'
import { sampleOf } from './sample.ts'
import { type Result, sendOnce } from './sender.ts'
import { newSecret, openSecret, sealSecret, secretText } from './signing.ts'

export type { WebhookView }

/** Who is calling, and for which account. */
type Call = { accountId: string; actor: string }
export type DeliveryView = Omit<DeliveryRow, 'seq'> & { id: string }
export type TestResult = Pick<Result, 'status' | 'durationMs' | 'response' | 'error'>

const MOST_REPLAYED = 100_000

export type WebhooksOptions = { sql: Database; masterKeys: readonly [MasterKey, ...MasterKey[]]; guard: AddressGuard }

/** Where an account's events are sent. */
export class Webhooks {
  readonly #options: WebhooksOptions

  constructor(options: WebhooksOptions) {
    this.#options = options
  }

  async create({ accountId, actor }: Call, params: CreateWebhookParams): Promise<WebhookView & { secret: string }> {
    const { sql, masterKeys } = this.#options
    const { url, types = null, nodeIds = null, description = null } = params
    await this.#check(accountId, params)
    const id = newId('hook')
    const secret = newSecret()
    const sealed = sealSecret(masterKeys[0], { accountId, webhookId: id }, secret)
    const webhook = await insertWebhook(sql, { id, accountId, actor, url, types, nodeIds, description, ...sealed }, MOST_WEBHOOKS)
    if (webhook === 'limit reached')
      throw new Problem('limit_reached', `An account can have at most ${MOST_WEBHOOKS} webhooks. Delete one first.`)
    return { ...webhook, secret: secretText(secret) }
  }

  list({ accountId }: Call): Promise<WebhookView[]> {
    return listWebhooks(this.#options.sql, accountId)
  }

  async get({ accountId }: Call, id: string): Promise<WebhookView> {
    return found(isId('hook', id) && (await findWebhook(this.#options.sql, accountId, id)))
  }

  async change(call: Call, id: string, params: ChangeWebhookParams): Promise<WebhookView> {
    await this.get(call, id)
    await this.#check(call.accountId, params)
    return found(await changeWebhook(this.#options.sql, { ...call, id }, params))
  }

  async delete(call: Call, id: string): Promise<void> {
    found(isId('hook', id) && (await deleteWebhook(this.#options.sql, { ...call, id })))
  }

  async rotateSecret(call: Call, id: string, graceSeconds: number): Promise<{ secret: string }> {
    const { sql, masterKeys } = this.#options
    await this.get(call, id)
    const ids = { accountId: call.accountId, webhookId: id }
    const secret = newSecret()
    const isReplaced = await replaceSecret(sql, { ...call, id }, graceSeconds, (current) => ({
      ...sealSecret(masterKeys[0], ids, secret),
      previousSecret: sealSecret(masterKeys[0], ids, openSecret(masterKeys, ids, current)).secret,
    }))
    found(isReplaced)
    return { secret: secretText(secret) }
  }

  /** One request, made by this process while the caller waits. */
  async test({ accountId }: Call, id: string, type: EventType = 'payment.settled'): Promise<TestResult> {
    const { sql, masterKeys, guard } = this.#options
    const target = found(isId('hook', id) && (await findTarget(sql, accountId, id)))
    const event = {
      id: `evt_${randomUUID().replaceAll('-', '')}`,
      type,
      createdAt: target.nowSeconds,
      accountId,
      data: JSON.stringify(sampleOf(type)),
      isTest: true as const,
    }
    const sent = requestOf(masterKeys, { ...target, webhookId: id }, event)
    const { status, durationMs, response, error } = await sendOnce(guard, sent, new AbortController().signal)
    return { status, durationMs, response, error }
  }

  async deliveries(
    call: Call,
    id: string,
    { status, cursor, limit = DEFAULT_DELIVERY_PAGE_SIZE }: { status?: DeliveryStatus; cursor?: string; limit?: number },
  ): Promise<{ deliveries: DeliveryView[]; nextCursor: string | null }> {
    await this.get(call, id)
    const before = cursor === undefined ? undefined : seqIn(cursor)
    if (cursor !== undefined && before === undefined) throw badCursor()
    // One extra row shows whether there is a next page.
    const rows = await listDeliveries(this.#options.sql, idsOf(call, id), { status, before, limit: limit + 1 })
    const deliveries = rows.slice(0, limit).map(viewOf)
    return { deliveries, nextCursor: rows.length > limit ? (deliveries.at(-1)?.id ?? null) : null }
  }

  async redeliver(call: Call, id: string, deliveryId: string): Promise<DeliveryView> {
    await this.get(call, id)
    const seq = seqIn(deliveryId)
    const row = seq === undefined ? undefined : await redeliver(this.#options.sql, idsOf(call, id), seq)
    if (!row) throw new Problem('not_found', 'There is no such delivery.')
    return viewOf(row)
  }

  async replay(call: Call, id: string, params: { from: number; to: number; types?: string[] }): Promise<{ count: number }> {
    await this.get(call, id)
    const { from, to, types = null } = params
    const count = await replay(this.#options.sql, idsOf(call, id), { from, to, types }, MOST_REPLAYED)
    if (count === 'too many')
      throw new Problem('limit_reached', `More than ${MOST_REPLAYED} events match. Choose a shorter period, or fewer types.`)
    return { count }
  }

  async #check(accountId: string, { url, nodeIds }: { url?: string; nodeIds?: string[] | null }): Promise<void> {
    try {
      if (url !== undefined) this.#options.guard.checkUrl(url)
    } catch (error) {
      if (error instanceof AddressRefused) throw new Problem('bad_request', `The field "url" is invalid. ${error.message}`)
      throw error
    }
    if (!nodeIds) return
    const areIds = nodeIds.every((nodeId) => isId('node', nodeId))
    if (!areIds || !(await hasNodes(this.#options.sql, accountId, nodeIds))) throw noSuchNode()
  }
}

/** Gives the same answer for another account's webhook, a deleted one and an unknown id. */
function found<T>(webhook: T | false | undefined): T {
  if (webhook === false || webhook === undefined) throw new Problem('not_found', 'There is no such webhook.')
  return webhook
}

const idsOf = ({ accountId }: Call, webhookId: string) => ({ accountId, webhookId })

const viewOf = ({ seq, ...row }: DeliveryRow): DeliveryView => ({ id: `dlv_${seq}`, ...row })

function seqIn(deliveryId: string): number | undefined {
  const [, digits] = /^dlv_([1-9]\d{0,14})$/.exec(deliveryId) ?? []
  return digits === undefined ? undefined : Number(digits)
}
