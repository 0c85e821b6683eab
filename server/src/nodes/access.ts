import { derivedKey, type MasterKey, open } from '../platform/secrets.ts'
import { Problem } from '../problems.ts'
import type { Sql } from '../store/db.ts'
import { findAccess } from '../store/nodes/secrets.ts'
import { dashboardContext, webhookContext } from './material.ts'
import type { Address, AddressOf } from './runtime.ts'

/**
 * How requests access a node: with the password selected by its owner's `accessMode`. Neither the other password nor the seed can be opened
 * here.
 */
export type NodeAccess = {
  accountId: string
  isDeleted: boolean
  isReady: boolean
  /** The node's public key, which signs its invoices. */
  lightningId: string
  /** Undefined if the node should not run or is on another host: another program may then listen on its old port. */
  address: Address | undefined
  password: () => string
  /** The secret that signs the node's events. */
  webhookSecret: () => string | undefined
  /** The current time by the database's clock. */
  nowMs: number
}
/** Undefined: no such node. */
export type AccessTo = (nodeId: string) => Promise<NodeAccess | undefined>

export function accessTo(sql: Sql, keys: MasterKey[], host: string, addressOf: AddressOf): AccessTo {
  return async (nodeId) => {
    const node = await findAccess(sql, nodeId)
    if (!node) return undefined
    const { accountId, lightningId, status, desiredState, webhookSecret, isDeleted, nowMs } = node
    const opened = (purpose: string, context: string, sealed: Buffer): string => {
      const master = keys.find(({ id }) => id === node.keyId)
      // Another replica already has a newer master key and resealed this row. This process will be replaced soon.
      if (!master)
        throw new Problem('service_unavailable', 'The credentials for this node are not available yet. Try again shortly.', {
          headers: { 'retry-after': '5' },
        })
      return open(derivedKey(master, purpose), context, Buffer.from(sealed)).toString('utf8')
    }
    const address = node.host === host && desiredState === 'running' ? await addressOf(nodeId) : undefined
    return {
      accountId,
      isDeleted,
      isReady: status === 'ready' && address !== undefined,
      lightningId,
      address,
      password: () => opened('dashboard access', dashboardContext(accountId, nodeId), node.dashboardAccess),
      webhookSecret: () =>
        webhookSecret === null ? undefined : opened('webhook secret', webhookContext(accountId, nodeId), webhookSecret),
      nowMs,
    }
  }
}
