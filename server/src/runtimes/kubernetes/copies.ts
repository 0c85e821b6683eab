import { setTimeout as pause } from 'node:timers/promises'
import { CannotStart, type NodeSpec, TryAgain } from '../../nodes/runtime.ts'
import { crashpoint } from '../../platform/crashpoint.ts'
import { lastWordsIn } from '../last-words.ts'
import { nextClaimName, snapshotName } from './copy-names.ts'
import type { NodeObjects } from './node-objects.ts'
import { claimNameIn, claimOf, EVIDENCE, PATHS, REPLACED_BY, RESTORED, type Storage, snapshotOf } from './objects.ts'
import { isScaledDown, wasNeverUsed } from './pod-state.ts'
import type { Claim, Snapshot } from './types.ts'

const POLL_MS = 200
/** After this long, `keep` returns false. The reconciler then records the state and calls it again. */
const PATIENCE_MS = 2_000
/** By how much the clocks of the cluster and the database may differ. */
const CLOCK_DIFFERENCE_MS = 600_000

/** Copies of a node's data as VolumeSnapshots, made before an update. */
export class Copies {
  readonly #objects: NodeObjects
  readonly #storage: Storage
  readonly #snapshotClass: string | undefined

  constructor(objects: NodeObjects, storage: Storage, snapshotClass: string | undefined) {
    this.#objects = objects
    this.#storage = storage
    this.#snapshotClass = snapshotClass
  }

  /** The copy is named after the claim and version. A restored claim has another name, so the next update makes a new copy. */
  async keep(node: NodeSpec, version: string): Promise<boolean> {
    const { client, place } = this.#objects
    if (this.#snapshotClass === undefined)
      throw new CannotStart('its data cannot be copied, because no snapshot class is configured')
    const { statefulSet, claim, claimName, pod } = await this.#objects.read(node.id)
    if (pod || (statefulSet && !isScaledDown(statefulSet)))
      throw new TryAgain(`the data of ${node.id} cannot be copied: its pod still exists, or its StatefulSet is not scaled down`)
    if (!claim) throw new Error(`the claim ${claimName} is missing`)
    const name = snapshotName(claimName, version)
    const snapshot = await this.#objects.snapshot(name)
    if (!snapshot) {
      await client.create(PATHS.snapshots(place.namespace), snapshotOf(place, node.id, name, claimName, this.#snapshotClass))
      crashpoint('copy: unfinished')
    } else if (isOlderThanData(snapshot, node)) {
      throw new CannotStart(`its data cannot be copied: the VolumeSnapshot ${name} is older than the data, and must be deleted`)
    }
    return this.#isReady(name)
  }

  async #isReady(name: string): Promise<boolean> {
    for (const deadline = performance.now() + PATIENCE_MS; ; await pause(POLL_MS)) {
      const { status } = (await this.#objects.snapshot(name)) ?? {}
      if (status?.readyToUse) return true
      if (status?.error?.message) throw new CannotStart(`its data cannot be copied: ${lastWordsIn(status.error.message)}`)
      if (performance.now() > deadline) return false
    }
  }

  /**
   * A new claim made from the copy takes the place of the current one, which is kept. Refused without proof that the node's pod
   * has never run: otherwise the new version may have connected to its peer, and older channel data can lose funds.
   */
  async restore(node: NodeSpec, version: string): Promise<void> {
    const { client, place } = this.#objects
    const { statefulSet, pod } = await this.#objects.read(node.id)
    const claimName = statefulSet && claimNameIn(statefulSet)
    if (!statefulSet || claimName === undefined) return
    if (statefulSet.metadata.annotations?.[RESTORED] === version) return
    if (!pod || !wasNeverUsed(pod)) throw new Error('there is no proof that the data to be replaced was never used')
    const snapshot = snapshotName(claimName, version)
    if (!(await this.#objects.snapshot(snapshot))?.status?.readyToUse) throw new Error(`there is no copy ${snapshot}`)
    this.#objects.refuseIfOld(node, statefulSet)

    const next = claimOf(place, node.id, nextClaimName(claimName), this.#storage, { snapshot })
    await client.create(PATHS.claims(place.namespace), next)
    crashpoint('restore: the old data is back')
    const current = await client.get<Claim>(this.#objects.claimPath(claimName))
    if (current && current.metadata.annotations?.[REPLACED_BY] === undefined) {
      const annotations = { ...current.metadata.annotations, [REPLACED_BY]: next.metadata.name }
      await client.patch(this.#objects.claimPath(claimName), current, [
        { op: 'add', path: '/metadata/annotations', value: annotations },
      ])
    }
    crashpoint('restore: the new data is aside')
    await this.#objects.change(node, statefulSet, [], { ...statefulSet.metadata.annotations, [RESTORED]: version })
    // The evidence is no longer needed once the result is recorded.
    await this.#objects.release(node.id, pod, EVIDENCE)
  }
}

/** Made before the node last ran, by an earlier release or by somebody else. Rolling back to it could lose funds. */
function isOlderThanData({ metadata }: Snapshot, { history: { lastStartedAtMs, startedAtMs } }: NodeSpec): boolean {
  return Date.parse(metadata.creationTimestamp ?? '') < (lastStartedAtMs ?? startedAtMs ?? 0) - CLOCK_DIFFERENCE_MS
}
