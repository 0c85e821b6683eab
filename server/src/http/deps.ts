import type { FastifyBaseLogger } from 'fastify'
import type { TopUps } from '../accounts/credit/top-ups.ts'
import type { Keys } from '../accounts/keys/keys.ts'
import type { Links } from '../accounts/people/links.ts'
import type { SignIn } from '../accounts/people/sign-in.ts'
import type { Config } from '../config.ts'
import type { Deliveries } from '../gateway/deliveries.ts'
import type { Payments } from '../gateway/payments.ts'
import type { Validation } from '../gateway/validation.ts'
import type { LookUpNode } from '../nodes/look-up.ts'
import type { Nodes } from '../nodes/nodes.ts'
import type { Wallets } from '../nodes/wallets.ts'
import type { Hub } from '../sandbox/hub.ts'
import type { Settlements } from '../settlements/settlements.ts'
import type { Database } from '../store/db.ts'
import type { Limits } from './hooks/rate-limit.ts'

/** What the routes call. */
export type AppDeps = {
  config: Config
  sql: Database
  keys: Keys
  signIn: SignIn
  links: Links
  nodes: Nodes
  wallets: Wallets
  payments: Payments
  validation: Validation
  deliveries: Deliveries
  topUps: TopUps
  settlements: Settlements
  hub: Hub | undefined
  lookUpNode: LookUpNode
  operatorToken: string | undefined
  /** Where the built dashboard lies. */
  appDirectory: string
  masterKeyId: string
  isStopping: () => boolean
  logger: FastifyBaseLogger
}
export type RouteDeps = AppDeps & { limits: Limits }
