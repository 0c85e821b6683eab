import { type Static, type TProperties, Type } from 'typebox'
import { EVENT_TYPES } from './events.ts'
import { operation } from './operation.ts'
import { READABLE_OR_EMPTY } from './readable-text.ts'
import { count, flag, NextCursor, NoParams, named, nullable, strict, text, timestamp } from './schemas.ts'

export const MOST_WEBHOOKS = 10
export const MOST_GRACE_SECONDS = 86_400
export const DEFAULT_DELIVERY_PAGE_SIZE = 50

const EVENT_GROUPS = ['payment.*', 'node.*', 'credit.*', 'key.*'] as const
export const EventFilter = Type.Enum([...EVENT_TYPES, ...EVENT_GROUPS], {
  $id: 'EventFilter',
  description: 'A type of events, or all types of a group: `payment.*`.',
})
export type EventFilter = Static<typeof EventFilter>
export const SampleType = Type.Enum([...EVENT_TYPES], { $id: 'SampleType', description: 'The type of a sample.' })
export const DeliveryStatus = Type.Enum(['pending', 'delivered', 'failed'], {
  $id: 'DeliveryStatus',
  description: '`pending`: there will be another attempt. `failed`: the last attempt of the schedule failed.',
})
export type DeliveryStatus = Static<typeof DeliveryStatus>

const id = text('Id of the webhook, `hook_…`.')
const WebhookId = Type.Object({ webhookId: id })
const secret = text('`whsec_…`, to verify signatures with. Shown only here.')

const settings = {
  url: Type.String({
    minLength: 1,
    maxLength: 2000,
    description:
      'Where events are sent with POST. It must use https and be reachable from the internet, except on a local installation.',
  }),
  types: nullable(Type.Array(EventFilter, { minItems: 1, maxItems: 50, description: 'Which events to send. Null: all.' })),
  nodeIds: nullable(
    Type.Array(Type.String(), {
      minItems: 1,
      maxItems: 100,
      description: 'Only events of these nodes and of payments to them. Null: all.',
    }),
  ),
  description: nullable(Type.String({ maxLength: 500, pattern: READABLE_OR_EMPTY, description: 'A note for yourself.' })),
}
const optional = <P extends TProperties>(properties: P) => Type.Partial(Type.Object(properties)).properties

const webhookFields = {
  id,
  url: text('Where events are sent.'),
  types: nullable(Type.Array(Type.String(), { description: 'Which events are sent. Null: all.' })),
  nodeIds: nullable(Type.Array(Type.String(), { description: 'Only events of these nodes. Null: all.' })),
  description: nullable(text('A note for yourself.')),
  enabled: flag('Whether events are sent. Events that happen while it is disabled are not sent later; see `replayEvents`.'),
  disabledReason: nullable(
    text('Why the service disabled it: `gone` (a response was 410) or `failing` (every attempt has failed for five days).'),
  ),
  createdAt: timestamp('When it was created.'),
  lastSuccessAt: nullable(timestamp('When a delivery last succeeded.')),
  failingSince: nullable(timestamp('When deliveries began to fail; null if none has failed since the last success.')),
}
const example = {
  id: 'hook_01hgw2bbg0000000000a',
  url: 'https://shop.example/hooks/boltyard',
  types: ['payment.*'],
  nodeIds: null,
  description: null,
  enabled: true,
  disabledReason: null,
  createdAt: 1767225600,
  lastSuccessAt: 1767225621,
  failingSince: null,
}
export const Webhook = named(webhookFields, {
  $id: 'Webhook',
  description: 'A URL that events are sent to.',
  examples: [example],
})
export type Webhook = Static<typeof Webhook>
export const CreatedWebhook = named(
  { ...webhookFields, secret },
  {
    $id: 'CreatedWebhook',
    description: 'A new webhook. Store the secret: it cannot be retrieved later.',
    examples: [{ ...example, lastSuccessAt: null, secret: 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD' }],
  },
)
export type CreatedWebhook = Static<typeof CreatedWebhook>
export const WebhookList = named(
  { webhooks: Type.Array(Webhook) },
  { $id: 'WebhookList', description: 'All webhooks of the account, oldest first.' },
)

export const CreateWebhookParams = strict(
  { url: settings.url, ...optional({ types: settings.types, nodeIds: settings.nodeIds, description: settings.description }) },
  {
    $id: 'CreateWebhookParams',
    description: 'A new webhook.',
    examples: [{ url: 'https://shop.example/hooks/boltyard', types: ['payment.*'] }],
  },
)
export type CreateWebhookParams = Static<typeof CreateWebhookParams>
export const ChangeWebhookParams = strict(
  { ...optional(settings), enabled: Type.Optional(flag('Enabling also continues deliveries that were waiting.')) },
  {
    $id: 'ChangeWebhookParams',
    description: 'What to change.',
    minProperties: 1,
    examples: [{ types: ['payment.settled'], enabled: true }],
  },
)
export type ChangeWebhookParams = Static<typeof ChangeWebhookParams>

export const RotateSecretParams = strict(
  {
    graceSeconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: MOST_GRACE_SECONDS,
        default: 0,
        description: 'How long requests are also signed with the old secret.',
      }),
    ),
  },
  { $id: 'RotateSecretParams', description: 'How long the old secret remains in use.' },
)
export const RotatedSecret = named(
  { secret },
  { $id: 'RotatedSecret', description: 'The new secret. Store it: it cannot be retrieved later.' },
)

export const TestWebhookParams = strict(
  { type: Type.Optional(SampleType) },
  { $id: 'TestWebhookParams', description: 'Which sample to send. `type` defaults to `payment.settled`.' },
)
const attemptFields = {
  status: nullable(Type.Integer({ description: 'Status of the response; null if there was none.' })),
  durationMs: count('How long it took, in milliseconds.'),
  response: nullable(text('The first kilobyte of the response.')),
  error: nullable(text('Why it failed; null if it succeeded.')),
}
export const TestResult = named(attemptFields, {
  $id: 'TestResult',
  description: 'What the receiver responded.',
  examples: [{ status: 200, durationMs: 48, response: 'ok', error: null }],
})
export type TestResult = Static<typeof TestResult>

export const DeliveryAttempt = named(
  { at: timestamp('When it was made.'), ...attemptFields },
  { $id: 'DeliveryAttempt', description: 'One request to the webhook.' },
)
export type DeliveryAttempt = Static<typeof DeliveryAttempt>
export const Delivery = named(
  {
    id: text('Id of the delivery, `dlv_…`.'),
    eventId: text('The event, `evt_…`: the same in every attempt and replay.'),
    type: text('The type of the event.'),
    status: DeliveryStatus,
    createdAt: timestamp('When it was added.'),
    nextAttemptAt: nullable(timestamp('When the next attempt is due; null if there is none.')),
    attempts: Type.Array(DeliveryAttempt, { description: 'The latest attempts, oldest first; at most 20.' }),
  },
  { $id: 'Delivery', description: 'The delivery of one event to one webhook.' },
)
export type Delivery = Static<typeof Delivery>
export const DeliveryPage = named(
  { deliveries: Type.Array(Delivery), nextCursor: NextCursor },
  { $id: 'DeliveryPage', description: 'One page of deliveries, newest event first. They are kept as long as their events.' },
)
export const ListDeliveriesParams = strict(
  {
    status: Type.Optional(DeliveryStatus),
    cursor: Type.Optional(text('`nextCursor` of the previous page.')),
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 100,
        default: DEFAULT_DELIVERY_PAGE_SIZE,
        description: 'Maximum number of deliveries to return.',
      }),
    ),
  },
  { $id: 'ListDeliveriesParams', description: 'Which deliveries to list.' },
)

const unixSeconds = (description: string) =>
  Type.Integer({ minimum: 0, maximum: 99_999_999_999, description: `${description} Unix seconds.` })
export const ReplayEventsParams = strict(
  {
    from: unixSeconds('The beginning of the period.'),
    to: unixSeconds('The end of the period, which is not included.'),
    types: Type.Optional(
      Type.Array(EventFilter, {
        minItems: 1,
        maxItems: 50,
        description: 'Only these types, among those that the webhook receives.',
      }),
    ),
  },
  { $id: 'ReplayEventsParams', description: 'Which events to send again.', examples: [{ from: 1767225600, to: 1767229200 }] },
)
export const Replay = named(
  { count: count('How many events will be sent.') },
  { $id: 'Replay', description: 'Events that will be sent again.', examples: [{ count: 12 }] },
)

const ofWebhooks = { tag: 'Webhooks', caller: 'apiKey', scope: 'webhooks:write' } as const
const ofOne = { ...ofWebhooks, params: WebhookId } as const

export const createWebhook = operation({
  ...ofWebhooks,
  method: 'POST',
  path: '/v1/webhooks',
  operationId: 'createWebhook',
  summary: 'Create a webhook',
  description: `Events that happen from now on are sent to the URL, signed as Standard Webhooks describes. An account can have ${MOST_WEBHOOKS} webhooks.`,
  body: CreateWebhookParams,
  status: 201,
  response: CreatedWebhook,
  errors: ['node_not_found', 'limit_reached'],
})
export const listWebhooks = operation({
  ...ofWebhooks,
  method: 'GET',
  path: '/v1/webhooks',
  operationId: 'listWebhooks',
  summary: 'List webhooks',
  status: 200,
  response: WebhookList,
  errors: [],
})
export const getWebhook = operation({
  ...ofOne,
  method: 'GET',
  path: '/v1/webhooks/{webhookId}',
  operationId: 'getWebhook',
  summary: 'Get a webhook',
  status: 200,
  response: Webhook,
  errors: ['not_found'],
})
export const changeWebhook = operation({
  ...ofOne,
  method: 'PATCH',
  path: '/v1/webhooks/{webhookId}',
  operationId: 'changeWebhook',
  summary: 'Change a webhook',
  description: 'Fields that are absent stay as they are.',
  body: ChangeWebhookParams,
  status: 200,
  response: Webhook,
  errors: ['not_found', 'node_not_found'],
})
export const deleteWebhook = operation({
  ...ofOne,
  method: 'DELETE',
  path: '/v1/webhooks/{webhookId}',
  operationId: 'deleteWebhook',
  summary: 'Delete a webhook',
  description: 'No attempt begins after the response.',
  status: 204,
  errors: ['not_found'],
})
export const rotateWebhookSecret = operation({
  ...ofOne,
  method: 'POST',
  path: '/v1/webhooks/{webhookId}/rotate-secret',
  operationId: 'rotateWebhookSecret',
  summary: 'Replace the secret',
  description:
    'During the grace period, each request has two signatures, one with each secret. A secret from an earlier grace period no longer signs.',
  body: RotateSecretParams,
  status: 200,
  response: RotatedSecret,
  errors: ['not_found'],
})
export const testWebhook = operation({
  ...ofOne,
  method: 'POST',
  path: '/v1/webhooks/{webhookId}/test',
  operationId: 'testWebhook',
  summary: 'Send a sample',
  description:
    'Sends a sample event now, with `test: true`, and returns the response. A failed attempt is not retried, and nothing in the account changes.',
  body: TestWebhookParams,
  status: 200,
  response: TestResult,
  errors: ['not_found'],
})
export const listDeliveries = operation({
  ...ofOne,
  method: 'GET',
  path: '/v1/webhooks/{webhookId}/deliveries',
  operationId: 'listDeliveries',
  summary: 'List deliveries, newest event first',
  query: ListDeliveriesParams,
  status: 200,
  response: DeliveryPage,
  errors: ['not_found'],
})
export const redeliverEvent = operation({
  ...ofWebhooks,
  method: 'POST',
  path: '/v1/webhooks/{webhookId}/deliveries/{deliveryId}/redeliver',
  operationId: 'redeliverEvent',
  summary: 'Send an event again',
  description: 'Makes an attempt as soon as possible. If it fails, the schedule starts again.',
  params: Type.Object({ webhookId: id, deliveryId: text('Id of the delivery, `dlv_…`.') }),
  body: NoParams,
  status: 202,
  response: Delivery,
  errors: ['not_found'],
})
export const replayEvents = operation({
  ...ofOne,
  method: 'POST',
  path: '/v1/webhooks/{webhookId}/replay',
  operationId: 'replayEvents',
  summary: 'Send the events of a period again',
  description:
    'Also sends events that happened before the webhook was created or while it was disabled. Each event has the same `webhook-id` as the first time.',
  body: ReplayEventsParams,
  status: 202,
  response: Replay,
  errors: ['not_found', 'limit_reached'],
})
