import { Agent } from 'node:http'
import type { Duplex } from 'node:stream'

/** A running node's own API: phoenixd's, or the sandbox daemon's, which is the same. */
export type NodeAddress = {
  host: string
  port: number
  /** Whether it is the node that listens there now: the first thing sent to it is a password. */
  isGenuine?: () => boolean
}

type Connect = Agent['createConnection']

/** Connects only where the node itself listens, as far as its address can tell. */
export class NodeAgent extends Agent {
  override createConnection(...[options, callback]: Parameters<Connect>): Duplex | null | undefined {
    const { isGenuine } = options as Partial<NodeAddress>
    if (!isGenuine || isGenuine()) return super.createConnection(options, callback)
    const refusal = Object.assign(new Error('the node does not listen on its port'), { code: 'ECONNREFUSED' })
    callback?.(refusal, undefined as unknown as Duplex)
    return undefined
  }
}
