import { setTimeout as pause } from 'node:timers/promises'
import { type NodeSpec, TryAgain } from '../../nodes/runtime.ts'
import { crashpoint } from '../../platform/crashpoint.ts'
import type { KubernetesClient } from './client.ts'
import { Refused } from './client.ts'
import { removeVolumeSet } from './moving/volume.ts'
import type { NodeObjects } from './node-objects.ts'
import { KEEP, PATHS, type Place, secretName, selectorOf } from './objects.ts'
import { isScaledDown } from './pod-state.ts'
import type { Claim, Resource, Secret, Snapshot, Stored } from './types.ts'

const GONE_POLL_MS = 50
const GONE_TIMEOUT_MS = 5_000

/** Permanently removes everything that belongs to a node. Only the reaper's service account has the rights for this. */
export async function removeNode(objects: NodeObjects, node: NodeSpec): Promise<void> {
  const { client, place } = objects
  const { statefulSet, pod } = await objects.read(node.id)
  if (pod || (statefulSet && !isScaledDown(statefulSet)))
    throw new Error(`the data of ${node.id} cannot be removed: its pod still exists, or its StatefulSet is not scaled down`)
  // The StatefulSets are deleted first, so that nothing can start a pod on the data that is being removed.
  await removeVolumeSet(objects, node.id)
  if (statefulSet) await client.delete(statefulSet, objects.statefulSetPath(node.id))
  for (const snapshot of await snapshotsOf(client, place, node.id))
    await client.delete(snapshot, objects.snapshotPath(snapshot.metadata.name))
  crashpoint('purge: the copies are gone')
  const claims = await client.list<Claim>(PATHS.claims(place.namespace), { labelSelector: selectorOf(place, node.id) })
  for (const claim of claims.items) await removeClaim(client, claim, objects.claimPath(claim.metadata.name))
  crashpoint('purge: the data is gone')
  // Secrets are found by counting up the number in their name, because no service account may list Secrets. The highest number is deleted
  // first, so that the rest is found again after a crash.
  const paths = (number: number): string => `${PATHS.secrets(place.namespace)}/${secretName(node.id, number)}`
  const secrets: { path: string; secret: Stored<Secret> }[] = []
  for (;;) {
    const path = paths(secrets.length)
    const secret = await client.get<Secret>(path)
    if (!secret) break
    secrets.unshift({ path, secret })
  }
  for (const { path, secret } of secrets) await client.delete(secret, path)
}

/** A cluster without snapshot support does not know the resource and responds with 404. */
async function snapshotsOf(client: KubernetesClient, place: Place, nodeId: string): Promise<Stored<Snapshot>[]> {
  try {
    return (await client.list<Snapshot>(PATHS.snapshots(place.namespace), { labelSelector: selectorOf(place, nodeId) })).items
  } catch (error) {
    if (error instanceof Refused && error.status === 404) return []
    throw error
  }
}

/**
 * The claim is deleted first, and our finalizer is removed second: in the reverse order, a crash in between would leave the claim
 * unprotected. Kubernetes removes its own finalizer at the same time, so ours may need more than one try, and the claim is gone a
 * moment later.
 */
async function removeClaim(client: KubernetesClient, claim: Stored<Resource>, path: string): Promise<void> {
  if (claim.metadata.deletionTimestamp === undefined) await client.delete(claim, path)
  for (const deadline = performance.now() + GONE_TIMEOUT_MS; ; await pause(GONE_POLL_MS)) {
    const deleted = await client.get<Claim>(path)
    if (deleted?.metadata.uid !== claim.metadata.uid) return
    if (performance.now() > deadline) throw new TryAgain(`${path} is still being deleted`)
    if (!deleted.metadata.finalizers?.includes(KEEP)) continue
    const value = deleted.metadata.finalizers.filter((name) => name !== KEEP)
    await client.patch(path, deleted, [{ op: 'replace', path: '/metadata/finalizers', value }]).catch(unlessTryAgain)
  }
}

function unlessTryAgain(error: unknown): void {
  if (!(error instanceof TryAgain)) throw error
}
