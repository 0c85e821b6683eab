import { fileURLToPath } from 'node:url'
import type { Config } from './config.ts'
import { type AccessTo, accessTo } from './nodes/access.ts'
import type { Network } from './nodes/lightning-id.ts'
import { type LookUpNode, lookUpNodeOn } from './nodes/look-up.ts'
import { openMaterial } from './nodes/material.ts'
import { nodeEventReceiver, type ReceiveNodeEvent } from './nodes/node-events.ts'
import { startPurges } from './nodes/purges.ts'
import { Reconciler } from './nodes/reconciler.ts'
import type { NodeMaterial, Runtime } from './nodes/runtime.ts'
import { hostIdOf } from './platform/data-dir.ts'
import type { Logger } from './platform/log.ts'
import type { MasterKey } from './platform/secrets.ts'
import { addressIn } from './runtimes/process/address.ts'
import { moveEarlierState } from './runtimes/process/earlier-state.ts'
import { HubProcess } from './runtimes/process/hub-process.ts'
import { Places } from './runtimes/process/places.ts'
import { ProcessRuntime } from './runtimes/process/process-runtime.ts'
import { installSoftware, versionsOf } from './runtimes/process/software.ts'
import { Hub } from './sandbox/hub.ts'
import { Settlements } from './settlements/settlements.ts'
import type { NoteChange } from './store/changes.ts'
import type { Sql } from './store/db.ts'
import { findAnyNode } from './store/nodes/nodes.ts'
import { placesBefore, takeOverHost, wakeNode } from './store/nodes/steps.ts'

/** The repository root is two folders up, from this file and from the bundle. */
const SANDBOX_DAEMON = fileURLToPath(new URL('../../sandboxd/dist/sandboxd.cjs', import.meta.url))

/** Where this process runs nodes, and how the rest of the service reaches them. */
export type NodeHost = {
  network: Network
  host: string
  versions: string[]
  /** Undefined in a process that only serves the API. */
  runtime: Runtime | undefined
  /** Only in the sandbox. */
  hub: Hub | undefined
  wake: () => void
  lookUpNode: LookUpNode
  accessTo: AccessTo
  settlements: Settlements
  receiveNodeEvent: ReceiveNodeEvent
  close: () => Promise<void>
}

export type NodeHostOptions = { config: Config; sql: Sql; masterKeys: MasterKey[]; noteChange: NoteChange; log: Logger }

export async function openNodeHost(options: NodeHostOptions): Promise<NodeHost> {
  const { config, sql, masterKeys, noteChange, log } = options
  const { software } = config
  const host = hostIdOf(config.dataDir)
  const addressOf = addressIn(config.dataDir)
  const access = accessTo(sql, masterKeys, host, addressOf)
  const common = {
    network: software.kind === 'sandbox' ? 'regtest' : software.chain,
    host,
    lookUpNode: lookUpNodeOn(sql, host, addressOf),
    accessTo: access,
  } as const
  if (config.role === 'api') {
    const settlements = new Settlements({ sql, accessTo: access, host: undefined, noteChange, log })
    const hubProcess = software.kind === 'sandbox' ? HubProcess.attach(config.dataDir) : undefined
    return {
      ...common,
      versions: versionsOf(software.versions),
      runtime: undefined,
      hub: hubProcess && new Hub(hubProcess),
      wake: () => undefined,
      settlements,
      receiveNodeEvent: nodeEventReceiver(access, settlements),
      close: () => settlements.close(),
    }
  }
  const { runtime, hubProcess, materialOf } = await openProcessRuntime(options, host)
  const settlements = new Settlements({ sql, accessTo: access, host, noteChange, log })
  const beforeStop = async (nodeId: string): Promise<void> => {
    const address = await runtime.address(nodeId)
    if (address) await settlements.askBeforeStop(nodeId, address)
  }
  const deadlines = { provisionMs: config.provisionDeadlineMs }
  const reconciler = new Reconciler({ sql, runtime, host, deadlines, materialOf, beforeStop, log })
  const wake = (): void => reconciler.wake()
  await takeOverHost(sql, host)
  wake()
  const endWatch = runtime.watch(async (nodeId) => {
    try {
      await wakeNode(sql, nodeId)
    } catch (error) {
      log.warn({ err: error, nodeId }, 'cannot record that a node has exited; will retry')
      throw error
    }
    wake()
  })
  const purges = startPurges({ sql, host, retentionDays: config.retentionDays, wake, log })
  return {
    ...common,
    versions: runtime.versions,
    runtime,
    hub: hubProcess && new Hub(hubProcess),
    wake,
    settlements,
    receiveNodeEvent: nodeEventReceiver(access, settlements),
    close: async () => {
      endWatch()
      purges.stop()
      await settlements.close()
      hubProcess?.leave()
      await reconciler.stop()
    },
  }
}

async function openProcessRuntime({ config, sql, masterKeys }: NodeHostOptions, host: string) {
  const { dataDir, software, nodeUids: uids } = config
  await moveEarlierState(dataDir)
  const { catalogue, sandbox } = installSoftware(dataDir, SANDBOX_DAEMON, software.versions, uids)
  const places = new Places(dataDir, uids)
  for (const { id, ...place } of await placesBefore(sql, host)) places.adopt(id, place)
  const hubProcess = software.kind === 'sandbox' ? await HubProcess.start(dataDir, sandbox, places) : undefined
  const materialOf = async (nodeId: string): Promise<NodeMaterial> => {
    const node = await findAnyNode(sql, nodeId)
    if (!node) throw new Error(`no node ${nodeId}`)
    return openMaterial(sql, masterKeys, node.accountId, nodeId)
  }
  const chainArguments = software.kind === 'phoenixd' && software.chain === 'testnet' ? ['--chain=testnet'] : []
  const runtime = new ProcessRuntime({
    dataDir,
    catalogue: new Map([...catalogue].map(([version, command]) => [version, [...command, ...chainArguments]])),
    places,
    confLines: ({ controlToken }) =>
      hubProcess
        ? [
            `sandbox-hub=${hubProcess.nodeAddress}`,
            `sandbox-control-token=${controlToken}`,
            `sandbox-callback=${config.nodeCallbackUrl}`,
          ]
        : [],
    passwordOf: async (nodeId) => (await materialOf(nodeId)).restrictedPassword,
  })
  return { runtime, hubProcess, materialOf }
}
