import * as apiKeys from './api-keys.ts'
import * as dashboardAccount from './dashboard/account.ts'
import * as dashboardActivity from './dashboard/activity.ts'
import * as dashboardCredit from './dashboard/credit.ts'
import * as dashboardDevelopers from './dashboard/developers.ts'
import * as dashboardEvents from './dashboard/events.ts'
import * as dashboardNodeDetails from './dashboard/node-details.ts'
import * as dashboardNodes from './dashboard/nodes.ts'
import * as dashboardOperator from './dashboard/operator.ts'
import * as dashboardPaymentSearch from './dashboard/payment-search.ts'
import * as dashboardPayments from './dashboard/payments.ts'
import * as dashboardReceived from './dashboard/received.ts'
import * as dashboardSettings from './dashboard/settings.ts'
import * as dashboardWallets from './dashboard/wallets.ts'
import * as dashboardWebhooks from './dashboard/webhooks.ts'
import * as events from './events.ts'
import * as gateway from './gateway.ts'
import * as health from './health.ts'
import * as nodes from './nodes.ts'
import type { Operation } from './operation.ts'
import * as accounts from './operator/accounts.ts'
import * as installation from './operator/installation.ts'
import * as keys from './operator/keys.ts'
import * as links from './operator/links.ts'
import * as operatorNodes from './operator/nodes.ts'
import * as sandbox from './operator/sandbox.ts'
import * as webhooks from './webhooks.ts'
import * as facilitator from './x402.ts'

const operationsOf = (resource: Record<string, unknown>): Operation[] => Object.values(resource).filter(isOperation)
const isOperation = (value: unknown): value is Operation =>
  typeof value === 'object' && value !== null && 'operationId' in value && 'path' in value

/** The public API for integrators and operators. docs/openapi.json is generated from these. */
export const publicOperations: Operation[] = [
  nodes,
  gateway,
  facilitator,
  events,
  webhooks,
  apiKeys,
  accounts,
  keys,
  links,
  operatorNodes,
  installation,
  sandbox,
  health,
].flatMap(operationsOf)

/** The private API of the bundled dashboard: undocumented, and may change in any release. */
export const dashboardOperations: Operation[] = [
  dashboardNodes,
  dashboardWallets,
  dashboardNodeDetails,
  dashboardReceived,
  dashboardPayments,
  dashboardPaymentSearch,
  dashboardAccount,
  dashboardCredit,
  dashboardActivity,
  dashboardDevelopers,
  dashboardEvents,
  dashboardWebhooks,
  dashboardSettings,
  dashboardOperator,
].flatMap(operationsOf)

export const operations: Operation[] = [...publicOperations, ...dashboardOperations]
