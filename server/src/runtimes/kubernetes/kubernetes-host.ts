import type { Config } from '../../config.ts'
import type { Address, AddressOf, NodeSpec, Runtime } from '../../nodes/runtime.ts'
import type { Logger } from '../../platform/log.ts'
import { StartFault } from '../../platform/start-fault.ts'
import type { ConfLines } from '../phoenix-conf.ts'
import { accessOfFile, accessOfPod } from './access.ts'
import { KubernetesClient } from './client.ts'
import { KubernetesRuntime } from './kubernetes-runtime.ts'
import { type OpenVolumes, openVolumesOf } from './moving/idle-volumes.ts'
import { KubernetesWallets } from './moving/wallets.ts'
import { NodeCache } from './node-cache.ts'
import { NodeObjects } from './node-objects.ts'
import { Pods } from './pods.ts'
import { removeNode } from './removal.ts'

export type KubernetesConfig = NonNullable<Config['kubernetes']>

export type KubernetesHost = {
  runtime: Runtime
  addressOf: AddressOf
  /** Only in the sandbox. */
  hubDoor: { address: Address; controlToken: () => string } | undefined
  /** How long ago each watch last received anything, by the resource that it watches. */
  staleMs: () => Record<string, number>
  /** Nodes that have objects older than this; undefined if not all objects are known. Absent with ROLE=api. */
  nodesSeen: ((minAgeMs: number) => string[] | undefined) | undefined
  /** Absent with ROLE=api. */
  openVolumes: OpenVolumes | undefined
  close: () => Promise<void>
}

export type KubernetesHostOptions = {
  config: Config
  kubernetes: KubernetesConfig
  /** Distinguishes the objects of this installation from those of others in the same cluster. */
  installation: string
  passwordOf: (nodeId: string) => Promise<string>
  log: Logger
}

const clientFor = ({ access }: KubernetesConfig): KubernetesClient =>
  new KubernetesClient('file' in access ? accessOfFile(access.file) : accessOfPod(access.host, access.port))

const confLinesFor =
  ({ hub }: KubernetesConfig, nodeCallbackUrl: string): ConfLines =>
  ({ controlToken }) =>
    hub
      ? [
          `sandbox-hub=${hub.nodeToken}@${hub.host}:${hub.port}`,
          // The hub runs in another pod. The node reports the port to the hub, which authenticates with the token.
          'sandbox-control=0.0.0.0:0',
          `sandbox-control-token=${controlToken}`,
          `sandbox-callback=${nodeCallbackUrl}`,
        ]
      : []

export type Removal = { remove: (node: NodeSpec) => Promise<void>; close: () => void }

/** For the reaper (ROLE=reaper), whose service account has no other rights. */
export function openRemoval(kubernetes: KubernetesConfig, installation: string): Removal {
  const client = clientFor(kubernetes)
  const objects = new NodeObjects(client, { namespace: kubernetes.namespace, installation })
  return { remove: (node) => removeNode(objects, node), close: () => client.close() }
}

/** For the commands that move wallets. */
export function openWallets(config: Config, kubernetes: KubernetesConfig, installation: string): KubernetesWallets {
  const { namespace, storageClass, storageSize, walletImage: image } = kubernetes
  if (image === undefined) throw new StartFault(78, 'WALLET_IMAGE: required to move wallets; set it to the image of this service')
  return new KubernetesWallets({
    objects: new NodeObjects(clientFor(kubernetes), { namespace, installation }),
    storage: { storageClass, storageSize },
    image,
    confLines: confLinesFor(kubernetes, config.nodeCallbackUrl),
  })
}

/** Loaded only with NODE_RUNTIME=kubernetes. */
export function openKubernetesHost({ config, kubernetes, installation, passwordOf, log }: KubernetesHostOptions): KubernetesHost {
  const { namespace, storageClass, storageSize, snapshotClass, hub } = kubernetes
  const { software, nodeCallbackUrl } = config
  const client = clientFor(kubernetes)
  const place = { namespace, installation }
  const pods = new Pods({ client, place, log })
  // A process with ROLE=api needs only the addresses of nodes, and has no right to read more.
  const cache = config.role === 'api' ? undefined : new NodeCache(pods, { client, place, log })
  const confLines = confLinesFor(kubernetes, nodeCallbackUrl)
  const objects = new NodeObjects(client, place)
  const runtime = new KubernetesRuntime({
    objects,
    pods,
    view: (nodeId) => cache?.view(nodeId),
    catalogue: software.versions ?? new Map(),
    chainArguments: software.kind === 'phoenixd' && software.chain === 'testnet' ? ['--chain=testnet'] : [],
    storage: { storageClass, storageSize },
    snapshotClass,
    confLines,
    passwordOf,
  })
  return {
    runtime,
    addressOf: runtime.address,
    hubDoor: hub && { address: { host: hub.host, port: hub.port }, controlToken: () => hub.controlToken },
    nodesSeen: cache && ((minAgeMs) => cache.nodesSeen(minAgeMs)),
    openVolumes: cache && openVolumesOf(objects),
    staleMs: () => ({ pods: pods.cache.staleMs, ...cache?.staleMs }),
    close: async () => {
      await Promise.all([pods.close(), cache?.close()])
      client.close()
    },
  }
}
