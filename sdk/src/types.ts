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

export type PaymentWish = { nodeId: string; amountSat: number; description: string; protocol?: Protocol }

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

export type Redemption = {
  /** The whole value of the customer's Authorization header. */
  credential: string
  /** The same again gives the same answer: so a delivery that failed can be repeated. */
  requestId?: string
  /** L402: deliver once, as MPP always does. */
  singleUse?: boolean
}

export type RedeemedPayment = PaidPayment & { nodeId: string; amountSat: number; description: string; redeemedAt: number }

export type ListedPayment = {
  id: string
  protocol: Protocol
  status: PaymentStatus
  nodeId: string
  amountSat: number
  description: string
  createdAt: number
  expiresAt: number
  settledAt: number | null
  paidAt: number | null
}

export type Payment = ListedPayment & { challenge: string }

export type PaymentFilter = { limit?: number; cursor?: string; status?: PaymentStatus; nodeId?: string }
export type PaymentPage = { payments: ListedPayment[]; nextCursor: string | null }

export type ApiKey = { id: string; accountId: string; scopes: string[] }
