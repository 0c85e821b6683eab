import { Agent } from 'node:http'
import type { Duplex } from 'node:stream'

/** Where one of our daemons, a node or the sandbox hub, serves HTTP. */
export type NodeAddress = {
  host: string
  port: number
  /** Whether our daemon is the one listening there now: the first thing we send is a password. */
  isGenuine?: () => boolean
}

type Connect = Agent['createConnection']

/** Connects only if the daemon itself is listening, as far as that can be checked for its address. */
export class NodeAgent extends Agent {
  override createConnection(...[options, callback]: Parameters<Connect>): Duplex | null | undefined {
    const { isGenuine } = options as Partial<NodeAddress>
    if (!isGenuine || isGenuine()) return super.createConnection(options, callback)
    const refusal = Object.assign(new Error('the node is not listening on its port'), { code: 'ECONNREFUSED' })
    callback?.(refusal, undefined as unknown as Duplex)
    return undefined
  }
}

/** Shorter than the keep-alive timeout of any daemon (Ktor 45 s, node:http 5 s), so that we never write to a connection it is closing. */
export const IDLE_CONNECTION_MS = 4_000

/** Keeps connections alive. They are limited per address, so a slow node exhausts only its own. */
export const keepingAgent = (maxSockets: number): NodeAgent =>
  new NodeAgent({ keepAlive: true, maxSockets, timeout: IDLE_CONNECTION_MS })

/** For requests that must neither queue behind a node's other requests nor reuse a connection that may be dead. */
export const freshAgent = new NodeAgent({ keepAlive: false })
