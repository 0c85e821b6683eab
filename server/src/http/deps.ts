import type { FastifyBaseLogger } from 'fastify'
import type { AnswerOf } from '../../../contract/src/operation.ts'
import type { getStats } from '../../../contract/src/operator/nodes.ts'
import type { Accounts } from '../accounts/accounts.ts'
import type { Credit } from '../accounts/credit/credit.ts'
import type { TopUps } from '../accounts/credit/top-ups.ts'
import type { Keys } from '../accounts/keys/keys.ts'
import type { Installation } from '../accounts/operator/installation.ts'
import type { OperatorSessions } from '../accounts/operator/sessions.ts'
import type { Links } from '../accounts/people/links.ts'
import type { Settings } from '../accounts/people/settings.ts'
import type { SignIn } from '../accounts/people/sign-in.ts'
import type { RequestLog } from '../accounts/requests/request-log.ts'
import type { Config } from '../config.ts'
import type { AccountChanges } from '../events/account-changes.ts'
import type { EventFeed } from '../events/feed.ts'
import type { Webhooks } from '../events/webhooks/webhooks.ts'
import type { Deliveries } from '../gateway/deliveries.ts'
import type { PaymentSearch } from '../gateway/payment-search.ts'
import type { Payments } from '../gateway/payments.ts'
import type { Received } from '../gateway/received.ts'
import type { Validation } from '../gateway/validation.ts'
import type { X402 } from '../gateway/x402.ts'
import type { NodeLogs } from '../nodes/logs/node-logs.ts'
import type { LookUpNode } from '../nodes/look-up.ts'
import type { ReceiveNodeEvent } from '../nodes/node-events.ts'
import type { Nodes } from '../nodes/nodes.ts'
import type { ReportSilence } from '../nodes/silence.ts'
import type { Wallets } from '../nodes/wallets.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'
import type { Limits } from './hooks/rate-limit.ts'
import type { CountHit } from './node-proxy/node-calls.ts'

export type AppDeps = {
  config: Config
  accounts: Accounts
  credit: Credit
  keys: Keys
  requests: RequestLog
  signIn: SignIn
  settings: Settings
  links: Links
  nodes: Nodes
  wallets: Wallets
  nodeLogs: NodeLogs
  received: Received
  payments: Payments
  paymentSearch: PaymentSearch
  validation: Validation
  x402: X402
  deliveries: Deliveries
  changes: AccountChanges
  events: EventFeed
  webhooks: Webhooks
  topUps: TopUps
  /** Undefined outside the sandbox. */
  sandbox: Sandbox | undefined
  lookUpNode: LookUpNode
  reportSilence: ReportSilence
  receiveNodeEvent: ReceiveNodeEvent
  /** Undefined if there is no operator token. */
  operatorSessions: OperatorSessions | undefined
  installation: Installation
  /** The directory of the built dashboard. */
  appDirectory: string
  /** The directory of the built documentation. In a clone, it is built after the start. */
  docsDirectory: string
  /** Resolves if the store responds. */
  checkStore: () => Promise<void>
  /** Undefined with the embedded store and without Redis: each process then counts limits in its own memory. */
  countHit: CountHit | undefined
  stats: () => Promise<AnswerOf<typeof getStats>>
  isStopping: () => boolean
  logger: FastifyBaseLogger
}
export type RouteDeps = AppDeps & { limits: Limits }
