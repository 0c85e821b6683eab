// Generated from contract/ by `npm run openapi`. Edit the contract, not this file.
/* Times are in Unix seconds, amounts in whole satoshis. */

/** How much inbound liquidity the node buys when it runs short, in millions of satoshis. */
export type AutoLiquidity = '2m' | '5m' | '10m'

/** What the dashboard can do with the node: read and create invoices, or also send payments. */
export type AccessMode = 'limited' | 'full'

/** Settings of a new node. `autoLiquidity` defaults to `2m` and `accessMode` to `limited`. */
export type CreateNodeParams = {
  /** At most 16 characters after trimming; no control, bidirectional or zero-width characters. Defaults to `Node n` if missing or blank. */
  name?: string
  autoLiquidity?: AutoLiquidity
  accessMode?: AccessMode
}

/** A node is usable once it is `ready`. */
export type NodeStatus = 'provisioning' | 'ready' | 'stopped' | 'failed'

/** The state of the node’s last software update. */
export type UpdateStatus = 'updating' | 'updated' | 'failed'

/** A Lightning node. */
export type Node = {
  /** Id of the node, `node_…`. */
  id: string
  /** Display name. */
  name: string
  status: NodeStatus
  /** URL of the node’s own payment API. */
  endpointUrl: string
  /** Why the node failed and what to do about it; null in every other status. */
  failureMessage: string | null
  updateStatus: UpdateStatus | null
  /** When the last update finished. Unix seconds. */
  updateCompletedAt: number | null
  /** When it was created. Unix seconds. */
  createdAt: number
  /** When another field last changed. Unix seconds. */
  updatedAt: number
}

/** Returned only by the call that creates the node, and by its repeat with the same `Idempotency-Key`. Store them before you do anything else. */
export type Credentials = {
  /** Twelve recovery words. They cannot be retrieved later. */
  seed: string
  /** Full access to the node’s own API. */
  password: string
  /** Access to the node’s own API without sending payments. */
  restrictedPassword: string
}

/** A new node and its credentials. */
export type CreatedNode = {
  node: Node
  credentials: Credentials
}

/** The version a node runs, and the latest one available. */
export type NodeUpdates = {
  /** The version the node runs. */
  currentVersion: string
  /** The latest version in the catalog. */
  latestVersion: string
  /** Whether the latest version is newer than the current one. */
  updateAvailable: boolean
  /** Why the last update failed; null if it did not. */
  lastUpdateError: string | null
}

/** All nodes of the account, oldest first. */
export type NodeList = {
  nodes: Node[]
}

/** The new name. */
export type RenameNodeParams = {
  /** At least 1 character. At most 16 characters after trimming; no control, bidirectional or zero-width characters. */
  name: string
}

/** Which version to update to. */
export type UpdateNodeParams = {
  /** Defaults to the latest version. */
  version?: string
}

/** A delivery and the request that claimed it. */
export type ClaimedDelivery = {
  /** Id of the payment, `pay_…`. */
  id: string
  /** The `requestId` that redeemed the payment. */
  requestId: string
}

/** Completed deliveries that were claimed with `holdSeconds`. */
export type ConfirmDeliveriesParams = {
  /** The deliveries to confirm. */
  deliveries: ClaimedDelivery[]
}

/** The result of one confirmation. */
export type DeliveryResult = {
  /** Id of the payment, `pay_…`. */
  id: string
  /** The `requestId` you passed. */
  requestId: string
  /** `not_claimed`: this `requestId` does not hold the delivery. */
  result: 'delivered' | 'not_claimed'
}

/** One result for each delivery, in the same order. */
export type DeliveryResults = {
  deliveries: DeliveryResult[]
}

/** The HTTP 402 protocol the customer pays with. */
export type Protocol = 'mpp' | 'l402'

/** What to charge for. `protocol` defaults to `mpp`. */
export type CreatePaymentParams = {
  /** A ready node of this account, which receives the money. */
  nodeId: string
  /** The price. */
  amountSat: number
  /** What the customer pays for. Must not be blank or contain control, bidirectional or zero-width characters. */
  description: string
  /** What the payment is bound to; the same rules apply. Defaults to the description. */
  resource?: string
  protocol?: Protocol
}

/** A payment and its challenge. Keep the id: you need it to validate the credential. */
export type CreatedPayment = {
  /** Id of the payment, `pay_…`. */
  id: string
  protocol: Protocol
  status: 'payment_required'
  /** The value of `WWW-Authenticate` for your own 402 response. */
  challenge: string
}

/** `settled`: the node received the money, but no credential was validated. */
export type PaymentStatusFilter = 'payment_required' | 'paid' | 'expired' | 'settled'

/** Which payments to export. */
export type ExportPaymentsParams = {
  /** Only payments created at this time or later. Unix seconds. */
  from?: number
  /** Only payments created before this time. Unix seconds. */
  to?: number
  /** Only payments to this node. */
  nodeId?: string
  status?: PaymentStatusFilter
}

/** `paid`: a credential was validated. `expired`: it can no longer be paid, and no payment has been reported; if one was made in time, it can still become `paid`. */
export type PaymentStatus = 'payment_required' | 'paid' | 'expired'

/** A payment and its challenge. */
export type Payment = {
  /** Id of the payment, `pay_…`. */
  id: string
  protocol: Protocol
  status: PaymentStatus
  /** The value of `WWW-Authenticate` for your own 402 response. */
  challenge: string
  /** The node that is paid. */
  nodeId: string
  /** The price. */
  amountSat: number
  /** What the customer pays for. */
  description: string
  /** What the payment is bound to; null if it is the description. */
  resource: string | null
  /** When it was created. Unix seconds. */
  createdAt: number
  /** When it expires if unpaid. Unix seconds. */
  expiresAt: number
  /** When the node received the money. Unix seconds. */
  settledAt: number | null
  /** When a credential was first validated. Unix seconds. */
  paidAt: number | null
  /** When the delivery was claimed; null if it is unclaimed or was released. Unix seconds. */
  redeemedAt: number | null
}

/** `held`: claimed but not confirmed yet. `done`: final or confirmed. */
export type DeliveryState = 'none' | 'held' | 'done'

/** Which payments to list. */
export type ListPaymentsParams = {
  /** Maximum number of payments to return. */
  limit?: number
  /** `nextCursor` of the previous page. */
  cursor?: string
  status?: PaymentStatusFilter
  delivery?: DeliveryState
  /** Only payments to this node. */
  nodeId?: string
}

/** A payment, without its challenge. */
export type ListedPayment = {
  /** Id of the payment, `pay_…`. */
  id: string
  protocol: Protocol
  status: PaymentStatus
  /** The node that is paid. */
  nodeId: string
  /** The price. */
  amountSat: number
  /** What the customer pays for. */
  description: string
  /** What the payment is bound to; null if it is the description. */
  resource: string | null
  /** When it was created. Unix seconds. */
  createdAt: number
  /** When it expires if unpaid. Unix seconds. */
  expiresAt: number
  /** When the node received the money. Unix seconds. */
  settledAt: number | null
  /** When a credential was first validated. Unix seconds. */
  paidAt: number | null
  /** When the delivery was claimed; null if it is unclaimed or was released. Unix seconds. */
  redeemedAt: number | null
}

/** One page of payments, newest first. */
export type PaymentPage = {
  payments: ListedPayment[]
  /** Pass it as `cursor` to get the next page; null on the last page. */
  nextCursor: string | null
}

/** What this request sells. Absent fields are not compared. A payment that does not match is rejected, and this request does not use it up. */
export type ExpectedTerms = {
  /** The node that was paid. */
  nodeId?: string
  /** The resource it was created with, or the description if it has no resource. */
  resource?: string
  /** The description it was created with. */
  description?: string
  /** Exactly this price. */
  amountSat?: number
  /** At least this price. Useful if prices change between quote and payment. */
  minAmountSat?: number
}

/** The customer’s credential, and how to claim the delivery. */
export type RedeemPaymentParams = {
  /** The whole value of the customer’s `Authorization` header. */
  credential: string
  /** Your id for this attempt. Repeating it returns the same response, so you can retry when a response is lost. */
  requestId?: string
  /** L402 only: deliver once, as MPP always does. */
  singleUse?: boolean
  expect?: ExpectedTerms
  /** The claim lapses after this time unless you confirm the delivery. Without it, the claim is final immediately. */
  holdSeconds?: number
}

/** A payment whose delivery this request has claimed. Deliver now. */
export type RedeemedPayment = {
  /** Id of the payment, `pay_…`. */
  id: string
  protocol: Protocol
  status: 'paid'
  /** MPP only: the value of `Payment-Receipt` for your own response. */
  receipt?: string
  /** The node that is paid. */
  nodeId: string
  /** The price. */
  amountSat: number
  /** What the customer pays for. */
  description: string
  /** What the payment is bound to; null if it is the description. */
  resource: string | null
  /** When the delivery was claimed. Unix seconds. */
  redeemedAt: number
}

/** The claim to release. */
export type ReleasePaymentParams = {
  /** The `requestId` that holds the claim. It can never claim this payment again. */
  requestId: string
  /** Why the delivery failed, for the activity log. */
  reason?: string
}

/** A payment that can be redeemed again. */
export type ReleasedPayment = {
  /** Id of the payment, `pay_…`. */
  id: string
  status: 'paid'
  redeemable: true
}

/** The customer’s credential and, optionally, the expected terms. */
export type ValidatePaymentParams = {
  /** The whole value of the customer’s `Authorization` header. */
  credential: string
  expect?: ExpectedTerms
}

/** A payment whose credential is valid. */
export type PaidPayment = {
  /** Id of the payment, `pay_…`. */
  id: string
  protocol: Protocol
  status: 'paid'
  /** MPP only: the value of `Payment-Receipt` for your own response. */
  receipt?: string
}

/** Which events to list. Without `cursor`, from the oldest that is kept. */
export type ListEventsParams = {
  /** `nextCursor` of an earlier page, or the `id` of a message of the stream. */
  cursor?: string
  /** Maximum number of events to return. */
  limit?: number
  /** Only these types, separated by commas. `payment.*` stands for all types that begin with `payment.`. */
  types?: string
  /** Only events of this node and of payments to it. */
  nodeId?: string
}

/** Something that happened in the account. */
export type AccountEvent = {
  /** Id of the event, `evt_…`. A webhook repeats it in `webhook-id`. */
  id: string
  /** What happened, such as `payment.settled`. New types may be added; ignore those you do not know. */
  type: string
  /** When it happened. Unix seconds. */
  createdAt: number
  /** The account it happened in. */
  accountId: string
  /** Its details. For `payment.*`: `paymentId`, `nodeId`, `protocol`, `amountSat`, `description` and `resource`. For `node.*`: `nodeId` and `name`. */
  data: Record<string, unknown>
}

/** One page of events, oldest first. */
export type EventPage = {
  events: AccountEvent[]
  /** Where to continue. Call again at once while it differs from the `cursor` you sent, and wait a while when it does not. */
  nextCursor: string
}

/** Which events to stream. Without `cursor`, only those from now on. */
export type StreamEventsParams = {
  /** `nextCursor` of an earlier page, or the `id` of a message of the stream. */
  cursor?: string
  /** Only these types, separated by commas. `payment.*` stands for all types that begin with `payment.`. */
  types?: string
  /** Only events of this node and of payments to it. */
  nodeId?: string
}

/** What a key may do. Every key has `nodes:read`. */
export type Scope = 'nodes:read' | 'nodes:write' | 'gateway:write' | 'events:read' | 'webhooks:write'

/** The key a request was made with. The secret is never shown again. */
export type ApiKey = {
  /** Id of the key, `key_…`. */
  id: string
  /** The account it belongs to, `acct_…`. */
  accountId: string
  /** What the key may do. */
  scopes: Scope[]
}
