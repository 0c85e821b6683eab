// Generated from contract/ by `npm run openapi`. Edit the contract, not this file.
/* Times are in Unix seconds, amounts in whole satoshis. */

export type * from './gateway-types.ts'

/** How much inbound liquidity the node buys when it runs short, in millions of satoshis. */
export type AutoLiquidity = '2m' | '5m' | '10m'

/** What the dashboard can do with the node: read and create invoices, or also send payments. */
export type AccessMode = 'limited' | 'full'

/** Settings of a new node. `autoLiquidity` defaults to `2m` and `accessMode` to `limited`. */
export type CreateNodeParams = {
  /** At most 16 characters after trimming; no control characters, bidirectional controls or zero-width spaces. Defaults to `Node n` if missing or blank. */
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
  /** Whether the latest version is newer than the current one, and this installation can update nodes. */
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
  /** At least 1 character. At most 16 characters after trimming; no control characters, bidirectional controls or zero-width spaces. */
  name: string
}

/** Which version to update to. */
export type UpdateNodeParams = {
  /** Defaults to the latest version. */
  version?: string
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
  /** Pass it as `cursor` to continue. If it differs from the `cursor` you sent, call again at once; otherwise, wait before you call again. */
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
  /** When the key expires: from then on it is refused. Null: never. Unix seconds. */
  expiresAt: number | null
  /** When the secret this request used stops working, because the key was rotated. Null for the current secret. Unix seconds. */
  secretExpiresAt: number | null
}
