import { createHash } from 'node:crypto'

/** Derived from the node's id, so that its only channel has realistic ids that never change. */
const nameOf = (nodeId: string, what: string): string => createHash('sha256').update(`${what} of ${nodeId}`).digest('hex')

export const channelIdOf = (nodeId: string): string => nameOf(nodeId, 'channel')
export const fundingTxIdOf = (nodeId: string): string => nameOf(nodeId, 'funding transaction')
export const lightningAddressOf = (nodeId: string): string => `₿${nameOf(nodeId, 'address').slice(0, 12)}@sandbox.invalid`
