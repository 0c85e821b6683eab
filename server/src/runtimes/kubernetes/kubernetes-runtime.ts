import {
  type Address,
  CannotStart,
  type NodeMaterial,
  type NodeSpec,
  type Observation,
  type Runtime,
  TryAgain,
} from '../../nodes/runtime.ts'
import { crashpoint } from '../../platform/crashpoint.ts'
import { type ConfLines, phoenixConf } from '../phoenix-conf.ts'
import { Copies } from './copies.ts'
import type { NodeObjects } from './node-objects.ts'
import { ensureSecret } from './node-secret.ts'
import {
  annotationsOf,
  claimOf,
  EVIDENCE,
  PATHS,
  RELEASED,
  STARTED,
  type Storage,
  startedAnnotations,
  statefulSetOf,
  templateOf,
} from './objects.ts'
import { Observer } from './observer.ts'
import { isHeld, isTerminating, seemsUnused } from './pod-state.ts'
import type { Pods } from './pods.ts'
import { removeNode } from './removal.ts'
import type { SeenNode, StatefulSet, Stored } from './types.ts'

/** A hung process is killed after this long. Never 0: that would remove the pod's object while the process may still run. */
const KILL_GRACE_SECONDS = 1
/**
 * The kubelet connects to each node every ten seconds, and the watches report what it sees. Our own request only finds a process
 * that accepts connections but does not respond. For ten thousand nodes, one request to each every half minute would take most of
 * a core.
 */
const RECHECK_MS = 600_000

export type KubernetesRuntimeOptions = {
  objects: NodeObjects
  pods: Pods
  /** The node's objects from a cache; undefined if there is none, or if its age is unknown. */
  view: (nodeId: string) => SeenNode | undefined
  /** Maps a version to its image, oldest first. */
  catalogue: Map<string, string>
  chainArguments: string[]
  storage: Storage
  /** Undefined: the data cannot be copied, so nodes cannot be updated. */
  snapshotClass: string | undefined
  confLines: ConfLines
  passwordOf: (nodeId: string) => Promise<string>
}

/** Runs every node as a StatefulSet with 0 or 1 replicas. Kubernetes guarantees that it never has two pods at once. */
export class KubernetesRuntime implements Runtime {
  readonly #options: KubernetesRuntimeOptions
  readonly #objects: NodeObjects
  readonly #copies: Copies
  readonly #observer: Observer
  readonly recheckMs = RECHECK_MS
  readonly silentAtOnce = 500

  constructor(options: KubernetesRuntimeOptions) {
    this.#options = options
    this.#objects = options.objects
    this.#copies = new Copies(options.objects, options.storage, options.snapshotClass)
    this.#observer = new Observer(options)
  }

  get versions(): string[] {
    return [...this.#options.catalogue.keys()]
  }

  observe(node: NodeSpec): Promise<Observation> {
    return this.#observer.observe(node)
  }

  async start(node: NodeSpec, material: NodeMaterial, stillMine: () => Promise<boolean>): Promise<void> {
    const { catalogue, chainArguments, storage } = this.#options
    const image = catalogue.get(node.desired.version)
    if (image === undefined) throw new CannotStart(`version ${node.desired.version} is not in the catalog`)
    const { client, place } = this.#objects
    const { statefulSet, pod, claim, claimName } = await this.#objects.read(node.id)
    if (statefulSet && statefulSet.spec.replicas !== 0) return
    if (pod && !isHeld(pod)) return
    if (!(await stillMine())) return
    if (claim?.metadata.annotations?.[RELEASED] !== undefined)
      throw new CannotStart('its wallet was released to another installation')
    const conf = phoenixConf(node, material, this.#options.confLines)
    const secret = await ensureSecret(this.#objects, node.id, { seed: material.seed, conf })
    if (!claim) {
      // An empty volume in the place of a lost one would look like an empty wallet.
      if (statefulSet || node.history.version !== null) throw new TryAgain(`the claim ${claimName} is missing`)
      const annotations = startedAnnotations(node.lightningId)
      await client.create(PATHS.claims(place.namespace), claimOf(place, node.id, claimName, storage, { annotations }))
    } else if (claim.metadata.annotations?.[STARTED] === undefined) {
      // Record this before anything can run: if the StatefulSet is lost later, the node must not be taken for one that never ran.
      const value = { ...claim.metadata.annotations, ...startedAnnotations(node.lightningId) }
      await client.patch(this.#objects.claimPath(claimName), claim, [{ op: 'add', path: '/metadata/annotations', value }])
    }
    crashpoint('process: intent is durable')
    if (!(await stillMine())) return
    const launch = { image, chainArguments, claim: claimName, secret }
    // Release the evidence first: as long as the old pod's object exists, Kubernetes does not create the next pod.
    if (pod) await this.#objects.release(node.id, pod, EVIDENCE)
    if (!statefulSet) {
      if (!(await client.create(PATHS.statefulSets(place.namespace), statefulSetOf(place, node.id, launch, annotationsOf(node)))))
        throw new TryAgain(`the StatefulSet of ${node.id} has just been created`)
    } else {
      const operations = [
        { op: 'replace' as const, path: '/spec/template', value: templateOf(place, node.id, launch) },
        { op: 'replace' as const, path: '/spec/replicas', value: 1 },
      ]
      await this.#objects.change(node, statefulSet, operations, annotationsOf(node))
    }
    crashpoint('process: spawned')
  }

  async stop(node: NodeSpec): Promise<void> {
    const { statefulSet, pod } = await this.#objects.read(node.id)
    if (statefulSet) await this.#scaleDown(node, statefulSet)
    // While the node should run, a pod that never ran is the proof that its update can be rolled back: the next start releases it.
    if (pod && isHeld(pod) && node.desired.state !== 'running') await this.#objects.release(node.id, pod, EVIDENCE)
  }

  /**
   * A pod that seems to have never run is kept until the kubelet's final report, which proves whether that is so: an update may be rolled
   * back only with this proof.
   */
  async kill(node: NodeSpec): Promise<void> {
    const { client } = this.#objects
    const { statefulSet, pod } = await this.#objects.read(node.id)
    if (!statefulSet) return
    this.#objects.refuseIfOld(node, statefulSet)
    if (pod && !isTerminating(pod) && seemsUnused(pod)) {
      const value = [...(pod.metadata.finalizers ?? []), EVIDENCE]
      await client.patch(this.#objects.podPath(node.id), pod, [{ op: 'add', path: '/metadata/finalizers', value }])
    }
    await this.#scaleDown(node, statefulSet)
    // The StatefulSet controller deletes the same pod, but with a longer grace period.
    if (pod && !isHeld(pod)) await client.deletePod(pod, this.#objects.podPath(node.id), KILL_GRACE_SECONDS)
  }

  async #scaleDown(node: NodeSpec, statefulSet: Stored<StatefulSet>): Promise<void> {
    if (statefulSet.spec.replicas === 0) return
    const operations = [{ op: 'replace' as const, path: '/spec/replicas', value: 0 }]
    await this.#objects.change(node, statefulSet, operations, statefulSet.metadata.annotations ?? {})
  }

  keepCopy(node: NodeSpec, version: string): Promise<boolean> {
    return this.#copies.keep(node, version)
  }

  restoreCopy(node: NodeSpec, version: string): Promise<void> {
    return this.#copies.restore(node, version)
  }

  /** Only the reaper may delete copies, and it does so with the node. */
  async removeCopies(): Promise<void> {}

  remove(node: NodeSpec): Promise<void> {
    return removeNode(this.#objects, node)
  }

  readonly address = async (nodeId: string): Promise<Address | undefined> => {
    const { pods } = this.#options
    if (pods.isComplete) return pods.address(nodeId)
    const pod = await this.#objects.pod(nodeId)
    if (!pod?.status?.podIP || isTerminating(pod)) return undefined
    return pods.addressOf(nodeId, pod.metadata.uid, pod.status.podIP)
  }

  watch(changed: (nodeId: string) => Promise<void>): () => void {
    return this.#options.pods.watch(changed)
  }
}
