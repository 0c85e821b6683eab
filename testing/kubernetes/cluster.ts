import { type ChildProcess, spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { accessOfFile, type ClusterAccess } from '../../server/src/runtimes/kubernetes/access.ts'
import { KubernetesClient } from '../../server/src/runtimes/kubernetes/client.ts'
import type { Resource } from '../../server/src/runtimes/kubernetes/types.ts'
import { SANDBOXD } from '../bundles.ts'
import { eventually } from '../eventually.ts'
import { Kubelet } from './kubelet.ts'
import { SNAPSHOT_CLASS, STORAGE_CLASS, Volumes } from './volumes.ts'

export type TestHub = { host: string; port: number; nodeToken: string; controlToken: string }

/** A namespace with everything the chart would create in it, a machine that runs its pods, volumes, and a sandbox hub. */
export type TestCluster = {
  access: ClusterAccess
  /** A client with the administrator's rights. */
  admin: KubernetesClient
  namespace: string
  kubelet: Kubelet
  volumes: Volumes
  hub: TestHub
  close: () => Promise<void>
}

/** The reference of an image that does not exist. The test kubelet runs a program in its place. */
export const imageOf = (name: string): string => `boltyard.test/node@sha256:${createHash('sha256').update(name).digest('hex')}`

export async function openTestCluster(kubeconfig: string, images: Map<string, string>): Promise<TestCluster> {
  const access = accessOfFile(kubeconfig)
  const admin = new KubernetesClient(access)
  const namespace = `test-${randomBytes(4).toString('hex')}`
  const directory = mkdtempSync(join(tmpdir(), 'boltyard-cluster-'))
  for (const [path, object] of objects(namespace)) await admin.create(path, object)
  await eventually(() => admin.list('/apis/snapshot.storage.k8s.io/v1/volumesnapshots', {}), 'the snapshot API')
  const machine = `machine-${namespace}`
  const volumes = new Volumes(admin, namespace, directory, machine)
  const claimDirectory = (uid: string): string => volumes.claimDirectory(uid)
  const kubelet = await Kubelet.start({ client: admin, namespace, name: machine, directory, images, claimDirectory })
  const { hub, child } = await startHub(directory)
  const close = async (): Promise<void> => {
    await kubelet.close()
    await volumes.close()
    child.kill('SIGKILL')
    admin.close()
    rmSync(directory, { recursive: true, force: true })
  }
  return { access, admin, namespace, kubelet, volumes, hub, close }
}

function objects(namespace: string): [path: string, object: Resource][] {
  const core = `/api/v1/namespaces/${namespace}`
  const name = 'volumesnapshots.snapshot.storage.k8s.io'
  const anything = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
  const version = {
    name: 'v1',
    served: true,
    storage: true,
    subresources: { status: {} },
    schema: { openAPIV3Schema: { type: 'object', properties: { spec: anything, status: anything } } },
  }
  const names = { kind: 'VolumeSnapshot', plural: 'volumesnapshots', singular: 'volumesnapshot' }
  const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' }
  const list: [string, object][] = [
    ['/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels } }],
    [
      `${core}/serviceaccounts`,
      { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'node' }, automountServiceAccountToken: false },
    ],
    [
      '/apis/storage.k8s.io/v1/storageclasses',
      {
        apiVersion: 'storage.k8s.io/v1',
        kind: 'StorageClass',
        metadata: { name: STORAGE_CLASS },
        provisioner: 'boltyard.dev/test',
        reclaimPolicy: 'Retain',
      },
    ],
    [
      '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
      {
        apiVersion: 'apiextensions.k8s.io/v1',
        kind: 'CustomResourceDefinition',
        metadata: {
          name,
          annotations: { 'api-approved.kubernetes.io': 'unapproved, a stand-in for tests' },
        },
        spec: { group: 'snapshot.storage.k8s.io', scope: 'Namespaced', names, versions: [version] },
      },
    ],
  ]
  return list as [string, Resource][]
}

async function startHub(directory: string): Promise<{ hub: TestHub; child: ChildProcess }> {
  const dataDir = join(directory, 'hub')
  mkdirSync(dataDir)
  const [nodeToken, controlToken] = [randomBytes(16).toString('hex'), randomBytes(16).toString('hex')]
  writeFileSync(join(dataDir, 'hub.conf'), `node-token=${nodeToken}\ncontrol-token=${controlToken}\n`)
  const child = spawn(process.execPath, [SANDBOXD, 'hub', `--datadir=${dataDir}`, '--http-bind-port=0'], { stdio: 'ignore' })
  await once(child, 'spawn')
  const conf = join(dataDir, 'node.conf')
  const line = await eventually(() => (existsSync(conf) ? /:(\d+)\s*$/.exec(readFileSync(conf, 'utf8')) : null), 'the hub')
  return { hub: { host: '127.0.0.1', port: Number(line[1]), nodeToken, controlToken }, child }
}

export { SNAPSHOT_CLASS, STORAGE_CLASS }
