import type { Metadata, Pod, SeenClaim, SeenStatefulSet, Stored } from './types.ts'

/** The parts of objects that a cache keeps. Pure. */

function pick<T extends object, K extends keyof T>(from: T, ...keys: K[]): Pick<T, K> {
  return Object.fromEntries(keys.filter((key) => from[key] !== undefined).map((key) => [key, from[key]])) as Pick<T, K>
}

type StoredMetadata = Metadata & { uid: string; resourceVersion: string }

const metadataIn = (metadata: StoredMetadata): StoredMetadata =>
  pick(
    metadata,
    'name',
    'uid',
    'resourceVersion',
    'labels',
    'annotations',
    'finalizers',
    'ownerReferences',
    'creationTimestamp',
    'deletionTimestamp',
    'deletionGracePeriodSeconds',
  )

export function pickPod({ metadata, spec, status = {} }: Stored<Pod>): Stored<Pod> {
  const { conditions, containerStatuses } = status
  return {
    metadata: metadataIn(metadata),
    spec: pick(spec, 'nodeName'),
    status: {
      ...pick(status, 'phase', 'podIP', 'reason', 'message'),
      ...(conditions && { conditions: conditions.filter(({ type }) => type === 'PodScheduled') }),
      ...(containerStatuses && {
        containerStatuses: containerStatuses.map((one) =>
          pick(one, 'restartCount', 'ready', 'containerID', 'state', 'lastState'),
        ),
      }),
    },
  }
}

export const pickStatefulSet = ({ metadata, spec, status = {} }: Stored<SeenStatefulSet>): Stored<SeenStatefulSet> => ({
  metadata: { ...metadataIn(metadata), ...pick(metadata, 'generation') },
  spec: pick(spec, 'replicas'),
  status: pick(status, 'observedGeneration'),
})

export const pickClaim = ({ metadata, status = {} }: Stored<SeenClaim>): Stored<SeenClaim> => ({
  metadata: metadataIn(metadata),
  status: pick(status, 'phase'),
})
