import type { NodeObjects } from '../node-objects.ts'
import { PATHS } from '../objects.ts'
import type { StatefulSet } from '../types.ts'
import { stopVolumeSet } from './volume.ts'
import { nodeOfVolumeSet, volumeSetSelector } from './volume-objects.ts'

/** Volumes of nodes that a move by this installation has opened. */
export type OpenVolumes = {
  list: () => Promise<string[]>
  /** Must only be called while no wallet is moved. */
  close: (nodeId: string) => Promise<void>
}

export function openVolumesOf(objects: NodeObjects): OpenVolumes {
  const { client, place } = objects
  return {
    list: async () => {
      const query = { labelSelector: volumeSetSelector(place) }
      const { items } = await client.list<StatefulSet>(PATHS.statefulSets(place.namespace), query)
      return items.filter(({ spec }) => spec.replicas !== 0).map(nodeOfVolumeSet)
    },
    close: async (nodeId) => void (await stopVolumeSet(objects, nodeId)),
  }
}
