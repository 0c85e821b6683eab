import * as apiKeys from './api-keys.ts'
import * as dashboardAccount from './dashboard/account.ts'
import * as dashboardCredit from './dashboard/credit.ts'
import * as dashboardEvents from './dashboard/events.ts'
import * as dashboardNodes from './dashboard/nodes.ts'
import * as dashboardPayments from './dashboard/payments.ts'
import * as dashboardWallets from './dashboard/wallets.ts'
import * as gateway from './gateway.ts'
import * as health from './health.ts'
import * as nodes from './nodes.ts'
import type { Operation } from './operation.ts'
import * as accounts from './operator/accounts.ts'
import * as keys from './operator/keys.ts'
import * as links from './operator/links.ts'
import * as operatorNodes from './operator/nodes.ts'
import * as sandbox from './operator/sandbox.ts'

const operationsOf = (resource: Record<string, unknown>): Operation[] => Object.values(resource).filter(isOperation)
const isOperation = (value: unknown): value is Operation =>
  typeof value === 'object' && value !== null && 'operationId' in value && 'path' in value

/** What integrators and operators are promised: docs/openapi.json is made of these. */
export const publicOperations: Operation[] = [
  nodes,
  gateway,
  apiKeys,
  accounts,
  keys,
  links,
  operatorNodes,
  sandbox,
  health,
].flatMap(operationsOf)

/** What only the dashboard that is served with the service uses: promised to nobody else, and in no document. */
export const dashboardOperations: Operation[] = [
  dashboardNodes,
  dashboardWallets,
  dashboardPayments,
  dashboardAccount,
  dashboardCredit,
  dashboardEvents,
].flatMap(operationsOf)

export const operations: Operation[] = [...publicOperations, ...dashboardOperations]
