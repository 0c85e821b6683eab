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
import { sameVersion } from '../../platform/versions.ts'
import { HealthCheck } from '../health-check.ts'
import { type ConfLines, phoenixConf } from '../phoenix-conf.ts'
import { Copies } from './copies.ts'
import type { NodeObjects } from './node-objects.ts'
import {
  annotationsOf,
  claimOf,
  EVIDENCE,
  nodeName,
  PATHS,
  PORT,
  podName,
  RESTORED,
  RUN,
  type Storage,
  secretName,
  secretOf,
  statefulSetOf,
  templateOf,
  VERSION,
} from './objects.ts'
import {
  exitsOf,
  isHeld,
  isRunning,
  isTerminating,
  lastExit,
  seemsUnused,
  wasNeverUsed,
  whyInEvents,
  whyWaiting,
} from './pod-state.ts'
import type { Pods } from './pods.ts'
import { removeNode } from './removal.ts'
import type { Event, Pod, Secret, StatefulSet, Stored } from './types.ts'

/** A hung process is killed after this long. Never 0: that would remove the pod's object while the process may still run. */
const KILL_GRACE_SECONDS = 1
/** If a pod has not started after this long and its status gives no reason, its events are requested. */
const EVENTS_AFTER_MS = 5_000

export type KubernetesRuntimeOptions = {
  objects: NodeObjects
  pods: Pods
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
  readonly #health: HealthCheck

  constructor(options: KubernetesRuntimeOptions) {
    this.#options = options
    this.#objects = options.objects
    this.#copies = new Copies(options.objects, options.storage, options.snapshotClass)
    this.#health = new HealthCheck(options.passwordOf)
  }

  get versions(): string[] {
    return [...this.#options.catalogue.keys()]
  }

  async observe(node: NodeSpec): Promise<Observation> {
    try {
      return await this.#look(node)
    } catch (error) {
      // The watch logs that the API server does not answer; once for all nodes is enough.
      if (error instanceof TryAgain) return { observed: { phase: 'unknown' } }
      throw error
    }
  }

  async #look(node: NodeSpec): Promise<Observation> {
    const { statefulSet, pod, claim, claimName } = await this.#objects.read(node.id)
    const wasStarted = statefulSet !== undefined || node.history.version !== null
    if (wasStarted && (!claim || claim.status?.phase === 'Lost'))
      return { observed: { phase: 'data_lost', what: `The node’s volume claim ${claimName} or its volume is missing` } }
    if (!pod || !isRunning(pod)) this.#health.forget(node.id)
    if (!statefulSet) {
      if (!wasStarted) return { observed: { phase: 'absent' } }
      return { observed: { phase: 'exited', reason: 'its StatefulSet was deleted', isUntouched: false } }
    }
    if (statefulSet.spec.replicas === 0) return this.#whenStopped(node, statefulSet, pod)
    const process = processOf(statefulSet)
    const isOurs = pod?.metadata.ownerReferences?.[0]?.uid === statefulSet.metadata.uid
    if (!pod || !isOurs) return { observed: await this.#starting(node, pod), process }
    const restarts = { of: pod.metadata.uid, count: exitsOf(pod) }
    const host = pod.status?.podIP
    if (isTerminating(pod) || host === undefined || (!isRunning(pod) && restarts.count === 0))
      return { observed: await this.#starting(node, pod), process, restarts }
    if (!isRunning(pod)) return { observed: { phase: 'restarting', reason: lastExit(pod) ?? 'unknown' }, process, restarts }
    return { ...(await this.#health.ask(node, { host, port: PORT })), process, restarts }
  }

  /** For a StatefulSet with 0 replicas: nothing should be running. */
  #whenStopped(node: NodeSpec, statefulSet: Stored<StatefulSet>, pod: Stored<Pod> | undefined): Observation {
    const { startedAtMs, exitsMs, run, version, previousVersion } = node.history
    const process = processOf(statefulSet)
    // The object of a pod that never ran is kept for as long as it may be needed to roll back.
    if (pod && !(isHeld(pod) && node.desired.state === 'running')) return { observed: { phase: 'stopping' }, process }
    const restored = statefulSet.metadata.annotations?.[RESTORED]
    const wasRolledBack = restored !== undefined && sameVersion(version, restored)
    const isNew = !wasRolledBack && !(process.run === run && sameVersion(version, process.version))
    // Keep reporting an exit until the next start, so that its reason stays visible.
    if (startedAtMs === null && exitsMs.length === 0 && !isNew && !pod) return { observed: { phase: 'absent' } }
    const before = isNew && !sameVersion(version, process.version) ? version : previousVersion
    const isUntouched = before !== null && (restored === before || (pod !== undefined && wasNeverUsed(pod)))
    const reason = (pod && (lastExit(pod) ?? whyWaiting(pod))) ?? 'it was stopped'
    return { observed: { phase: 'exited', reason, isUntouched }, ...(isNew ? { process } : {}) }
  }

  async #starting(node: NodeSpec, pod: Stored<Pod> | undefined): Promise<Observation['observed']> {
    const reason = pod && whyWaiting(pod)
    if (reason !== undefined) return { phase: 'starting', reason }
    if (node.nowMs - (node.history.startedAtMs ?? node.nowMs) < EVENTS_AFTER_MS) return { phase: 'starting' }
    const { client, place } = this.#objects
    const about = pod ? podName(node.id) : nodeName(node.id)
    const { items } = await client.list<Event>(PATHS.events(place.namespace), { fieldSelector: `involvedObject.name=${about}` })
    const inEvents = whyInEvents(items)
    return inEvents === undefined ? { phase: 'starting' } : { phase: 'starting', reason: inEvents }
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
    const secret = await this.#secretFor(node, material)
    if (!claim) {
      // An empty volume in the place of a lost one would look like an empty wallet.
      if (statefulSet || node.history.version !== null) throw new TryAgain(`the claim ${claimName} is missing`)
      await client.create(PATHS.claims(place.namespace), claimOf(place, node.id, claimName, storage))
    }
    crashpoint('process: intent is durable')
    if (!(await stillMine())) return
    const launch = { image, chainArguments, claim: claimName, secret }
    // Release the evidence first: as long as the old pod's object exists, Kubernetes does not create the next pod.
    if (pod) await this.#objects.release(node.id, pod, EVIDENCE)
    if (!statefulSet) {
      if (!(await client.create(PATHS.statefulSets(place.namespace), statefulSetOf(place, node, launch))))
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

  /** The Secret with exactly these files. A Secret is immutable, so a changed configuration gets a new one. */
  async #secretFor(node: NodeSpec, material: NodeMaterial): Promise<string> {
    const { client, place } = this.#objects
    const conf = phoenixConf(node, material, this.#options.confLines)
    for (let number = 0; ; number++) {
      const name = secretName(node.id, number)
      const wanted = secretOf(place, node.id, name, { seed: material.seed, conf })
      const path = PATHS.secrets(place.namespace)
      const found = (await client.get<Secret>(`${path}/${name}`)) ?? (await client.create(path, wanted))
      // Another process created it between the two calls.
      if (!found) throw new TryAgain(`the Secret ${name} has just been created`)
      if (found.data?.['seed.dat'] !== wanted.data['seed.dat'])
        throw new CannotStart(`its Secret ${name} contains a different seed`)
      if (found.data['phoenix.conf'] === wanted.data['phoenix.conf']) return name
    }
  }

  async stop(node: NodeSpec): Promise<void> {
    const { statefulSet, pod } = await this.#objects.read(node.id)
    if (statefulSet) await this.#scaleDown(node, statefulSet)
    if (pod && isHeld(pod)) await this.#objects.release(node.id, pod, EVIDENCE)
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

  watch(stopped: (nodeId: string) => Promise<void>): () => void {
    return this.#options.pods.watch(stopped)
  }
}

function processOf({ metadata }: Stored<StatefulSet>): { run: number; version: string } {
  return { run: Number(metadata.annotations?.[RUN] ?? 0), version: metadata.annotations?.[VERSION] ?? '' }
}
