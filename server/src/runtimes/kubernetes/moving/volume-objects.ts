import { APP, CONTAINER_SECURITY, DATA, labelOf, MANAGED_BY, type Place, POD_SECURITY, PORT, SECRETS } from '../objects.ts'
import type { PodTemplate, StatefulSet } from '../types.ts'

const VOLUME_OF = 'boltyard.dev/volume-of'
/** Several installations may share a namespace, and one must not stop what another is moving. */
const MOVED_BY = 'boltyard.dev/moved-by'

/** The name of the StatefulSet that has the node's volume while its wallet is moved. */
export const volumeName = (nodeId: string): string => `w-${labelOf(nodeId)}`

/** How to start the program that has a node's volume while its wallet is moved. `image` is the service's own. */
export type VolumeLaunch = { image: string; claim: string; secret: string; isWritable: boolean }

/**
 * A separate StatefulSet, so that its pod is never taken for the node's pod. Its pod has the label that the nodes' NetworkPolicy selects.
 * Neither has the label boltyard.dev/cluster, so the service does not observe them.
 */
export function volumeSetOf(place: Place, nodeId: string, launch: VolumeLaunch): StatefulSet {
  const labels = { [VOLUME_OF]: labelOf(nodeId) }
  const spec = {
    serviceName: 'ln',
    replicas: 1,
    updateStrategy: { type: 'OnDelete' },
    revisionHistoryLimit: 1,
    selector: { matchLabels: labels },
    template: volumeTemplateOf(nodeId, launch),
  }
  const metadata = {
    name: volumeName(nodeId),
    namespace: place.namespace,
    labels: { ...APP, ...MANAGED_BY, ...labels, [MOVED_BY]: place.installation },
  }
  return { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata, spec }
}

export const volumeSetSelector = ({ installation }: Place): string => `${VOLUME_OF},${MOVED_BY}=${installation}`
export const nodeOfVolumeSet = ({ metadata }: StatefulSet): string => `node_${metadata.labels?.[VOLUME_OF]}`

export function volumeTemplateOf(nodeId: string, { image, claim, secret, isWritable }: VolumeLaunch): PodTemplate {
  const container = {
    name: 'volume',
    image,
    imagePullPolicy: 'IfNotPresent',
    args: [
      'serve-volume',
      '--http-bind-ip=0.0.0.0',
      `--http-bind-port=${PORT}`,
      `--conf=${SECRETS}/phoenix.conf`,
      ...(isWritable ? ['--writable'] : []),
    ],
    env: [{ name: 'PHOENIX_DATADIR', value: DATA }],
    ports: [{ name: 'http', containerPort: PORT }],
    securityContext: CONTAINER_SECURITY,
    resources: { requests: { cpu: '50m', memory: '64Mi' }, limits: { memory: '256Mi' } },
    terminationMessagePolicy: 'FallbackToLogsOnError',
    volumeMounts: [
      { name: 'data', mountPath: DATA, readOnly: !isWritable },
      { name: 'secret', mountPath: SECRETS, readOnly: true },
      { name: 'temporary', mountPath: '/tmp' },
    ],
  }
  const spec = {
    ...POD_SECURITY,
    terminationGracePeriodSeconds: 5,
    containers: [container],
    volumes: [
      { name: 'data', persistentVolumeClaim: { claimName: claim } },
      // Without the seed.
      {
        name: 'secret',
        secret: { secretName: secret, defaultMode: 0o440, items: [{ key: 'phoenix.conf', path: 'phoenix.conf' }] },
      },
      { name: 'temporary', emptyDir: {} },
    ],
  }
  return { metadata: { labels: { ...APP, [VOLUME_OF]: labelOf(nodeId) } }, spec }
}
