/** Responses of `/dashboard/api`: the contract's types and those of sign-in. Times are in Unix seconds. */

export type { ApiKeyDetails as ApiKey } from '../../../contract/src/api-keys.ts'
export type { Overview } from '../../../contract/src/dashboard/account.ts'
export type { Credit, CreditEntry, CreditSummary, TopUp } from '../../../contract/src/dashboard/credit.ts'
export type { Changed } from '../../../contract/src/dashboard/events.ts'
export type { NodeLog, NodeReceiving } from '../../../contract/src/dashboard/node-details.ts'
export type { CreatedDashboardNode as CreatedNode, DashboardNode } from '../../../contract/src/dashboard/nodes.ts'
export type { GatewayPayment } from '../../../contract/src/dashboard/payments.ts'
export type { Received, ReceivedByNode } from '../../../contract/src/dashboard/received.ts'
export type { NodeInvoice, NodeLive, NodePayment, NodeSent } from '../../../contract/src/dashboard/wallets.ts'
export type { EventType } from '../../../contract/src/events.ts'
export type { NodeStatus, NodeUpdates } from '../../../contract/src/nodes.ts'
export type { NumberedActivity as Activity } from '../../../contract/src/operator/accounts.ts'
export type {
  ChangeWebhookParams,
  CreatedWebhook,
  CreateWebhookParams,
  Delivery,
  DeliveryAttempt,
  DeliveryStatus,
  EventFilter,
  TestResult,
  Webhook,
} from '../../../contract/src/webhooks.ts'

export type ErrorBody = { error: { code: string; message: string; requestId?: string } & Record<string, unknown> }

/** GET /me. Also works without a session, for the sign-in page. */
export type Me = {
  user: { id: string; email: string; name: string } | null
  account: { id: string; name: string } | null
  /** Whether the service uses play money, with a faucet and a test customer. */
  isSandbox: boolean
  registration: 'open' | 'invite' | 'off'
  publicUrl: string
  /** The dashboard's allowed origins; the first is that of publicUrl. */
  origins: string[]
  /** Whether the account from the first start has no owner yet. Only reported to people who are not signed in. */
  hasUnclaimedAccount: boolean
  /** On a local installation, the path of the operator token file. */
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
  /** The invitation is for an address that has an account by now. */
  hasAccount: boolean
  /** The account has two-factor sign-in, which the link turns off. */
  turnsOffTwoFactor: boolean
  expiresAt: number
}

/**
 * Routes below /auth. All need an `Origin` listed in `origins`; errors have the usual shape.
 * - POST /sign-up/email {email, password, name?} (only if registration is open), /sign-in/email {email, password, rememberMe?, code?},
 *   /change-password {currentPassword, newPassword} (ends all other sessions), /passkey/verify-authentication {response} → SignedIn
 * - POST /sign-out, /revoke-sessions (including the current one), /revoke-other-sessions, /update-user {name}
 * - GET /list-sessions → {sessions}
 * - POST /passkey/generate-register-options {name?, password?, code?}, GET /passkey/generate-authenticate-options → the options for
 *   WebAuthn
 * - POST /passkey/verify-registration {response, name?}, /passkey/update-passkey {id, name} → Passkey
 * - POST /passkey/delete-passkey {id, password?, code?}; GET /passkey/list-user-passkeys → {passkeys}. There are no passkeys at an IP
 *   address.
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
