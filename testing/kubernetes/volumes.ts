import { cpSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { KubernetesClient } from '../../server/src/runtimes/kubernetes/client.ts'
import { PATHS } from '../../server/src/runtimes/kubernetes/objects.ts'
import type { Claim, Resource, Snapshot, Stored } from '../../server/src/runtimes/kubernetes/types.ts'
import { ListWatch } from '../../server/src/runtimes/kubernetes/watch.ts'
import { silent } from './silent.ts'

export const STORAGE_CLASS = 'boltyard-test'
export const SNAPSHOT_CLASS = 'boltyard-test'

const labels = 'app.kubernetes.io/managed-by=boltyard'

/** Stands in for a CSI driver and the snapshot controller: volumes and snapshots are directories. */
export class Volumes {
  readonly #client: KubernetesClient
  readonly #namespace: string
  readonly #directory: string
  readonly #machine: string
  readonly #watches: ListWatch<Claim | Snapshot>[]
  readonly #busy = new Set<string>()
  /** A test can set this to false, so that snapshots stay pending. */
  takesSnapshots = true

  constructor(client: KubernetesClient, namespace: string, directory: string, machine: string) {
    this.#client = client
    this.#namespace = namespace
    this.#directory = directory
    this.#machine = machine
    this.#watches = [
      this.#follow<Claim>(PATHS.claims(namespace), (claim) => this.#provision(claim)),
      this.#follow<Snapshot>(PATHS.snapshots(namespace), (snapshot) => this.#take(snapshot)),
    ] as ListWatch<Claim | Snapshot>[]
  }

  #follow<T extends Resource>(path: string, act: (item: Stored<T>) => Promise<void>): ListWatch<T> {
    const changed = (item: Stored<T>): void => {
      const { uid } = item.metadata
      if (this.#busy.has(uid)) return
      this.#busy.add(uid)
      act(item)
        .catch((error: unknown) => process.stderr.write(`volumes: ${String(error)}\n`))
        .finally(() => this.#busy.delete(uid))
    }
    return new ListWatch<T>({
      client: this.#client,
      path,
      labelSelector: labels,
      replace: (items) => items.forEach(changed),
      changed,
      deleted: () => undefined,
      log: silent,
    })
  }

  claimDirectory(uid: string): string {
    return join(this.#directory, `claim-${uid}`)
  }

  #snapshotDirectory(name: string): string {
    return join(this.#directory, `snapshot-${name}`)
  }

  async #provision({ metadata, spec }: Stored<Claim>): Promise<void> {
    const path = this.claimDirectory(metadata.uid)
    if (metadata.deletionTimestamp || (await this.#client.get(`/api/v1/persistentvolumes/pv-${metadata.uid}`))) return
    if (spec.dataSource) cpSync(this.#snapshotDirectory(spec.dataSource.name), path, { recursive: true })
    else mkdirSync(path, { recursive: true })
    const { name, namespace, uid } = metadata
    await this.#client.create('/api/v1/persistentvolumes', {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: `pv-${uid}`, annotations: { 'pv.kubernetes.io/provisioned-by': 'boltyard.dev/test' } },
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOncePod'],
        persistentVolumeReclaimPolicy: 'Retain',
        storageClassName: STORAGE_CLASS,
        local: { path },
        nodeAffinity: {
          required: {
            nodeSelectorTerms: [
              { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [this.#machine] }] },
            ],
          },
        },
        claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name, uid },
      },
    } as Resource)
  }

  async #take({ metadata, spec, status }: Stored<Snapshot>): Promise<void> {
    if (status?.readyToUse || !this.takesSnapshots) return
    const claim = await this.#client.get<Claim>(`${PATHS.claims(this.#namespace)}/${spec.source.persistentVolumeClaimName}`)
    if (!claim) return
    cpSync(this.claimDirectory(claim.metadata.uid), this.#snapshotDirectory(metadata.name), { recursive: true })
    const path = `${PATHS.snapshots(this.#namespace)}/${metadata.name}`
    const now = await this.#client.get<Snapshot>(path)
    if (now) await this.#client.patch(`${path}/status`, now, [{ op: 'add', path: '/status', value: { readyToUse: true } }])
  }

  async close(): Promise<void> {
    await Promise.all(this.#watches.map((watch) => watch.close()))
  }
}
