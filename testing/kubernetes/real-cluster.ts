import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { accessOfFile } from '../../server/src/runtimes/kubernetes/access.ts'
import { KubernetesClient } from '../../server/src/runtimes/kubernetes/client.ts'
import type { Resource } from '../../server/src/runtimes/kubernetes/types.ts'
import { debianPostgres, startDebianPostgres } from '../debian-postgres.ts'
import { hasRedis, TestRedis } from '../redis.ts'
import { ClusterDns } from './dns.ts'
import { buildImages, NODE_IMAGE } from './images.ts'
import { Ingress } from './ingress.ts'
import { planePrograms, startPlane, whyNoPlane } from './plane.ts'
import { run, SCRIPTS } from './scripts.ts'

/** A real control plane and a real machine that runs containers, with PostgreSQL and Redis outside the cluster. */
export type RealCluster = {
  directory: string
  /** Runs kubectl, helm or a shell that finds both, as the cluster's administrator. */
  run: (program: string, ...args: string[]) => Promise<string>
  databaseUrl: string
  redisUrl: string
  /** The image of a sandbox node, by its digest. */
  nodeImage: string
  storageClass: string
  ingress: Ingress
  close: () => Promise<void>
}

const PROGRAMS = ['docker', 'dockerd', 'containerd', 'runc', 'iptables', 'mmdebstrap', 'catatonit', 'python3', 'openssl']
const MACHINE = 'real-1'
const STORAGE_CLASS = 'retained'

/** Why no real cluster can run on this machine; undefined if one can. */
export function whyNoRealCluster(): string | undefined {
  const missing = PROGRAMS.filter((name) => spawnSync('which', [name]).status !== 0)
  if (!debianPostgres()) missing.push('initdb')
  if (!hasRedis()) missing.push('redis-server')
  return whyNoPlane() ?? (missing.length > 0 ? `these programs are missing: ${missing.join(', ')}` : undefined)
}

/** The service's image gets all of the tags. */
export async function openRealCluster({ tags }: { tags: string[] }): Promise<RealCluster> {
  const closers: (() => void | Promise<void>)[] = []
  const close = async (): Promise<void> => {
    const failures: unknown[] = []
    for (const closer of closers.splice(0).reverse())
      try {
        await closer()
      } catch (error) {
        failures.push(error)
      }
    if (failures.length > 0) throw new AggregateError(failures, 'some parts of the cluster could not be removed')
  }
  try {
    return { ...(await open(tags, (closer) => closers.push(closer))), close }
  } catch (error) {
    await close()
    throw error
  }
}

async function open(tags: string[], onClose: (closer: () => void | Promise<void>) => void): Promise<Omit<RealCluster, 'close'>> {
  const directory = mkdtempSync(join(tmpdir(), 'boltyard-real-'))
  onClose(async () => void (await run('rm', ['-rf', directory])))
  const programs = planePrograms()
  const archive = await buildImages(directory, tags)

  const machine = join(directory, 'machine')
  const node = (...args: string[]): Promise<string> => run(join(SCRIPTS, 'node.sh'), args, { env: { BIN: programs } })
  onClose(async () => void (await node('stop', machine)))
  const address = (await node('network', machine)).trim()
  const { kubeconfig, stop } = startPlane(address)
  onClose(stop)
  const admin = new KubernetesClient(accessOfFile(kubeconfig))
  onClose(() => admin.close())
  const dns = await ClusterDns.start(admin, address)
  onClose(() => dns.close())
  const { store, stop: stopPostgres } = await startDebianPostgres(debianPostgres() ?? '', address)
  onClose(stopPostgres)
  const redis = new TestRedis(randomBytes(16).toString('hex'), address)
  onClose(() => redis.remove())
  await redis.start()
  for (const [path, object] of volumes(join(directory, 'volumes'))) await admin.create(path, object)
  await node('start', machine, kubeconfig, archive)

  const ingress = await Ingress.start()
  onClose(() => ingress.close())
  const { user, password, host, port, database } = store
  const env = { KUBECONFIG: kubeconfig, PATH: `${programs}:${process.env.PATH}`, HOME: directory }
  return {
    directory,
    run: (program, ...args) => run(program, args, { env, cwd: directory }),
    databaseUrl: `postgres://${user}:${password}@${host}:${port}/${database}`,
    redisUrl: redis.url,
    nodeImage: (await node('digest', machine, `${NODE_IMAGE}:test`)).trim(),
    storageClass: STORAGE_CLASS,
    ingress,
  }
}

/** Volumes are directories of the machine, made in advance: one for the hub, the others for nodes. */
function volumes(directory: string): [path: string, object: Resource][] {
  const storageClass = {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: STORAGE_CLASS },
    provisioner: 'kubernetes.io/no-provisioner',
    reclaimPolicy: 'Retain',
    volumeBindingMode: 'WaitForFirstConsumer',
  }
  const onMachine = { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [MACHINE] }] }
  const modes = ['ReadWriteOnce', ...Array<string>(4).fill('ReadWriteOncePod')]
  const list = modes.map((mode, index) => {
    const path = join(directory, String(index))
    mkdirSync(path, { recursive: true })
    return {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: `volume-${index}` },
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: [mode],
        persistentVolumeReclaimPolicy: 'Retain',
        storageClassName: STORAGE_CLASS,
        local: { path },
        nodeAffinity: { required: { nodeSelectorTerms: [onMachine] } },
      },
    }
  })
  const all: [string, object][] = [
    ['/apis/storage.k8s.io/v1/storageclasses', storageClass],
    ...list.map((volume): [string, object] => ['/api/v1/persistentvolumes', volume]),
  ]
  return all as [string, Resource][]
}
