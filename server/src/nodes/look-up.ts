import { isStoreDown } from '../platform/store-down.ts'
import type { Sql } from '../store/db.ts'
import { findAnyNode } from '../store/nodes/nodes.ts'
import type { Address, AddressOf } from './runtime.ts'

/** 'not found': the node does not exist or was deleted. 'down': it exists but is not reachable from here now. */
export type LookUpNode = (nodeId: string) => Promise<Address | 'not found' | 'down'>

/** For the node proxy. While the store is down, nodes that were looked up before stay reachable. */
export function lookUpNodeOn(sql: Sql, host: string, addressOf: AddressOf): LookUpNode {
  const known = new Map<string, Address>()
  return async (nodeId) => {
    try {
      const node = await findAnyNode(sql, nodeId)
      known.delete(nodeId)
      if (!node || node.deletedAt !== null) return 'not found'
      const address = node.host === host && node.desiredState === 'running' ? await addressOf(nodeId) : undefined
      if (!address) return 'down'
      known.set(nodeId, address)
      return address
    } catch (error) {
      const address = isStoreDown(error) ? known.get(nodeId) : undefined
      if (!address) throw error
      return address
    }
  }
}
