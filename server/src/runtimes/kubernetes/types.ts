/** The parts of Kubernetes objects that we read or write. Everything optional may be missing in a response. */

export type Metadata = {
  name: string
  namespace?: string
  uid?: string
  resourceVersion?: string
  /** Incremented by every change to the spec, and by no change to the status. */
  generation?: number
  labels?: Record<string, string>
  annotations?: Record<string, string>
  finalizers?: string[]
  ownerReferences?: { uid: string; controller?: boolean }[]
  creationTimestamp?: string
  deletionTimestamp?: string
  deletionGracePeriodSeconds?: number
}

export type Resource = { apiVersion?: string; kind?: string; metadata: Metadata }

/** As the API server returned it. */
export type Stored<T extends Resource> = T & { metadata: Metadata & { uid: string; resourceVersion: string } }

export type Secret = Resource & { immutable?: boolean; type?: string; data: Record<string, string> }

export type Claim = Resource & {
  spec: {
    accessModes: string[]
    storageClassName?: string
    resources: { requests: { storage: string } }
    dataSource?: { apiGroup: string; kind: string; name: string }
  }
  status?: { phase?: string }
}

export type Snapshot = Resource & {
  spec: { volumeSnapshotClassName: string; source: { persistentVolumeClaimName: string } }
  status?: { readyToUse?: boolean; error?: { message?: string } }
}

export type PodTemplate = {
  metadata: { labels: Record<string, string> }
  spec: {
    containers: { name: string; image: string; args: string[] }[]
    volumes: { name: string; persistentVolumeClaim?: { claimName: string }; secret?: { secretName: string } }[]
  }
}

export type StatefulSet = Resource & {
  spec: { replicas: number; template: PodTemplate }
  /** The latest generation that the StatefulSet's controller has seen. */
  status?: { observedGeneration?: number }
}

export type ContainerState = {
  waiting?: { reason?: string; message?: string }
  running?: object
  terminated?: { exitCode: number; signal?: number; reason?: string; message?: string; startedAt?: string | null }
}

export type Pod = Resource & {
  spec: { nodeName?: string }
  status?: {
    phase?: string
    podIP?: string
    reason?: string
    message?: string
    conditions?: { type: string; status: string; reason?: string; message?: string }[]
    containerStatuses?: {
      restartCount: number
      ready?: boolean
      containerID?: string
      state?: ContainerState
      lastState?: ContainerState
    }[]
  }
}

export type Event = Resource & { reason?: string; message?: string; type?: string; lastTimestamp?: string | null }

/** The parts of a StatefulSet and of a claim that show the state of a node. */
export type SeenStatefulSet = Resource & { spec: { replicas: number }; status?: StatefulSet['status'] }
export type SeenClaim = Resource & { status?: { phase?: string } }

/** The objects of a node, from a live read or from a cache. */
export type SeenNode = {
  statefulSet: Stored<SeenStatefulSet> | undefined
  pod: Stored<Pod> | undefined
  claim: Stored<SeenClaim> | undefined
  /** The claim that the node's data must be in, whether it exists or not. */
  claimName: string
}
