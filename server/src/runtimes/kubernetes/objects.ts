import type { NodeSpec } from '../../nodes/runtime.ts'
import type { Claim, Metadata, PodTemplate, Secret, Snapshot, StatefulSet } from './types.ts'

/** The objects of a node, as they are written. Pure: nothing here calls the API server. */

export const PORT = 9740
export const KEEP = 'boltyard.dev/keep'
/** Keeps the object of a pod that never ran, until we have read its last state. */
export const EVIDENCE = 'boltyard.dev/evidence'
export const SNAPSHOT_GROUP = 'snapshot.storage.k8s.io'

export const RUN = 'boltyard.dev/run'
export const VERSION = 'boltyard.dev/version'
export const FENCE = 'boltyard.dev/fence'
/** On a StatefulSet: the version whose data was restored, until the next start. */
export const RESTORED = 'boltyard.dev/restored'
/** On a claim: the claim that has taken its place. */
export const REPLACED_BY = 'boltyard.dev/replaced-by'
/** On a claim: the wallet that it was made for, by its Lightning id, and the digest of that wallet's files. */
export const WALLET = 'boltyard.dev/wallet'
export const DIGEST = 'boltyard.dev/digest'
/** On a claim: a daemon may have run on it, so its data may be newer than any copy. Never removed. */
export const STARTED = 'boltyard.dev/started'
/** On a claim and on a StatefulSet: the release with which the wallet has left. No daemon may ever run on it again. */
export const RELEASED = 'boltyard.dev/released'
/** More than the number of times any node is rolled back. Annotations that were changed by hand can form a cycle. */
export const MAX_REPLACED = 100

export const DATA = '/phoenix/.phoenix'
export const SECRETS = '/run/phoenix'
const USER = 1000
/** How long phoenixd may take to shut down. A deleted node must be gone within 60 s. */
const TERMINATION_SECONDS = 45
const NODE_ID = 'boltyard.dev/node-id'
const CLUSTER = 'boltyard.dev/cluster'
export const APP = { 'app.kubernetes.io/name': 'phoenixd' }
export const MANAGED_BY = { 'app.kubernetes.io/managed-by': 'boltyard' }

/** The installation and its namespace. */
export type Place = { namespace: string; installation: string }

export const labelOf = (nodeId: string): string => nodeId.replace(/^node_/, '')
export const nodeIdOf = ({ labels }: Metadata): string => `node_${labels?.[NODE_ID]}`
export const nodeName = (nodeId: string): string => `n-${labelOf(nodeId)}`
export const podName = (nodeId: string): string => `${nodeName(nodeId)}-0`
export const secretName = (nodeId: string, number: number): string => nodeName(nodeId) + (number === 0 ? '' : `-${number}`)

export function selectorOf({ installation }: Place, nodeId?: string): string {
  const labels = { ...APP, [CLUSTER]: installation, ...(nodeId === undefined ? {} : { [NODE_ID]: labelOf(nodeId) }) }
  return Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(',')
}

const base = (kind: string) => (namespace: string) => `/api/v1/namespaces/${namespace}/${kind}`
export const PATHS = {
  pods: base('pods'),
  secrets: base('secrets'),
  claims: base('persistentvolumeclaims'),
  events: base('events'),
  statefulSets: (namespace: string): string => `/apis/apps/v1/namespaces/${namespace}/statefulsets`,
  snapshots: (namespace: string): string => `/apis/${SNAPSHOT_GROUP}/v1/namespaces/${namespace}/volumesnapshots`,
}

function metadataOf(place: Place, nodeId: string, name: string): Metadata {
  const labels = { ...APP, ...MANAGED_BY, [NODE_ID]: labelOf(nodeId), [CLUSTER]: place.installation }
  return { name, namespace: place.namespace, labels }
}

const base64 = (text: string): string => Buffer.from(text, 'utf8').toString('base64')

/** Without an owner reference: garbage collection must never delete a seed or a wallet. The same holds for claims and snapshots. */
export function secretOf(place: Place, nodeId: string, name: string, files: { seed: string; conf: string }): Secret {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: metadataOf(place, nodeId, name),
    type: 'Opaque',
    immutable: true,
    data: { 'seed.dat': base64(files.seed), 'phoenix.conf': base64(files.conf) },
  }
}

/** After the restore of a cluster or database, these may be the only record of whose data it is and that a daemon has used it. */
export const startedAnnotations = (lightningId: string): Record<string, string> => ({ [WALLET]: lightningId, [STARTED]: 'true' })

export type Storage = { storageClass: string | undefined; storageSize: string }

export type ClaimOptions = { snapshot?: string; annotations?: Record<string, string> }

export function claimOf(
  place: Place,
  nodeId: string,
  name: string,
  storage: Storage,
  { snapshot, annotations }: ClaimOptions = {},
): Claim {
  const metadata = { ...metadataOf(place, nodeId, name), ...(annotations && { annotations }) }
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { ...metadata, finalizers: [KEEP] },
    spec: {
      accessModes: ['ReadWriteOncePod'],
      ...(storage.storageClass === undefined ? {} : { storageClassName: storage.storageClass }),
      resources: { requests: { storage: storage.storageSize } },
      ...(snapshot === undefined ? {} : { dataSource: { apiGroup: SNAPSHOT_GROUP, kind: 'VolumeSnapshot', name: snapshot } }),
    },
  }
}

export function snapshotOf(place: Place, nodeId: string, name: string, claim: string, snapshotClass: string): Snapshot {
  return {
    apiVersion: `${SNAPSHOT_GROUP}/v1`,
    kind: 'VolumeSnapshot',
    metadata: metadataOf(place, nodeId, name),
    spec: { volumeSnapshotClassName: snapshotClass, source: { persistentVolumeClaimName: claim } },
  }
}

/** What is decided at each start of a node. */
export type Launch = { image: string; chainArguments: string[]; claim: string; secret: string }

export function annotationsOf({ desired, epoch }: Pick<NodeSpec, 'desired' | 'epoch'>): Record<string, string> {
  return { [RUN]: String(desired.run), [VERSION]: desired.version, [FENCE]: String(epoch) }
}

export function statefulSetOf(
  place: Place,
  nodeId: string,
  launch: Launch,
  annotations: Record<string, string>,
  replicas = 1,
): StatefulSet {
  const template = templateOf(place, nodeId, launch)
  const spec = {
    serviceName: 'ln',
    replicas,
    podManagementPolicy: 'Parallel',
    // The service replaces pods itself, because it copies the data first.
    updateStrategy: { type: 'OnDelete' },
    revisionHistoryLimit: 2,
    selector: { matchLabels: { [NODE_ID]: labelOf(nodeId), [CLUSTER]: place.installation } },
    template,
  }
  const metadata = { ...metadataOf(place, nodeId, nodeName(nodeId)), annotations }
  return { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata, spec }
}

export const CONTAINER_SECURITY = {
  readOnlyRootFilesystem: true,
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
}
export const POD_SECURITY = {
  serviceAccountName: 'node',
  automountServiceAccountToken: false,
  enableServiceLinks: false,
  securityContext: {
    runAsNonRoot: true,
    runAsUser: USER,
    runAsGroup: USER,
    fsGroup: USER,
    fsGroupChangePolicy: 'OnRootMismatch',
    seccompProfile: { type: 'RuntimeDefault' },
  },
}
const lostAfter = (key: string) => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 })

/**
 * No liveness and no startup probe: phoenixd's port opens only after it has reached its peer, so a peer outage would restart every node.
 * The readiness probe connects without a request, because every route requires a password.
 */
export function templateOf(place: Place, nodeId: string, launch: Launch): PodTemplate {
  const container = {
    name: 'phoenixd',
    image: launch.image,
    args: [
      '--agree-to-terms-of-service',
      '--http-bind-ip=0.0.0.0',
      `--http-bind-port=${PORT}`,
      `--seed-path=${SECRETS}/seed.dat`,
      ...launch.chainArguments,
    ],
    env: [{ name: 'PHOENIX_DATADIR', value: DATA }],
    ports: [{ name: 'http', containerPort: PORT }],
    securityContext: CONTAINER_SECURITY,
    resources: { requests: { cpu: '50m', memory: '128Mi' }, limits: { memory: '512Mi' } },
    readinessProbe: { tcpSocket: { port: PORT }, periodSeconds: 10 },
    // The end of the log of a container that failed becomes part of the pod's status. It is the reason that the node's owner sees.
    terminationMessagePolicy: 'FallbackToLogsOnError',
    volumeMounts: [
      { name: 'data', mountPath: DATA },
      { name: 'secret', mountPath: SECRETS, readOnly: true },
      { name: 'secret', mountPath: `${DATA}/phoenix.conf`, subPath: 'phoenix.conf', readOnly: true },
      { name: 'temporary', mountPath: '/tmp' },
    ],
  }
  const spec = {
    ...POD_SECURITY,
    terminationGracePeriodSeconds: TERMINATION_SECONDS,
    containers: [container],
    volumes: [
      { name: 'data', persistentVolumeClaim: { claimName: launch.claim } },
      { name: 'secret', secret: { secretName: launch.secret, defaultMode: 0o440 } },
      { name: 'temporary', emptyDir: {} },
    ],
    tolerations: ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'].map(lostAfter),
    topologySpreadConstraints: [
      {
        maxSkew: 1,
        topologyKey: 'kubernetes.io/hostname',
        whenUnsatisfiable: 'ScheduleAnyway',
        labelSelector: { matchLabels: APP },
      },
    ],
  }
  return { metadata: { labels: { ...APP, [NODE_ID]: labelOf(nodeId), [CLUSTER]: place.installation } }, spec }
}

/** The claim that the pod of this StatefulSet uses. */
export const claimNameIn = ({ spec }: StatefulSet): string | undefined =>
  spec.template.spec.volumes.find(({ name }) => name === 'data')?.persistentVolumeClaim?.claimName
