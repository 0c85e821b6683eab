import { Agent } from 'node:http'
import type { Duplex } from 'node:stream'

/** Where a daemon of ours, a node or the sandbox's hub, serves HTTP. */
export type NodeAddress = {
  host: string
  port: number
  /** Whether it is that daemon that listens there now: the first thing sent to it is a password. */
  isGenuine?: () => boolean
}

type Connect = Agent['createConnection']

/** Connects only where the daemon itself listens, as far as its address can tell. */
export class NodeAgent extends Agent {
  override createConnection(...[options, callback]: Parameters<Connect>): Duplex | null | undefined {
    const { isGenuine } = options as Partial<NodeAddress>
    if (!isGenuine || isGenuine()) return super.createConnection(options, callback)
    const refusal = Object.assign(new Error('the node does not listen on its port'), { code: 'ECONNREFUSED' })
    callback?.(refusal, undefined as unknown as Duplex)
    return undefined
  }
}

/** Shorter than any daemon waits for a next request (Ktor 45 s, node:http 5 s), so that we never write to a connection it is closing. */
export const IDLE_CONNECTION_MS = 4_000

/** Keeps connections for the next request. They are limited per address: a slow node exhausts only its own. */
export const keepingAgent = (maxSockets: number): NodeAgent =>
  new NodeAgent({ keepAlive: true, maxSockets, timeout: IDLE_CONNECTION_MS })

/** For what must neither wait behind a node's other requests nor meet a connection that is already dead. */
export const freshAgent = new NodeAgent({ keepAlive: false })
