// Generated from contract/ by `npm run openapi`: change the contract, not this file.
/* Times are Unix seconds, amounts whole satoshis. */

/** How much inbound liquidity the node buys when it needs some, in millions of satoshis. */
export type AutoLiquidity = '2m' | '5m' | '10m'

/** What the dashboard can do with the node: read and create invoices, or also send payments. */
export type AccessMode = 'limited' | 'full'

/** What a new node should be like. Defaults: `autoLiquidity` `2m`, `accessMode` `limited`. */
export type CreateNodeParams = {
  /** At most 16 characters after trimming; no control, bidirectional or zero-width characters. Missing or blank: `Node n`. */
  name?: string
  autoLiquidity?: AutoLiquidity
  accessMode?: AccessMode
}

/** A node is usable once it is `ready`. */
export type NodeStatus = 'provisioning' | 'ready' | 'stopped' | 'failed'

/** How the last update of a node’s software went. */
export type UpdateStatus = 'updating' | 'updated' | 'failed'

/** A Lightning node. */
export type Node = {
  /** Id of the node, `node_…`. */
  id: string
  /** Display name. */
  name: string
  status: NodeStatus
  /** Address of the node’s own payment API. */
  endpointUrl: string
  /** Why it failed, and what to do; null in every other status. */
  failureMessage: string | null
  updateStatus: UpdateStatus | null
  /** When the last update ended. Unix seconds. */
  updateCompletedAt: number | null
  /** When it was created. Unix seconds. */
  createdAt: number
  /** When another field last changed. Unix seconds. */
  updatedAt: number
}

/** Returned only by the call that creates the node. Store them before anything else. */
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

/** Which version a node runs, and which it could run. */
export type NodeUpdates = {
  /** The version the node runs. */
  currentVersion: string
  /** The newest version in the catalogue. */
  latestVersion: string
  /** Whether the newest version is newer. */
  updateAvailable: boolean
  /** Why the last update failed, if it did. */
  lastUpdateError: string | null
}

/** All nodes of the account. */
export type NodeList = {
  nodes: Node[]
}

/** The new name. */
export type RenameNodeParams = {
  /** 1 character or more. At most 16 characters after trimming; no control, bidirectional or zero-width characters. */
  name: string
}

/** Which version to update to. */
export type UpdateNodeParams = {
  /** The newest one if absent. */
  version?: string
}

/** A delivery, and the request that claimed it. */
export type ClaimedDelivery = {
  /** Id of the payment, `pay_…`. */
  id: string
  /** The one that redeemed it. */
  requestId: string
}

/** Deliveries that were claimed with `holdSeconds` and are done. */
export type ConfirmDeliveriesParams = {
  /** What was delivered. */
  deliveries: ClaimedDelivery[]
}

/** What became of one confirmation. */
export type DeliveryResult = {
  /** Id of the payment, `pay_…`. */
  id: string
  /** As given. */
  requestId: string
  /** Whether this request held the claim. */
  result: 'delivered' | 'not_claimed'
}

/** One result for each delivery, in the same order. */
export type DeliveryResults = {
  deliveries: DeliveryResult[]
}

/** How the customer pays. */
export type Protocol = 'mpp' | 'l402'

/** What to charge for. `protocol` is `mpp` if absent. */
export type CreatePaymentParams = {
  /** A ready node of this account, which receives the money. */
  nodeId: string
  /** The price. */
  amountSat: number
  /** What the customer pays for: not blank; no control, bidirectional or zero-width characters. */
  description: string
  /** What the payment is bound to, by the same rules. The description if absent. */
  resource?: string
  protocol?: Protocol
}

/** A payment and its challenge. Keep the id: validating needs it. */
export type CreatedPayment = {
  /** Id of the payment, `pay_…`. */
  id: string
  protocol: Protocol
  status: 'payment_required'
  /** The value of `WWW-Authenticate` for your own 402. */
  challenge: string
}

/** `paid`: a credential was validated. `expired`: not paid in time. */
export type PaymentStatus = 'payment_required' | 'paid' | 'expired'

/** A payment and its challenge. */
export type Payment = {
  /** Id of the payment, `pay_…`. */
  id: string
  protocol: Protocol
  status: PaymentStatus
  /** The value of `WWW-Authenticate` for your own 402. */
  challenge: string
  /** The node that is paid. */
  nodeId: string
  /** The price. */
  amountSat: number
  /** What the customer pays for. */
  description: string
  /** What the payment is bound to, if it is not its description. */
  resource: string | null
  /** When it was created. Unix seconds. */
  createdAt: number
  /** Until when it can be paid. Unix seconds. */
  expiresAt: number
  /** When the node received the money. Unix seconds. */
  settledAt: number | null
  /** When a credential was first validated. Unix seconds. */
  paidAt: number | null
  /** When its delivery was claimed; null if it was not, or was released. Unix seconds. */
  redeemedAt: number | null
}

/** `settled`: the node has the money, and no credential was validated. */
export type PaymentStatusFilter = 'payment_required' | 'paid' | 'expired' | 'settled'

/** `held`: claimed and not confirmed yet. `done`: final or confirmed. */
export type DeliveryState = 'none' | 'held' | 'done'

/** Which payments to list. */
export type ListPaymentsParams = {
  /** How many to return at most. */
  limit?: number
  /** `nextCursor` of the page before. */
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
  /** What the payment is bound to, if it is not its description. */
  resource: string | null
  /** When it was created. Unix seconds. */
  createdAt: number
  /** Until when it can be paid. Unix seconds. */
  expiresAt: number
  /** When the node received the money. Unix seconds. */
  settledAt: number | null
  /** When a credential was first validated. Unix seconds. */
  paidAt: number | null
  /** When its delivery was claimed; null if it was not, or was released. Unix seconds. */
  redeemedAt: number | null
}

/** One page of payments, newest first. */
export type PaymentPage = {
  payments: ListedPayment[]
  /** Pass it as `cursor` to get the next page; null on the last one. */
  nextCursor: string | null
}

/** What this request sells; a field that is absent is not compared. A payment on other terms is refused and stays unused. */
export type ExpectedTerms = {
  /** The node that was paid. */
  nodeId?: string
  /** Compared with the description of a payment that has no resource. */
  resource?: string
  /** The description it was created with. */
  description?: string
  /** Exactly this price. */
  amountSat?: number
  /** At least this price: for prices that change between quote and payment. */
  minAmountSat?: number
}

/** The customer’s credential, and what it should buy. */
export type RedeemPaymentParams = {
  /** The whole value of the customer’s `Authorization` header. */
  credential: string
  /** Your id of this attempt. The same again gets the same answer, so that a lost answer can be asked for again. */
  requestId?: string
  /** L402: deliver once, as MPP always does. */
  singleUse?: boolean
  expect?: ExpectedTerms
  /** The claim lapses after this time unless it is confirmed as delivered. Without it the claim is final at once. */
  holdSeconds?: number
}

/** A payment whose delivery this request has claimed: deliver now. */
export type RedeemedPayment = {
  /** Id of the payment, `pay_…`. */
  id: string
  protocol: Protocol
  status: 'paid'
  /** MPP only: the value of `Payment-Receipt` for your own answer. */
  receipt?: string
  /** The node that is paid. */
  nodeId: string
  /** The price. */
  amountSat: number
  /** What the customer pays for. */
  description: string
  /** What the payment is bound to, if it is not its description. */
  resource: string | null
  /** When the delivery was claimed. Unix seconds. */
  redeemedAt: number
}

/** Which claim to give back. */
export type ReleasePaymentParams = {
  /** The one that holds the claim. It can never claim this payment again. */
  requestId: string
  /** Why it was not delivered, for the activity log. */
  reason?: string
}

/** A payment that can be redeemed again. */
export type ReleasedPayment = {
  /** Id of the payment, `pay_…`. */
  id: string
  status: 'paid'
  redeemable: true
}

/** The customer’s credential, and what it should have paid for. */
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
  /** MPP only: the value of `Payment-Receipt` for your own answer. */
  receipt?: string
}

/** What a key may do. Every key has `nodes:read`. */
export type Scope = 'nodes:read' | 'nodes:write' | 'gateway:write'

/** The key a request was made with. The secret is never shown again. */
export type ApiKey = {
  /** Id of the key, `key_…`. */
  id: string
  /** The account it belongs to, `acct_…`. */
  accountId: string
  /** What the key may do. */
  scopes: Scope[]
}
