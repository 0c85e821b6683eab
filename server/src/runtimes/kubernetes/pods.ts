import type { Address } from '../../nodes/runtime.ts'
import type { Logger } from '../../platform/log.ts'
import type { KubernetesClient } from './client.ts'
import { nodeIdOf, PATHS, type Place, PORT, selectorOf } from './objects.ts'
import { exitsOf, isTerminating } from './pod-state.ts'
import type { Pod, Stored } from './types.ts'
import { ListWatch } from './watch.ts'

type Seen = { uid: string; version: bigint; host: string | undefined; exits: number }
type Stopped = (nodeId: string) => Promise<void>

const REPORT_MS = 500

/**
 * The pods of this installation, as the watch last showed them. Used to find a node's address and to notice that something has happened. It
 * may be out of date, so nothing is stopped, changed or deleted because of it.
 */
export class Pods {
  readonly #pods = new Map<string, Seen>()
  readonly #unreported = new Set<string>()
  readonly #watch: ListWatch<Pod>
  #stopped: Stopped | undefined
  #isComplete = false

  constructor(options: { client: KubernetesClient; place: Place; log: Logger; silenceMs?: number; firstPauseMs?: number }) {
    const { place, ...rest } = options
    this.#watch = new ListWatch<Pod>({
      ...rest,
      path: PATHS.pods(place.namespace),
      labelSelector: selectorOf(place),
      replace: (pods) => this.#replace(pods),
      changed: (pod) => this.#changed(pod),
      deleted: (pod) => this.#deleted(pod),
    })
  }

  /** False until the first list has arrived: until then, a missing pod means nothing. */
  get isComplete(): boolean {
    return this.#isComplete
  }

  get staleMs(): number {
    return this.#watch.staleMs
  }

  address(nodeId: string): Address | undefined {
    const seen = this.#pods.get(nodeId)
    return seen?.host === undefined ? undefined : this.addressOf(nodeId, seen.uid, seen.host)
  }

  /** Once a pod is gone, its address may belong to another pod, and the first thing we send is a password. */
  addressOf(nodeId: string, uid: string, host: string): Address {
    const isGenuine = (): boolean => {
      const now = this.#pods.get(nodeId)
      return now ? now.uid === uid && now.host === host : !this.#isComplete
    }
    return { host, port: PORT, isGenuine }
  }

  watch(stopped: Stopped): () => void {
    this.#stopped = stopped
    const report = (): void => {
      for (const nodeId of this.#unreported) {
        this.#unreported.delete(nodeId)
        stopped(nodeId).catch(() => this.#unreported.add(nodeId))
      }
    }
    const timer = setInterval(report, REPORT_MS)
    return () => {
      clearInterval(timer)
      this.#stopped = undefined
      this.#unreported.clear()
    }
  }

  async close(): Promise<void> {
    await this.#watch.close()
  }

  #replace(pods: Stored<Pod>[]): void {
    const listed = new Set(pods.map(({ metadata }) => nodeIdOf(metadata)))
    for (const nodeId of this.#pods.keys()) if (!listed.has(nodeId)) this.#forget(nodeId)
    for (const pod of pods) this.#changed(pod)
    this.#isComplete = true
  }

  #changed(pod: Stored<Pod>): void {
    const nodeId = nodeIdOf(pod.metadata)
    const before = this.#pods.get(nodeId)
    const version = BigInt(pod.metadata.resourceVersion)
    // Delivered twice or late: what we know is newer.
    if (before && before.version >= version) return
    const host = isTerminating(pod) ? undefined : pod.status?.podIP
    const seen = { uid: pod.metadata.uid, version, host, exits: exitsOf(pod) }
    this.#pods.set(nodeId, seen)
    if (before && (before.uid !== seen.uid || before.exits !== seen.exits)) this.#report(nodeId)
  }

  #deleted(pod: Stored<Pod>): void {
    const nodeId = nodeIdOf(pod.metadata)
    if (this.#pods.get(nodeId)?.uid === pod.metadata.uid) this.#forget(nodeId)
  }

  #forget(nodeId: string): void {
    this.#pods.delete(nodeId)
    this.#report(nodeId)
  }

  #report(nodeId: string): void {
    if (this.#stopped) this.#unreported.add(nodeId)
  }
}
