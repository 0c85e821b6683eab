import { type NodeSpec, TryAgain } from '../../nodes/runtime.ts'
import type { KubernetesClient, PatchOperation } from './client.ts'
import { FENCE, MAX_REPLACED, nodeName, PATHS, type Place, podName, REPLACED_BY } from './objects.ts'
import type { Claim, Pod, SeenNode, Snapshot, StatefulSet, Stored } from './types.ts'

const MAX_TRIES = 5

export type Live = SeenNode & { statefulSet: Stored<StatefulSet> | undefined; claim: Stored<Claim> | undefined }

/** Reads and writes the objects of nodes. Reads are live, never from a cache, because writes and deletions follow from them. */
export class NodeObjects {
  readonly client: KubernetesClient
  readonly place: Place

  constructor(client: KubernetesClient, place: Place) {
    this.client = client
    this.place = place
  }

  statefulSetPath(nodeId: string): string {
    return `${PATHS.statefulSets(this.place.namespace)}/${nodeName(nodeId)}`
  }

  podPath(nodeId: string): string {
    return `${PATHS.pods(this.place.namespace)}/${podName(nodeId)}`
  }

  claimPath(name: string): string {
    return `${PATHS.claims(this.place.namespace)}/${name}`
  }

  snapshotPath(name: string): string {
    return `${PATHS.snapshots(this.place.namespace)}/${name}`
  }

  pod(nodeId: string): Promise<Stored<Pod> | undefined> {
    return this.client.get<Pod>(this.podPath(nodeId))
  }

  statefulSet(nodeId: string): Promise<Stored<StatefulSet> | undefined> {
    return this.client.get<StatefulSet>(this.statefulSetPath(nodeId))
  }

  snapshot(name: string): Promise<Stored<Snapshot> | undefined> {
    return this.client.get<Snapshot>(this.snapshotPath(name))
  }

  /**
   * The pod is read after its StatefulSet. If the StatefulSet was scaled down and there is no pod afterwards, nothing runs, and nothing
   * will run until someone scales it up again.
   */
  async read(nodeId: string): Promise<Live> {
    const [statefulSet, claim] = await Promise.all([this.statefulSet(nodeId), this.#claim(nodeId)])
    return { statefulSet, pod: await this.pod(nodeId), ...claim }
  }

  /** A restored claim takes the place of the original one, which points to it. */
  async #claim(nodeId: string): Promise<Pick<Live, 'claim' | 'claimName'>> {
    let name = nodeName(nodeId)
    for (let replaced = 0; replaced < MAX_REPLACED; replaced++) {
      const claim = await this.client.get<Claim>(this.claimPath(name))
      const next = claim?.metadata.annotations?.[REPLACED_BY]
      if (next === undefined) return { claim, claimName: name }
      name = next
    }
    throw new TryAgain(
      `the ${REPLACED_BY} annotations of the volume claims of ${nodeId} form a cycle, or a chain of more than ${MAX_REPLACED}; correct them`,
    )
  }

  /**
   * Writes our lease epoch with the change. Another replica of the service that read the object before gets a conflict; one that
   * reads it afterwards sees the greater epoch and stops.
   */
  async change(
    node: NodeSpec,
    statefulSet: Stored<StatefulSet>,
    operations: PatchOperation[],
    annotations: Record<string, string>,
  ): Promise<void> {
    this.refuseIfOld(node, statefulSet)
    const value = { ...annotations, [FENCE]: String(node.epoch) }
    const change: PatchOperation[] = [{ op: 'add', path: '/metadata/annotations', value }, ...operations]
    let current: Stored<StatefulSet> | undefined = statefulSet
    for (let attempt = 1; ; attempt++) {
      try {
        await this.client.patch(this.statefulSetPath(node.id), current, change)
        return
      } catch (error) {
        if (!(error instanceof TryAgain) || attempt === MAX_TRIES) throw error
        // The StatefulSet's controller updates its status all the time. Only such a change may be ignored.
        current = await this.statefulSet(node.id)
        if (!current || !isSameButForStatus(current, statefulSet)) throw error
      }
    }
  }

  refuseIfOld(node: NodeSpec, { metadata }: Stored<StatefulSet>): void {
    if (Number(metadata.annotations?.[FENCE] ?? 0) > node.epoch) throw new TryAgain(`a newer lease has changed ${node.id}`)
  }

  /** Lets Kubernetes remove the object of a pod that was kept as evidence. */
  async release(nodeId: string, pod: Stored<Pod>, finalizer: string): Promise<void> {
    const value = (pod.metadata.finalizers ?? []).filter((name) => name !== finalizer)
    await this.client.patch(this.podPath(nodeId), pod, [{ op: 'replace', path: '/metadata/finalizers', value }])
  }
}

function isSameButForStatus(a: Stored<StatefulSet>, b: Stored<StatefulSet>): boolean {
  const identity = ({ metadata: { uid, generation, annotations } }: Stored<StatefulSet>): string =>
    JSON.stringify([uid, generation, Object.entries(annotations ?? {}).sort()])
  return identity(a) === identity(b)
}
