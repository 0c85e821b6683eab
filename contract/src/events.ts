import { type Static, Type } from 'typebox'
import { operation } from './operation.ts'
import { anyObject, named, strict, text, timestamp } from './schemas.ts'

export const EVENT_TYPES = [
  'payment.settled',
  'payment.paid',
  'payment.redeemed',
  'payment.released',
  'node.ready',
  'node.stopped',
  'node.failed',
  'node.updated',
  'node.rolled_back',
  'node.deleted',
  'credit.low',
  'credit.grace',
  'credit.exhausted',
  'credit.topped_up',
  'key.created',
  'key.disabled',
  'key.revoked',
] as const
export type EventType = (typeof EVENT_TYPES)[number]

export const AccountEvent = named(
  {
    id: text('Id of the event, `evt_…`. A webhook repeats it in `webhook-id`.'),
    type: Type.String({
      description: 'What happened, such as `payment.settled`. New types may be added; ignore those you do not know.',
    }),
    createdAt: timestamp('When it happened.'),
    accountId: text('The account it happened in.'),
    data: anyObject(
      'Its details. For `payment.*`: `paymentId`, `nodeId`, `protocol`, `amountSat`, `description` and `resource`. For `node.*`: `nodeId` and `name`.',
    ),
  },
  {
    $id: 'AccountEvent',
    description: 'Something that happened in the account.',
    examples: [
      {
        id: 'evt_3f1c9a52b7de4c0f8a61d2e47b90c5aa',
        type: 'payment.settled',
        createdAt: 1767225620,
        accountId: 'acct_01hgw2bbg0000000000a',
        data: {
          paymentId: 'pay_01hgw2bbg0000000000a',
          nodeId: 'node_01hgw2bbg0000000000a',
          protocol: 'mpp',
          amountSat: 21,
          description: 'One joke',
          resource: 'GET /joke',
        },
      },
    ],
  },
)
export type AccountEvent = Static<typeof AccountEvent>

export const EventPage = named(
  {
    events: Type.Array(AccountEvent),
    nextCursor: text(
      'Pass it as `cursor` to continue. If it differs from the `cursor` you sent, call again at once; otherwise, wait before you call again.',
    ),
  },
  { $id: 'EventPage', description: 'One page of events, oldest first.' },
)

export const DEFAULT_EVENT_PAGE_SIZE = 50

const cursor = text('`nextCursor` of an earlier page, or the `id` of a message of the stream.')
const filters = {
  types: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 1000,
      description: 'Only these types, separated by commas. `payment.*` stands for all types that begin with `payment.`.',
    }),
  ),
  nodeId: Type.Optional(text('Only events of this node and of payments to it.')),
}

export const ListEventsParams = strict(
  {
    cursor: Type.Optional(cursor),
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 200,
        default: DEFAULT_EVENT_PAGE_SIZE,
        description: 'Maximum number of events to return.',
      }),
    ),
    ...filters,
  },
  { $id: 'ListEventsParams', description: 'Which events to list. Without `cursor`, from the oldest that is kept.' },
)
export const StreamEventsParams = strict(
  { cursor: Type.Optional(cursor), ...filters },
  { $id: 'StreamEventsParams', description: 'Which events to stream. Without `cursor`, only those from now on.' },
)

const ofEvents = { method: 'GET', tag: 'Events', caller: 'apiKey', scope: 'events:read', status: 200 } as const

export const listEvents = operation({
  ...ofEvents,
  path: '/v1/events',
  operationId: 'listEvents',
  summary: 'List events, oldest first',
  description:
    'Every event is in the feed exactly once, in an order that never changes. Events are kept for 30 days unless the operator says otherwise.',
  query: ListEventsParams,
  response: EventPage,
  errors: ['cursor_expired'],
})
export const streamEvents = operation({
  ...ofEvents,
  path: '/v1/events/stream',
  operationId: 'streamEvents',
  summary: 'Stream events as they happen',
  description:
    'Server-sent events. The `event` of a message is the type, its `data` the event as JSON, and its `id` the cursor after it: after a disconnect, send it as `Last-Event-ID` (or `cursor`) to miss nothing. A comment is sent every 15 seconds.',
  query: StreamEventsParams,
  errors: ['cursor_expired'],
})
