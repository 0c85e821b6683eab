import type { Address } from '../../nodes/runtime.ts'
import { type CacheOptions, ObjectCache } from './object-cache.ts'
import { nodeIdOf, PATHS, PORT, podName } from './objects.ts'
import { pickPod } from './picks.ts'
import { exitsOf, isListening, isTerminating } from './pod-state.ts'
import type { Pod, Stored } from './types.ts'

type Report = (nodeId: string) => Promise<void>

const REPORT_MS = 500

/**
 * The pods of this installation, as the watch last showed them. Used to find a node's address and to notice that something has happened.
 * They may be out of date, so nothing is stopped, changed or deleted because of them.
 */
export class Pods {
  readonly cache: ObjectCache<Pod>
  readonly #unreported = new Set<string>()
  #report: Report | undefined

  constructor(options: CacheOptions) {
    this.cache = new ObjectCache<Pod>({
      ...options,
      path: PATHS.pods(options.place.namespace),
      pick: pickPod,
      changed: (before, now) => this.#changed(before, now),
    })
  }

  /** False until the first list has arrived: until then, a missing pod means nothing. */
  get isComplete(): boolean {
    return this.cache.isComplete
  }

  address(nodeId: string): Address | undefined {
    const pod = this.cache.get(podName(nodeId))
    const host = pod && hostOf(pod)
    return pod && host !== undefined ? this.addressOf(nodeId, pod.metadata.uid, host) : undefined
  }

  /** Once a pod is gone, its address may belong to another pod, and the first thing we send is a password. */
  addressOf(nodeId: string, uid: string, host: string): Address {
    const isGenuine = (): boolean => {
      const now = this.cache.get(podName(nodeId))
      return now ? now.metadata.uid === uid && hostOf(now) === host : !this.isComplete
    }
    return { host, port: PORT, isGenuine }
  }

  watch(report: Report): () => void {
    this.#report = report
    const reportAll = (): void => {
      for (const nodeId of this.#unreported) {
        this.#unreported.delete(nodeId)
        report(nodeId).catch(() => this.#unreported.add(nodeId))
      }
    }
    const timer = setInterval(reportAll, REPORT_MS)
    return () => {
      clearInterval(timer)
      this.#report = undefined
      this.#unreported.clear()
    }
  }

  /** Something has happened to the node, so it is reported and observed again soon. */
  note(nodeId: string): void {
    if (this.#report) this.#unreported.add(nodeId)
  }

  async close(): Promise<void> {
    await this.cache.close()
  }

  #changed(before: Stored<Pod> | undefined, now: Stored<Pod> | undefined): void {
    if (!before) return
    const isSame =
      now?.metadata.uid === before.metadata.uid && exitsOf(now) === exitsOf(before) && isListening(now) === isListening(before)
    if (!isSame) this.note(nodeIdOf(before.metadata))
  }
}

const hostOf = (pod: Pod): string | undefined => (isTerminating(pod) ? undefined : pod.status?.podIP)
