import { type CacheOptions, ObjectCache } from './object-cache.ts'
import { MAX_REPLACED, nodeIdOf, nodeName, PATHS, podName, REPLACED_BY } from './objects.ts'
import { pickClaim, pickStatefulSet } from './picks.ts'
import type { Pods } from './pods.ts'
import type { SeenClaim, SeenNode, SeenStatefulSet } from './types.ts'

/**
 * The objects of nodes, as the watches last showed them. They may be out of date, so this is enough to see that a node is as it should be,
 * and never a reason to change, stop or delete anything.
 */
export class NodeCache {
  readonly #pods: Pods
  readonly #statefulSets: ObjectCache<SeenStatefulSet>
  readonly #claims: ObjectCache<SeenClaim>

  constructor(pods: Pods, options: CacheOptions) {
    const { namespace } = options.place
    this.#pods = pods
    this.#statefulSets = new ObjectCache({
      ...options,
      path: PATHS.statefulSets(namespace),
      pick: pickStatefulSet,
      changed: (before, now) => {
        if (before && before.spec.replicas !== now?.spec.replicas) pods.note(nodeIdOf(before.metadata))
      },
    })
    this.#claims = new ObjectCache({
      ...options,
      path: PATHS.claims(namespace),
      pick: pickClaim,
      changed: (before, now) => {
        if (before && (!now || now.status?.phase === 'Lost')) pods.note(nodeIdOf(before.metadata))
      },
    })
  }

  /** Undefined while one of the watches is interrupted, because the age of the cached objects is then unknown. */
  view(nodeId: string): SeenNode | undefined {
    if (!this.#isFollowing) return undefined
    const statefulSet = this.#statefulSets.get(nodeName(nodeId))
    const pod = this.#pods.cache.get(podName(nodeId))
    let claimName = nodeName(nodeId)
    for (let replaced = 0; replaced < MAX_REPLACED; replaced++) {
      const claim = this.#claims.get(claimName)
      const next = claim?.metadata.annotations?.[REPLACED_BY]
      if (next === undefined) return { statefulSet, pod, claim, claimName }
      claimName = next
    }
    return undefined
  }

  /** Nodes that have a StatefulSet or a claim older than this; undefined while a watch is interrupted. */
  nodesSeen(minAgeMs: number): string[] | undefined {
    if (!this.#isFollowing) return undefined
    const newest = Date.now() - minAgeMs
    const old = [...this.#statefulSets.all(), ...this.#claims.all()].filter(
      ({ metadata }) => Date.parse(metadata.creationTimestamp ?? '') <= newest,
    )
    return [...new Set(old.map(({ metadata }) => nodeIdOf(metadata)))]
  }

  get #isFollowing(): boolean {
    return [this.#pods.cache, this.#statefulSets, this.#claims].every(({ isFollowing }) => isFollowing)
  }

  /** How long ago each watch last received anything, by the resource that it watches. */
  get staleMs(): Record<string, number> {
    return { statefulsets: this.#statefulSets.staleMs, persistentvolumeclaims: this.#claims.staleMs }
  }

  async close(): Promise<void> {
    await Promise.all([this.#statefulSets.close(), this.#claims.close()])
  }
}
