import { randomBytes, randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { inject } from 'vitest'
import { SERVER } from '../../../testing/bundles.ts'
import { imageOf, openTestCluster, SNAPSHOT_CLASS, STORAGE_CLASS, type TestCluster } from '../../../testing/kubernetes/cluster.ts'
import { grant, rulesIn } from '../../../testing/kubernetes/rights.ts'
import { silent } from '../../../testing/kubernetes/silent.ts'
import type { NodeMaterial } from '../../src/nodes/runtime.ts'
import type { ClusterAccess } from '../../src/runtimes/kubernetes/access.ts'
import { KubernetesClient } from '../../src/runtimes/kubernetes/client.ts'
import { KubernetesRuntime } from '../../src/runtimes/kubernetes/kubernetes-runtime.ts'
import { NodeCache } from '../../src/runtimes/kubernetes/node-cache.ts'
import { NodeObjects } from '../../src/runtimes/kubernetes/node-objects.ts'
import type { Place } from '../../src/runtimes/kubernetes/objects.ts'
import { Pods } from '../../src/runtimes/kubernetes/pods.ts'
import { program, sandboxd } from './crash.ts'
import { temporaryDirectory } from './server.ts'

export const hasNoPlane = (): boolean => inject('kubeconfig') === ''

export const newPlace = ({ namespace }: TestCluster): Place => ({ namespace, installation: randomUUID() })

const SERVICE = imageOf('service')

/** A cluster with images of the service and of the sandbox daemon 0.8.0 and 0.9.0; no other image can be pulled. */
export function openCluster(): Promise<TestCluster> {
  const software = temporaryDirectory()
  const images = new Map(['0.8.0', '0.9.0'].map((version) => [imageOf(version), sandboxd(software, version)]))
  images.set(SERVICE, program(software, 'service', `exec '${process.execPath}' '${SERVER}' "$@"`))
  return openTestCluster(inject('kubeconfig'), images)
}

export type RuntimeSetup = {
  cluster: TestCluster
  place: Place
  materialOf: (nodeId: string) => NodeMaterial
  access?: ClusterAccess
  /** How long a watch may receive nothing before the runtime gives it up. */
  silenceMs?: number
}
export type TestRuntime = {
  runtime: KubernetesRuntime
  client: KubernetesClient
  pods: Pods
  cache: NodeCache
  close: () => Promise<void>
}

export function openRuntime({
  cluster,
  place,
  materialOf,
  access = cluster.access,
  silenceMs = 90_000,
}: RuntimeSetup): TestRuntime {
  const { hub } = cluster
  const client = new KubernetesClient(access)
  const cacheOptions = { client, place, log: silent, silenceMs, firstPauseMs: 100 }
  const pods = new Pods(cacheOptions)
  const cache = new NodeCache(pods, cacheOptions)
  const runtime = new KubernetesRuntime({
    objects: new NodeObjects(client, place),
    pods,
    view: (nodeId) => cache.view(nodeId),
    catalogue: new Map(['0.8.0', '0.9.0', '1.0.0'].map((version) => [version, imageOf(version)])),
    chainArguments: [],
    storage: { storageClass: STORAGE_CLASS, storageSize: '1Gi' },
    snapshotClass: SNAPSHOT_CLASS,
    confLines: ({ controlToken }) => [
      `sandbox-hub=${hub.nodeToken}@${hub.host}:${hub.port}`,
      'sandbox-control=0.0.0.0:0',
      `sandbox-control-token=${controlToken}`,
    ],
    passwordOf: async (nodeId) => materialOf(nodeId).restrictedPassword,
  })
  const close = async (): Promise<void> => {
    await Promise.all([pods.close(), cache.close()])
    client.close()
  }
  return { runtime, client, pods, cache, close }
}

const PAGE = readFileSync(new URL('../../../docs/kubernetes.md', import.meta.url), 'utf8')

export const imagesOf = (...names: string[]): string => names.map((name) => `${name}=${imageOf(name)}`).join(',')

/** A kubeconfig for a service account with exactly the documented rights. It reaches the API server through `access`. */
export async function kubeconfigFor(cluster: TestCluster, name: string, access = cluster.access): Promise<string> {
  const { admin, namespace } = cluster
  return grant(admin, access, namespace, name, rulesIn(PAGE).get(name) ?? [], join(temporaryDirectory(), name))
}

/** The environment of a replica with ROLE=all, which can run version 0.8.0. */
export function replicaEnv({ namespace, hub }: TestCluster, kubeconfig: string): Record<string, string> {
  return {
    NODE_RUNTIME: 'kubernetes',
    NODE_NAMESPACE: namespace,
    KUBECONFIG: kubeconfig,
    NODE_VERSIONS: imagesOf('0.8.0'),
    NODE_STORAGE_CLASS: STORAGE_CLASS,
    NODE_SNAPSHOT_CLASS: SNAPSHOT_CLASS,
    NODE_CALLBACK_URL: 'http://127.0.0.1:1',
    WALLET_IMAGE: SERVICE,
    SANDBOX_HUB: `${hub.host}:${hub.port}`,
    SANDBOX_HUB_NODE_TOKEN: hub.nodeToken,
    SANDBOX_HUB_CONTROL_TOKEN: hub.controlToken,
    OPERATOR_TOKEN: randomBytes(16).toString('hex'),
    PROVISION_DEADLINE_SECONDS: '30',
  }
}
