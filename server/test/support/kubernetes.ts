import { randomUUID } from 'node:crypto'
import { inject } from 'vitest'
import { imageOf, openTestCluster, SNAPSHOT_CLASS, STORAGE_CLASS, type TestCluster } from '../../../testing/kubernetes/cluster.ts'
import { silent } from '../../../testing/kubernetes/silent.ts'
import type { NodeMaterial } from '../../src/nodes/runtime.ts'
import type { ClusterAccess } from '../../src/runtimes/kubernetes/access.ts'
import { KubernetesClient } from '../../src/runtimes/kubernetes/client.ts'
import { KubernetesRuntime } from '../../src/runtimes/kubernetes/kubernetes-runtime.ts'
import { NodeObjects } from '../../src/runtimes/kubernetes/node-objects.ts'
import type { Place } from '../../src/runtimes/kubernetes/objects.ts'
import { Pods } from '../../src/runtimes/kubernetes/pods.ts'
import { sandboxd } from './crash.ts'
import { temporaryDirectory } from './server.ts'

export const hasNoPlane = (): boolean => inject('kubeconfig') === ''

export const newPlace = ({ namespace }: TestCluster): Place => ({ namespace, installation: randomUUID() })

/** A cluster with images of the sandbox daemon 0.8.0 and 0.9.0; no other image can be pulled. */
export function openCluster(): Promise<TestCluster> {
  const software = temporaryDirectory()
  const images = new Map(['0.8.0', '0.9.0'].map((version) => [imageOf(version), sandboxd(software, version)]))
  return openTestCluster(inject('kubeconfig'), images)
}

export type RuntimeSetup = {
  cluster: TestCluster
  place: Place
  materialOf: (nodeId: string) => NodeMaterial
  access?: ClusterAccess
  /** How long a watch may receive nothing before it is given up. */
  silenceMs?: number
}
export type TestRuntime = { runtime: KubernetesRuntime; client: KubernetesClient; pods: Pods; close: () => Promise<void> }

export function openRuntime({
  cluster,
  place,
  materialOf,
  access = cluster.access,
  silenceMs = 90_000,
}: RuntimeSetup): TestRuntime {
  const { hub } = cluster
  const client = new KubernetesClient(access)
  const pods = new Pods({ client, place, log: silent, silenceMs, firstPauseMs: 100 })
  const runtime = new KubernetesRuntime({
    objects: new NodeObjects(client, place),
    pods,
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
    await pods.close()
    client.close()
  }
  return { runtime, client, pods, close }
}
