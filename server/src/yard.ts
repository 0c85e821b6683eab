import { randomUUID } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FastifyBaseLogger } from 'fastify'
import type { Config } from './config.ts'
import { receiptOf } from './gateway/payments.ts'
import type { LookUpNode } from './http/node-proxy/proxy.ts'
import type { NodeAddress } from './lightning/phoenixd/client.ts'
import { type AccessTo, accessTo, localAddress } from './nodes/access.ts'
import { type Network, openMaterial } from './nodes/material.ts'
import { Reconciler } from './nodes/reconciler.ts'
import type { NodeMaterial, Runtime } from './nodes/runtime.ts'
import { writeSecretFile } from './platform/data-dir.ts'
import { type MasterKey, masterKeyOf } from './platform/secrets.ts'
import { moveEarlierState } from './runtimes/process/earlier-state.ts'
import { ProcessRuntime } from './runtimes/process/process-runtime.ts'
import { installSoftware, versionsOf } from './runtimes/process/software.ts'
import { Hub } from './sandbox/hub.ts'
import { Settlements } from './settlements/settlements.ts'
import { isStoreDown, type Sql } from './store/db.ts'
import { beginPurges, findAnyNode, type NodeRow, takeOverHost, uidsOf, wakeNode } from './store/nodes.ts'

const WATCH_MS = 500
const PURGE_EVERY_MS = 60_000

/** Where the nodes of this process live: runtime, reconciler and, in the sandbox, the hub. */
export type Yard = {
  network: Network
  host: string
  /** The present one first; then the one of before, while there is one. */
  masterKeys: MasterKey[]
  versions: string[]
  runtime: Runtime | undefined
  hub: Hub | undefined
  wake: () => void
  lookUpNode: LookUpNode
  accessTo: AccessTo
  settlements: Settlements
  close: () => Promise<void>
}

export async function openYard(config: Config, sql: Sql, master: MasterKey, log: FastifyBaseLogger): Promise<Yard> {
  const host = hostIdOf(config.dataDir)
  const { software } = config
  const network = software.kind === 'sandbox' ? 'regtest' : software.chain
  // While the store is down nodes that were reached before stay reachable.
  const known = new Map<string, NodeAddress>()
  const lookUpNode: LookUpNode = async (nodeId) => {
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
  const masterKeys = [master, ...(config.previousMasterKey ? [masterKeyOf(config.previousMasterKey)] : [])]
  const access = accessTo(sql, masterKeys, host)
  if (config.role === 'api') {
    const settlements = new Settlements({ sql, accessTo: access, receiptOf, host: undefined, log })
    const hub = software.kind === 'sandbox' ? Hub.attach(config.dataDir) : undefined
    const wake = (): void => undefined
    return {
      network,
      host,
      masterKeys,
      versions: versionsOf(software.versions),
      runtime: undefined,
      hub,
      wake,
      lookUpNode,
      accessTo: access,
      settlements,
      close: () => settlements.close(),
    }
  }
  await moveEarlierState(config.dataDir)
  const uids = config.nodeUids
  const { catalogue, sandbox } = installSoftware(config.dataDir, software.versions, uids)
  const hub = software.kind === 'sandbox' ? await Hub.start(config.dataDir, sandbox, uids, await uidsOf(sql, host)) : undefined
  const materialOf = async (nodeId: string): Promise<NodeMaterial> => {
    const node = await findAnyNode(sql, nodeId)
    if (!node) throw new Error(`no node ${nodeId}`)
    return openMaterial(sql, masterKeys, node.accountId, nodeId)
  }
  const chainArguments = software.kind === 'phoenixd' && software.chain === 'testnet' ? ['--chain=testnet'] : []
  const runtime = new ProcessRuntime({
    sql,
    dataDir: config.dataDir,
    catalogue: new Map([...catalogue].map(([version, command]) => [version, [...command, ...chainArguments]])),
    uids,
    hubUid: hub?.uid,
    confLines: ({ controlToken }) =>
      hub
        ? [`sandbox-hub=${hub.address}`, `sandbox-control-token=${controlToken}`, `sandbox-callback=${config.nodeCallbackUrl}`]
        : [],
    passwordOf: async (nodeId) => (await materialOf(nodeId)).restrictedPassword,
  })
  const deadlines = { provisionMs: config.provisionDeadlineMs }
  const settlements = new Settlements({ sql, accessTo: access, receiptOf, host, log })
  const beforeStop = async ({ id, port, uid }: NodeRow): Promise<void> => {
    if (port !== null) await settlements.askBeforeStop(id, localAddress({ port, uid }))
  }
  const reconciler = new Reconciler({ sql, runtime, host, deadlines, materialOf, beforeStop, log })
  await takeOverHost(sql, host)
  reconciler.wake()
  const watch = setInterval(() => {
    for (const nodeId of runtime.takeExits()) {
      wakeNode(sql, nodeId).then(
        () => reconciler.wake(),
        (error: unknown) => {
          runtime.returnExit(nodeId)
          log.warn({ err: error, nodeId }, 'a node has exited; it is looked at when the store is back')
        },
      )
    }
  }, WATCH_MS)

  const purge = (): void => {
    beginPurges(sql, host, config.retentionDays).then(
      (nodeIds) => {
        for (const nodeId of nodeIds) log.info({ nodeId }, 'the retention of a deleted node is over: its data is removed')
        if (nodeIds.length > 0) reconciler.wake()
      },
      (error: unknown) => log.warn({ err: error }, 'cannot look for deleted nodes past their retention'),
    )
  }
  purge()
  const purging = setInterval(purge, PURGE_EVERY_MS)

  return {
    network,
    host,
    masterKeys,
    versions: runtime.versions,
    runtime,
    hub,
    wake: () => reconciler.wake(),
    lookUpNode,
    accessTo: access,
    settlements,
    close: async () => {
      clearInterval(watch)
      clearInterval(purging)
      await settlements.close()
      hub?.leave()
      await reconciler.stop()
    },
  }
}

/** Written once: nodes belong to the host that made them. */
function hostIdOf(dataDir: string): string {
  const path = join(dataDir, 'host.id')
  if (!existsSync(path)) writeSecretFile(path, randomUUID())
  return readFileSync(path, 'utf8').trim()
}
