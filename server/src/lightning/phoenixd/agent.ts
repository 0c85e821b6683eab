import { Agent } from 'node:http'
import type { Duplex } from 'node:stream'
import { listenerUid } from '../../platform/linux.ts'

type Connect = Agent['createConnection']
const ROOT = 0

/**
 * Connects to a node only where that node's own user listens. While a node is down another user of the machine can take its port, and
 * the first thing that is sent there is a password. Root is believed: it can read the passwords anyway.
 */
export class NodeAgent extends Agent {
  override createConnection(...[options, callback]: Parameters<Connect>): Duplex | null | undefined {
    const { port, uid } = options as { port?: number; uid?: number }
    if (uid === undefined || port === undefined) return super.createConnection(options, callback)
    const listener = listenerUid(Number(port))
    if (listener === uid || listener === ROOT) return super.createConnection(options, callback)
    const refusal = Object.assign(new Error('the node does not listen on its port'), { code: 'ECONNREFUSED' })
    callback?.(refusal, undefined as unknown as Duplex)
    return undefined
  }
}
