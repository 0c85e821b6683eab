/** Times are whole seconds since 1970. `sdk/test/types.test.ts` holds these against the service's own description of itself. */

export type NodeStatus = 'provisioning' | 'ready' | 'stopped' | 'failed'

export type Node = {
  id: string
  name: string
  status: NodeStatus
  endpointUrl: string
  /** Why it failed, and what to do; null in every other state. */
  failureMessage: string | null
  updateStatus: 'updating' | 'updated' | 'failed' | null
  updateCompletedAt: number | null
  createdAt: number
  updatedAt: number
}

export type NodeWish = { name?: string; autoLiquidity?: '2m' | '5m' | '10m'; accessMode?: 'limited' | 'full' }

/** Given once, by the call that makes the node. Nobody can tell you the seed again. */
export type Credentials = { seed: string; password: string; restrictedPassword: string }

export type CreatedNode = { node: Node; credentials: Credentials }

export type NodeUpdates = {
  currentVersion: string
  latestVersion: string
  updateAvailable: boolean
  lastUpdateError: string | null
}

export type Protocol = 'mpp' | 'l402'
export type PaymentStatus = 'payment_required' | 'paid' | 'expired'

export type PaymentWish = {
  nodeId: string
  amountSat: number
  /** What people read. */
  description: string
  /** What the payment is bound to; its description unless given. */
  resource?: string
  protocol?: Protocol
}

export type CreatedPayment = {
  id: string
  protocol: Protocol
  status: 'payment_required'
  /** The value of WWW-Authenticate for your own 402. */
  challenge: string
}

export type PaidPayment = {
  id: string
  protocol: Protocol
  status: 'paid'
  /** MPP: the value of Payment-Receipt for your own answer. */
  receipt?: string
}

/** What this request sells; what is not named is not compared. A payment on other terms is refused, and stays unused. */
export type ExpectedTerms = {
  nodeId?: string
  /** Compared with the description of a payment that has no resource. */
  resource?: string
  description?: string
  amountSat?: number
  /** For prices that move between quote and payment. */
  minAmountSat?: number
}

export type Redemption = {
  /** The whole value of the customer's Authorization header. */
  credential: string
  /** The same again gives the same answer: so a delivery that failed can be repeated. */
  requestId?: string
  /** L402: deliver once, as MPP always does. */
  singleUse?: boolean
  expect?: ExpectedTerms
  /** 1 to 600: the claim lapses after that time unless it was confirmed with `delivered`. Final at once unless given. */
  holdSeconds?: number
}

export type RedeemedPayment = PaidPayment & {
  nodeId: string
  amountSat: number
  description: string
  resource: string | null
  redeemedAt: number
}

/** A delivery, and the request that claimed it. */
export type DeliveryName = { id: string; requestId: string }
export type DeliveryResult = DeliveryName & { result: 'delivered' | 'not_claimed' }

export type Release = {
  /** The one that holds the claim. It can never claim this payment again. */
  requestId: string
  /** For the activity log: why it was not delivered. */
  reason?: string
}
export type ReleasedPayment = { id: string; status: 'paid'; redeemable: true }

export type ListedPayment = {
  id: string
  protocol: Protocol
  status: PaymentStatus
  nodeId: string
  amountSat: number
  description: string
  resource: string | null
  createdAt: number
  expiresAt: number
  settledAt: number | null
  paidAt: number | null
  /** When its delivery was claimed; null when it was not, or was given back. */
  redeemedAt: number | null
}

export type Payment = ListedPayment & { challenge: string }

export type PaymentFilter = {
  limit?: number
  cursor?: string
  /** settled: your node has the money, and no credential was validated. */
  status?: PaymentStatus | 'settled'
  /** held: claimed and not confirmed yet; done: final or confirmed. */
  delivery?: 'none' | 'held' | 'done'
  nodeId?: string
}
export type PaymentPage = { payments: ListedPayment[]; nextCursor: string | null }

export type ApiKey = { id: string; accountId: string; scopes: string[] }
