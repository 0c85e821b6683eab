import type { NodeAddress } from '../lightning/phoenixd/client.ts'
import { isStoreDown, type Sql } from '../store/db.ts'
import { findAnyNode } from '../store/nodes.ts'
import { localAddress } from './access.ts'

/** 'not found': no such (or a deleted) node. 'down': it exists but is not reachable here now. */
export type LookUpNode = (nodeId: string) => Promise<NodeAddress | 'not found' | 'down'>

/** For the node proxy. While the store is down, nodes that were reached before stay reachable. */
export function lookUpNodeOn(sql: Sql, host: string): LookUpNode {
  const known = new Map<string, NodeAddress>()
  return async (nodeId) => {
    try {
      const node = await findAnyNode(sql, nodeId)
      known.delete(nodeId)
      if (!node || node.deletedAt !== null) return 'not found'
      if (node.host !== host || node.port === null || node.desiredState !== 'running') return 'down'
      const address = localAddress({ port: node.port, uid: node.uid })
      known.set(nodeId, address)
      return address
    } catch (error) {
      const address = isStoreDown(error) ? known.get(nodeId) : undefined
      if (!address) throw error
      return address
    }
  }
}
