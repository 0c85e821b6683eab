import type { NodeAddress } from '../platform/node-agent.ts'

/** What we need to ask a node. Without an address, it is currently unreachable from here. */
export type AskableNode = { address: NodeAddress | undefined; password: () => string }
