import { setTimeout as pause } from 'node:timers/promises'
import { TryAgain } from '../../../nodes/runtime.ts'
import { crashpoint } from '../../../platform/crashpoint.ts'
import type { NodeObjects } from '../node-objects.ts'
import { PATHS, PORT } from '../objects.ts'
import { isRunning, isScaledDown, isTerminating, whyInEvents, whyWaiting } from '../pod-state.ts'
import type { Event, Pod, StatefulSet, Stored } from '../types.ts'
import { Volume } from './volume-client.ts'
import { type VolumeLaunch, volumeName, volumeSetOf, volumeTemplateOf } from './volume-objects.ts'

const POLL_MS = 300
/** A machine may have to pull the image first. */
const OPEN_TIMEOUT_MS = 300_000
const CLOSE_TIMEOUT_MS = 60_000
const CANNOT_BE_REACHED = `its pod runs but cannot be reached on port ${PORT}; run the command in a pod of the service: the NetworkPolicy of the nodes allows no other`

/** Runs a program beside a node's volume while `work` moves files. Nothing has the volume open before and after. */
export async function withVolume<T>(
  objects: NodeObjects,
  nodeId: string,
  launch: VolumeLaunch & { password: string },
  work: (volume: Volume) => Promise<T>,
): Promise<T> {
  // An interrupted call may have left its program running.
  await closeVolume(objects, nodeId)
  let result: T
  try {
    const volume = await openVolume(objects, nodeId, launch)
    crashpoint('volume: open')
    result = await work(volume)
  } catch (error) {
    // The first error is the one to report. The next call, or the service, closes the volume.
    await closeVolume(objects, nodeId).catch(() => undefined)
    throw error
  }
  await closeVolume(objects, nodeId)
  return result
}

const setPath = ({ place }: NodeObjects, nodeId: string): string => `${PATHS.statefulSets(place.namespace)}/${volumeName(nodeId)}`
const podPath = ({ place }: NodeObjects, nodeId: string): string => `${PATHS.pods(place.namespace)}/${volumeName(nodeId)}-0`

async function openVolume(
  objects: NodeObjects,
  nodeId: string,
  { password, ...launch }: VolumeLaunch & { password: string },
): Promise<Volume> {
  const { client, place } = objects
  let reason = 'its pod does not start'
  for (const deadline = performance.now() + OPEN_TIMEOUT_MS; ; await pause(POLL_MS)) {
    const found = await orAgain(async () => {
      const set = await client.get<StatefulSet>(setPath(objects, nodeId))
      if (!set) return void (await client.create(PATHS.statefulSets(place.namespace), volumeSetOf(place, nodeId, launch)))
      if (set.spec.replicas === 0) {
        const template = volumeTemplateOf(nodeId, launch)
        await client.patch(setPath(objects, nodeId), set, [
          { op: 'replace', path: '/spec/template', value: template },
          { op: 'replace', path: '/spec/replicas', value: 1 },
        ])
        return
      }
      const pod = await client.get<Pod>(podPath(objects, nodeId))
      reason = (await whyNot(objects, nodeId, pod)) ?? reason
      const isOurs = pod?.metadata.ownerReferences?.[0]?.uid === set.metadata.uid
      if (!pod || !isOurs || isTerminating(pod) || !isRunning(pod) || !pod.status?.podIP) return
      reason = CANNOT_BE_REACHED
      return Volume.open(`http://${hostIn(pod.status.podIP)}:${PORT}`, password)
    })
    if (found) return found
    if (performance.now() > deadline) throw new Error(`the volume of ${nodeId} cannot be opened: ${reason}`)
  }
}

async function whyNot({ client, place }: NodeObjects, nodeId: string, pod: Stored<Pod> | undefined): Promise<string | undefined> {
  if (pod && isRunning(pod)) return undefined
  const waiting = pod && whyWaiting(pod)
  if (waiting !== undefined) return waiting
  const about = pod ? `${volumeName(nodeId)}-0` : volumeName(nodeId)
  const { items } = await client.list<Event>(PATHS.events(place.namespace), { fieldSelector: `involvedObject.name=${about}` })
  return whyInEvents(items)
}

const hostIn = (address: string): string => (address.includes(':') ? `[${address}]` : address)

/** Returns once nothing has the volume open. */
export async function closeVolume(objects: NodeObjects, nodeId: string): Promise<void> {
  const { client } = objects
  for (const deadline = performance.now() + CLOSE_TIMEOUT_MS; ; await pause(POLL_MS)) {
    const isClosed = await orAgain(async () => {
      const set = await stopVolumeSet(objects, nodeId)
      if (set && !isScaledDown(set)) return false
      // The pod is read after its StatefulSet: once that is scaled down, no other pod follows.
      return (await client.get<Pod>(podPath(objects, nodeId))) === undefined
    })
    if (isClosed) return
    if (performance.now() > deadline)
      throw new Error(`the volume of ${nodeId} could not be closed: ${volumeName(nodeId)}-0 may still use it`)
  }
}

/** Returns the StatefulSet as it was before. */
export async function stopVolumeSet(objects: NodeObjects, nodeId: string): Promise<StatefulSet | undefined> {
  const set = await objects.client.get<StatefulSet>(setPath(objects, nodeId))
  if (set && set.spec.replicas !== 0)
    await objects.client.patch(setPath(objects, nodeId), set, [{ op: 'replace', path: '/spec/replicas', value: 0 }])
  return set
}

/** Removes what a move has left. Called before the node's data is removed, so that no pod can use the data any more. */
export async function removeVolumeSet(objects: NodeObjects, nodeId: string): Promise<void> {
  const { client } = objects
  const set = await client.get<StatefulSet>(setPath(objects, nodeId))
  if (!set) return
  if (!isScaledDown(set) || (await client.get<Pod>(podPath(objects, nodeId))))
    throw new Error(`the volume of ${nodeId} is being moved`)
  await client.delete(set, setPath(objects, nodeId))
}

/** Returns undefined if the outcome is unknown or the object has changed since it was read. The caller then tries again. */
async function orAgain<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof TryAgain) return undefined
    throw error
  }
}
