/** What `/dashboard/api` answers and takes: JSON, with the session's cookie. Times are Unix seconds, amounts satoshis, unless the name says otherwise. */

export type ErrorBody = { error: { code: string; message: string; requestId?: string } & Record<string, unknown> }

/** GET /me, without a session too: what a sign-in page must know. */
export type Me = {
  user: { id: string; email: string; name: string } | null
  account: { id: string; name: string } | null
  /** No real money: there is a faucet, and a customer to try things with. */
  isSandbox: boolean
  registration: 'open' | 'invite' | 'off'
  publicUrl: string
  /** Where the dashboard can be used; the first is that of publicUrl. */
  origins: string[]
  /** The account of the first start waits for its owner. Only told to whoever is not signed in. */
  hasUnclaimedAccount: boolean
  /** On one's own machine, where the operator's token was written. */
  operatorTokenFile: string | null
  version: string
  nodePriceSatPerDay: number
  retentionDays: number
}

/** POST /link/inspect {token}: what a link is for. POST /link/accept {token, email?, name?, password?}: 200, and a session. */
export type LinkInfo = {
  kind: 'claim' | 'invitation' | 'sign-in'
  email: string | null
  needsPassword: boolean
  expiresAt: number
}

/**
 * Below /auth, all with an `Origin` of `origins`; errors as everywhere. POST /sign-up/email {email, password, name?} (only with registration
 * open), /sign-in/email {email, password, rememberMe?}, /change-password {currentPassword, newPassword} (ends all other sessions),
 * /passkey/verify-authentication {response} → SignedIn. POST /sign-out, /revoke-sessions (this one too), /revoke-other-sessions,
 * /update-user {name}. GET /list-sessions → {sessions}. GET /passkey/generate-register-options, /passkey/generate-authenticate-options →
 * what WebAuthn takes; POST /passkey/verify-registration {response, name?}, /passkey/update-passkey {id, name} → Passkey;
 * POST /passkey/delete-passkey {id}; GET /passkey/list-user-passkeys → {passkeys}. No passkeys at an IP address.
 */
export type SignedIn = { user: { id: string; email: string; name: string } }
export type Session = {
  id: string
  method: string
  ipAddress: string | null
  userAgent: string | null
  createdAt: number
  expiresAt: number
  isCurrent: boolean
}
export type Passkey = { id: string; name: string | null; deviceType: string; backedUp: boolean; createdAt: number }

/** GET /overview */
export type Overview = {
  credit: CreditSummary
  /** Silent: ready by the API, but it did not answer when it was last asked. Not among the ready ones here. */
  nodes: { ready: number; silent: number; total: number }
  /** Of gateway payments, by when the node received them: the quarters of an hour of the last 8 days in which something came. */
  received: { now: number; quarterHours: { at: number; sat: number }[] }
  /** Of the last 7 days. */
  funnel: { issued: number; settled: number; paid: number }
  checklist: { hasNode: boolean; hasKey: boolean; hasChallenge: boolean; hasPaidRequest: boolean }
}

export type CreditSummary = {
  /** Whole satoshis, rounded down. */
  balanceSat: number
  balanceMsat: number
  /** Usage that is not in the ledger yet; both balances above have it taken off already. */
  unpostedMsat: number
  nodesThatCost: number
  /** Null when nothing costs. */
  runwaySeconds: number | null
  warning: 'none' | 'week' | 'day' | 'empty'
  /** When nodes will be stopped; null while there is credit. */
  stopsAt: number | null
  canTopUp: boolean
}
/** GET /credit?cursor */
export type Credit = CreditSummary & { entries: CreditEntry[]; nextCursor: string | null }
export type CreditEntry = {
  id: number
  amountMsat: number
  balanceAfterMsat: number
  kind: string
  reason: string
  reference: string | null
  createdAt: number
}
/** POST /credit/top-ups {amountSat} → 201 TopUp; GET /credit/top-ups/{paymentHash} → TopUp */
export type TopUp = { paymentHash: string; amountSat: number; invoice: string; expiresAt: number; settledAt: number | null }

export type NodeStatus = 'provisioning' | 'ready' | 'stopped' | 'failed'
/** The nine fields of the public API, and what only its owner's dashboard shows. GET /nodes → {nodes}, GET /nodes/{id} */
export type DashboardNode = {
  id: string
  name: string
  status: NodeStatus
  endpointUrl: string
  failureMessage: string | null
  updateStatus: 'updating' | 'updated' | 'failed' | null
  updateCompletedAt: number | null
  createdAt: number
  updatedAt: number
  accessMode: 'limited' | 'full'
  autoLiquidity: string
  /** The operation that runs now. */
  operation: string | null
  /** When it was last seen with its channels online. */
  hasFunds: boolean
  /** Ready, but it did not answer when it was last asked. */
  isSilent: boolean
}
/** POST /nodes {name?, autoLiquidity?, accessMode?} with Idempotency-Key → 202 */
export type CreatedNode = { node: DashboardNode; credentials: { seed: string; password: string; restrictedPassword: string } }
/** PATCH /nodes/{id} {name}; POST /nodes/{id}/start|stop|restart; POST /nodes/{id}/update {version?}; DELETE /nodes/{id}?force=true */

/** GET /nodes/{id}/live. A node that does not answer, or whose channels are offline, has no balance to show: null, never zero. */
export type NodeLive = {
  isReachable: boolean
  balanceSat: number | null
  feeCreditSat: number | null
  /** Open and usable, or not now; null when the node does not answer. */
  channels: { usable: number; total: number } | null
  blockHeight: number | null
  version: string | null
}
/** GET /nodes/{id}/updates */
export type NodeUpdates = {
  currentVersion: string
  latestVersion: string
  updateAvailable: boolean
  lastUpdateError: string | null
}
/** GET /nodes/{id}/payments → {payments}, newest first: the node's own list, incoming and outgoing. */
export type NodePayment = {
  direction: 'in' | 'out'
  paymentHash: string | null
  amountSat: number
  feeMsat: number
  description: string | null
  isPaid: boolean
  createdAt: number
  completedAt: number | null
}
/** POST /nodes/{id}/invoices {amountSat?, description} → 201; GET /nodes/{id}/invoices/{paymentHash} → {isPaid, receivedSat} */
export type NodeInvoice = { paymentHash: string; invoice: string }
/** POST /nodes/{id}/pay {invoice, amountSat?}: only with accessMode full. */
export type NodeSent = {
  outcome: 'sent' | 'failed' | 'unknown'
  reason: string | null
  amountSat: number | null
  feeSat: number | null
}

/** GET /keys → {keys}; POST /keys {name, scopes} → 201 {id, name, scopes, key}; PATCH /keys/{id} {disabled} → ApiKey; DELETE /keys/{id} → 204 */
export type ApiKey = {
  id: string
  name: string
  prefix: string
  scopes: ('nodes:read' | 'nodes:write' | 'gateway:write')[]
  disabled: boolean
  createdAt: number
  lastUsedAt: number | null
}

/**
 * GET /payments?limit&cursor&status&delivery&undelivered=true&nodeId → {payments, nextCursor}; status may also be settled; undelivered:
 * settled or paid, and delivered is nothing. GET /payments/{id} → with challenge.
 */
export type GatewayPayment = {
  id: string
  protocol: 'mpp' | 'l402'
  status: 'payment_required' | 'paid' | 'expired'
  nodeId: string
  amountSat: number
  description: string
  resource: string | null
  createdAt: number
  expiresAt: number
  settledAt: number | null
  paidAt: number | null
  redeemedAt: number | null
  /** Held: claimed, and not confirmed yet. */
  delivery: 'none' | 'held' | 'done'
}
/** The try-it panel, with the same rules as the public API: POST /payments {nodeId, amountSat, description, protocol} → 201 {id, protocol, status, challenge};
 *  POST /payments/{id}/validate {credential, expect?} → 200; POST /payments/{id}/redeem {credential, requestId?, singleUse?, expect?, holdSeconds?}
 *  → 200, as the public API; sandbox only: POST /sandbox/pay {invoice} → {paymentHash, preimage}; POST /sandbox/nodes/{id}/fund {amountSat} → {balanceSat} */

/** GET /activity?cursor → {activity, nextCursor} */
export type Activity = {
  id: number
  at: number
  actor: string
  action: string
  target: string | null
  detail: Record<string, unknown>
}

/** GET /events: server-sent events; `event: changed`, data one of these. After a reconnect everything is asked again. */
export type Changed = { nodes: boolean; payments: boolean; activity: boolean }
