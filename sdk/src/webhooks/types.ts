// Generated from contract/ by `npm run openapi`. Edit the contract, not this file.
/* Times are in Unix seconds, amounts in whole satoshis. */

/** A type of events, or all types of a group: `payment.*`. */
export type EventFilter =
  | 'payment.settled'
  | 'payment.paid'
  | 'payment.redeemed'
  | 'payment.released'
  | 'node.ready'
  | 'node.stopped'
  | 'node.failed'
  | 'node.updated'
  | 'node.rolled_back'
  | 'node.deleted'
  | 'credit.low'
  | 'credit.grace'
  | 'credit.exhausted'
  | 'credit.topped_up'
  | 'key.created'
  | 'key.disabled'
  | 'key.revoked'
  | 'payment.*'
  | 'node.*'
  | 'credit.*'
  | 'key.*'

/** What to change. */
export type ChangeWebhookParams = {
  /** Where events are sent with POST. It must use https and be reachable from the internet, except on a local installation. */
  url?: string
  /** Which events to send. Null: all. */
  types?: EventFilter[] | null
  /** Only events of these nodes and of payments to them. Null: all. */
  nodeIds?: string[] | null
  /** A note for yourself. */
  description?: string | null
  /** Enabling also continues deliveries that were waiting. */
  enabled?: boolean
}

/** A URL that events are sent to. */
export type Webhook = {
  /** Id of the webhook, `hook_…`. */
  id: string
  /** Where events are sent. */
  url: string
  /** Which events are sent. Null: all. */
  types: string[] | null
  /** Only events of these nodes. Null: all. */
  nodeIds: string[] | null
  /** A note for yourself. */
  description: string | null
  /** Whether events are sent. Events that happen while it is disabled are not sent later; see `replayEvents`. */
  enabled: boolean
  /** Why the service disabled it: `gone` (a response was 410) or `failing` (every attempt has failed for five days). */
  disabledReason: string | null
  /** When it was created. Unix seconds. */
  createdAt: number
  /** When a delivery last succeeded. Unix seconds. */
  lastSuccessAt: number | null
  /** When deliveries began to fail; null if none has failed since the last success. Unix seconds. */
  failingSince: number | null
}

/** A new webhook. */
export type CreateWebhookParams = {
  /** Where events are sent with POST. It must use https and be reachable from the internet, except on a local installation. */
  url: string
  /** Which events to send. Null: all. */
  types?: EventFilter[] | null
  /** Only events of these nodes and of payments to them. Null: all. */
  nodeIds?: string[] | null
  /** A note for yourself. */
  description?: string | null
}

/** A new webhook. Store the secret: it cannot be retrieved later. */
export type CreatedWebhook = {
  /** Id of the webhook, `hook_…`. */
  id: string
  /** Where events are sent. */
  url: string
  /** Which events are sent. Null: all. */
  types: string[] | null
  /** Only events of these nodes. Null: all. */
  nodeIds: string[] | null
  /** A note for yourself. */
  description: string | null
  /** Whether events are sent. Events that happen while it is disabled are not sent later; see `replayEvents`. */
  enabled: boolean
  /** Why the service disabled it: `gone` (a response was 410) or `failing` (every attempt has failed for five days). */
  disabledReason: string | null
  /** When it was created. Unix seconds. */
  createdAt: number
  /** When a delivery last succeeded. Unix seconds. */
  lastSuccessAt: number | null
  /** When deliveries began to fail; null if none has failed since the last success. Unix seconds. */
  failingSince: number | null
  /** `whsec_…`, to verify signatures with. Shown only here. */
  secret: string
}

/** `pending`: there will be another attempt. `failed`: the last attempt of the schedule failed. */
export type DeliveryStatus = 'pending' | 'delivered' | 'failed'

/** Which deliveries to list. */
export type ListDeliveriesParams = {
  status?: DeliveryStatus
  /** `nextCursor` of the previous page. */
  cursor?: string
  /** Maximum number of deliveries to return. */
  limit?: number
}

/** One request to the webhook. */
export type DeliveryAttempt = {
  /** When it was made. Unix seconds. */
  at: number
  /** Status of the response; null if there was none. */
  status: number | null
  /** How long it took, in milliseconds. */
  durationMs: number
  /** The first kilobyte of the response. */
  response: string | null
  /** Why it failed; null if it succeeded. */
  error: string | null
}

/** The delivery of one event to one webhook. */
export type Delivery = {
  /** Id of the delivery, `dlv_…`. */
  id: string
  /** The event, `evt_…`: the same in every attempt and replay. */
  eventId: string
  /** The type of the event. */
  type: string
  status: DeliveryStatus
  /** When it was added. Unix seconds. */
  createdAt: number
  /** When the next attempt is due; null if there is none. Unix seconds. */
  nextAttemptAt: number | null
  /** The latest attempts, oldest first; at most 20. */
  attempts: DeliveryAttempt[]
}

/** One page of deliveries, newest event first. They are kept as long as their events. */
export type DeliveryPage = {
  deliveries: Delivery[]
  /** Pass it as `cursor` to get the next page; null on the last page. */
  nextCursor: string | null
}

/** All webhooks of the account, oldest first. */
export type WebhookList = {
  webhooks: Webhook[]
}

/** Which events to send again. */
export type ReplayEventsParams = {
  /** The beginning of the period. Unix seconds. */
  from: number
  /** The end of the period, which is not included. Unix seconds. */
  to: number
  /** Only these types, among those that the webhook receives. */
  types?: EventFilter[]
}

/** Events that will be sent again. */
export type Replay = {
  /** How many events will be sent. */
  count: number
}

/** How long the old secret remains in use. */
export type RotateSecretParams = {
  /** How long requests are also signed with the old secret. */
  graceSeconds?: number
}

/** The new secret. Store it: it cannot be retrieved later. */
export type RotatedSecret = {
  /** `whsec_…`, to verify signatures with. Shown only here. */
  secret: string
}

/** The type of a sample. */
export type SampleType =
  | 'payment.settled'
  | 'payment.paid'
  | 'payment.redeemed'
  | 'payment.released'
  | 'node.ready'
  | 'node.stopped'
  | 'node.failed'
  | 'node.updated'
  | 'node.rolled_back'
  | 'node.deleted'
  | 'credit.low'
  | 'credit.grace'
  | 'credit.exhausted'
  | 'credit.topped_up'
  | 'key.created'
  | 'key.disabled'
  | 'key.revoked'

/** Which sample to send. `type` defaults to `payment.settled`. */
export type TestWebhookParams = {
  type?: SampleType
}

/** What the receiver responded. */
export type TestResult = {
  /** Status of the response; null if there was none. */
  status: number | null
  /** How long it took, in milliseconds. */
  durationMs: number
  /** The first kilobyte of the response. */
  response: string | null
  /** Why it failed; null if it succeeded. */
  error: string | null
}
