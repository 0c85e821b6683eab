import { join } from 'node:path'
import type { Address, AddressOf } from '../../nodes/runtime.ts'
import { serviceDirectory } from '../../platform/data-dir.ts'
import { listenerUid } from '../../platform/linux.ts'
import { Daemon } from './daemon.ts'

const ROOT = 0

/**
 * While a daemon is down, another user of the machine can take its port. So the listener must belong to the daemon's own user, or
 * to root, who can read its password anyway.
 */
export function localAddress({ port, uid }: { port: number; uid: number }): Address {
  const isGenuine = (): boolean => {
    const listener = listenerUid(port)
    return listener === uid || listener === ROOT
  }
  return { host: '127.0.0.1', port, isGenuine }
}

export const daemonIn = (dataDir: string, kind: 'nodes' | '', name: string): Daemon =>
  new Daemon(join(dataDir, kind, name), join(serviceDirectory(dataDir), name))

/** Reads the record of the node's last start, so that a process with ROLE=api knows the address too. */
export function addressIn(dataDir: string): AddressOf {
  return async (nodeId) => {
    const run = daemonIn(dataDir, 'nodes', nodeId).read()
    return run && localAddress(run)
  }
}
