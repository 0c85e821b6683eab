import { fileURLToPath } from 'node:url'
import type { Config } from './config.ts'
import { type AccessTo, accessTo } from './nodes/access.ts'
import type { Network } from './nodes/lightning-id.ts'
import { type LookUpNode, lookUpNodeOn } from './nodes/look-up.ts'
import { openMaterial } from './nodes/material.ts'
import { IdleVolumes } from './nodes/moving/idle-volumes.ts'
import { nodeEventReceiver, type ReceiveNodeEvent } from './nodes/node-events.ts'
import { Orphans } from './nodes/orphans.ts'
import { startPurges } from './nodes/purges.ts'
import { Reaper } from './nodes/reaper.ts'
import { Reconciler } from './nodes/reconciler.ts'
import type { AddressOf, NodeMaterial, Runtime } from './nodes/runtime.ts'
import { type ReportSilence, silenceReporter } from './nodes/silence.ts'
import { hostIdOf } from './platform/data-dir.ts'
import type { Logger } from './platform/log.ts'
import type { MasterKey } from './platform/secrets.ts'
import type { OpenVolumes } from './runtimes/kubernetes/moving/idle-volumes.ts'
import { addressIn } from './runtimes/process/address.ts'
import { moveEarlierState } from './runtimes/process/earlier-state.ts'
import { HubProcess } from './runtimes/process/hub-process.ts'
import { Places } from './runtimes/process/places.ts'
import { ProcessRuntime } from './runtimes/process/process-runtime.ts'
import { installSoftware, versionsOf } from './runtimes/process/software.ts'
import { Hub, type HubDoor } from './sandbox/hub.ts'
import { Settlements } from './settlements/settlements.ts'
import type { NoteChange } from './store/changes.ts'
import type { Database } from './store/db.ts'
import { checkAllWithin, placesBefore, takeOverHost, wakeNode } from './store/nodes/steps.ts'
import { installationOf } from './store/settings.ts'

/** The repository root is two folders up, from this file and from the bundle. */
const SANDBOX_DAEMON = fileURLToPath(new URL('../../sandboxd/dist/sandboxd.cjs', import.meta.url))

/** After the start of a replica, all nodes are checked once within this time. */
const CHECK_ALL_MS = 30_000

/** Where this process runs nodes, and how the rest of the service reaches them. */
export type NodeHost = {
  network: Network
  host: string
  versions: string[]
  /** Why no node can be updated here, in words for its owner. Undefined if nodes can be updated. */
  whyNoUpdates: string | undefined
  /** Undefined in a process that only serves the API. */
  runtime: Runtime | undefined
  /** Only in the sandbox. */
  hub: Hub | undefined
  wake: () => void
  lookUpNode: LookUpNode
  accessTo: AccessTo
  reportSilence: ReportSilence
  settlements: Settlements
  receiveNodeEvent: ReceiveNodeEvent
  /** How long ago each watch of the Kubernetes API server last received anything, by resource. Empty on a single machine. */
  watchStaleMs: () => Record<string, number>
  /** How many nodes exist in the cluster but not in the database; undefined if unknown. */
  orphanedNodes: () => number | undefined
  close: () => Promise<void>
}

export type NodeHostOptions = { config: Config; sql: Database; masterKeys: MasterKey[]; noteChange: NoteChange; log: Logger }

export async function openNodeHost(options: NodeHostOptions): Promise<NodeHost> {
  const { config, sql, masterKeys, noteChange, log } = options
  const { software, kubernetes } = config
  const materialOf = (nodeId: string): Promise<NodeMaterial> => openMaterial(sql, masterKeys, nodeId)
  const quarters = kubernetes ? await openKubernetes(options, kubernetes, materialOf) : await openProcesses(options, materialOf)
  const { host, addressOf, runtime, hubDoor } = quarters
  const access = accessTo(sql, masterKeys, host, addressOf)
  const common = {
    network: software.kind === 'sandbox' ? 'regtest' : software.chain,
    host,
    versions: quarters.versions,
    whyNoUpdates: quarters.whyNoUpdates,
    hub: hubDoor && new Hub(hubDoor),
    lookUpNode: lookUpNodeOn(sql, host, addressOf),
    accessTo: access,
    reportSilence: silenceReporter((nodeId) => wakeNode(sql, nodeId), log),
    watchStaleMs: quarters.watchStaleMs,
  } as const
  if (!runtime) {
    const settlements = new Settlements({ sql, accessTo: access, host: undefined, noteChange, log })
    return {
      ...common,
      runtime: undefined,
      wake: () => undefined,
      settlements,
      receiveNodeEvent: nodeEventReceiver(access, settlements),
      orphanedNodes: () => undefined,
      close: async () => {
        await settlements.close()
        await quarters.close()
      },
    }
  }
  const settlements = new Settlements({ sql, accessTo: access, host, noteChange, log })
  const beforeStop = async (nodeId: string): Promise<void> => {
    const address = await runtime.address(nodeId)
    if (address) await settlements.askBeforeStop(nodeId, address)
  }
  const deadlines = { provisionMs: config.provisionDeadlineMs }
  const claims = kubernetes ? 'not purging' : 'all'
  const reconciler = new Reconciler({ sql, runtime, host, claims, deadlines, materialOf, beforeStop, log })
  const wake = (): void => reconciler.wake()
  // On Kubernetes, the leases may belong to other replicas that are alive.
  if (kubernetes) await checkAllWithin(sql, host, CHECK_ALL_MS)
  else await takeOverHost(sql, host)
  wake()
  const endWatch = runtime.watch(async (nodeId) => {
    try {
      await wakeNode(sql, nodeId)
    } catch (error) {
      log.warn({ err: error, nodeId }, 'cannot record that a node has changed; will retry')
      throw error
    }
    wake()
  })
  const { nodesSeen, openVolumes } = quarters
  const orphans = nodesSeen && new Orphans({ sql, nodesSeen, log })
  const idleVolumes = openVolumes && new IdleVolumes({ sql, volumes: openVolumes, log })
  const purges = kubernetes ? undefined : startPurges({ sql, host, retentionDays: config.retentionDays, wake, log })
  return {
    ...common,
    runtime,
    wake,
    settlements,
    receiveNodeEvent: nodeEventReceiver(access, settlements),
    orphanedNodes: () => orphans?.count,
    close: async () => {
      endWatch()
      await orphans?.close()
      await idleVolumes?.close()
      purges?.stop()
      await settlements.close()
      await reconciler.stop()
      await quarters.close()
    },
  }
}

export type ReaperOptions = Pick<NodeHostOptions, 'config' | 'sql' | 'log'>

/** For ROLE=reaper. */
export async function openReaper({ config, sql, log }: ReaperOptions): Promise<{ close: () => Promise<void> }> {
  const { kubernetes, retentionDays } = config
  if (!kubernetes) throw new Error('only Kubernetes has a reaper')
  const { openRemoval } = await import('./runtimes/kubernetes/kubernetes-host.ts')
  const host = await installationOf(sql)
  const { remove, close } = openRemoval(kubernetes, host)
  const reaper = new Reaper({ sql, remove, host, retentionDays, log })
  return {
    close: async () => {
      await reaper.close()
      close()
    },
  }
}

/** Where nodes run: on Kubernetes or on this machine. */
type Quarters = {
  host: string
  addressOf: AddressOf
  versions: string[]
  /** Why no node can be updated here, in words for its owner. */
  whyNoUpdates: string | undefined
  /** Undefined in a process that only serves the API. */
  runtime: Runtime | undefined
  hubDoor: HubDoor | undefined
  watchStaleMs: () => Record<string, number>
  /**
   * Nodes that have objects in the cluster older than `minAgeMs`; undefined if the list may be incomplete. Only on Kubernetes.
   */
  nodesSeen: ((minAgeMs: number) => string[] | undefined) | undefined
  /** Only on Kubernetes. */
  openVolumes: OpenVolumes | undefined
  close: () => Promise<void>
}

type MaterialOf = (nodeId: string) => Promise<NodeMaterial>

const NO_SNAPSHOTS =
  'Nodes cannot be updated on this installation: it has no volume snapshots, so the data cannot be copied before an update. Ask the operator.'

/** All replicas have the same host: any of them can reach and change any node. */
async function openKubernetes(
  { config, sql, log }: NodeHostOptions,
  kubernetes: NonNullable<Config['kubernetes']>,
  materialOf: MaterialOf,
): Promise<Quarters> {
  const { openKubernetesHost } = await import('./runtimes/kubernetes/kubernetes-host.ts')
  const installation = await installationOf(sql)
  const passwordOf = async (nodeId: string): Promise<string> => (await materialOf(nodeId)).restrictedPassword
  const { runtime, addressOf, hubDoor, staleMs, nodesSeen, openVolumes, close } = openKubernetesHost({
    config,
    kubernetes,
    installation,
    passwordOf,
    log,
  })
  return {
    host: installation,
    addressOf,
    versions: runtime.versions,
    whyNoUpdates: kubernetes.snapshotClass === undefined ? NO_SNAPSHOTS : undefined,
    runtime: config.role === 'api' ? undefined : runtime,
    hubDoor,
    watchStaleMs: staleMs,
    nodesSeen,
    openVolumes,
    close,
  }
}

async function openProcesses({ config, sql }: NodeHostOptions, materialOf: MaterialOf): Promise<Quarters> {
  const { dataDir, software, nodeUids: uids } = config
  const host = hostIdOf(dataDir)
  const common = {
    host,
    addressOf: addressIn(dataDir),
    whyNoUpdates: undefined,
    watchStaleMs: () => ({}),
    nodesSeen: undefined,
    openVolumes: undefined,
  }
  if (config.role === 'api') {
    const hubDoor = software.kind === 'sandbox' ? HubProcess.attach(dataDir) : undefined
    const close = async (): Promise<void> => undefined
    return { ...common, versions: versionsOf(software.versions), runtime: undefined, hubDoor, close }
  }
  await moveEarlierState(dataDir)
  const { catalogue, sandbox } = installSoftware(dataDir, SANDBOX_DAEMON, software.versions, uids)
  const places = new Places(dataDir, uids)
  for (const { id, ...place } of await placesBefore(sql, host)) places.adopt(id, place)
  const hubProcess = software.kind === 'sandbox' ? await HubProcess.start(dataDir, sandbox, places) : undefined
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
  const close = async (): Promise<void> => hubProcess?.leave()
  return { ...common, versions: runtime.versions, runtime, hubDoor: hubProcess, close }
}
