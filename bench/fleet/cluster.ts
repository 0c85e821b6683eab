import { readFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { accessOfFile, type ClusterAccess } from '../../server/src/runtimes/kubernetes/access.ts'
import { KubernetesClient } from '../../server/src/runtimes/kubernetes/client.ts'
import {
  annotationsOf,
  claimOf,
  nodeName,
  PATHS,
  type Place,
  podName,
  statefulSetOf,
  templateOf,
} from '../../server/src/runtimes/kubernetes/objects.ts'
import { pickStatefulSet } from '../../server/src/runtimes/kubernetes/picks.ts'
import type { Pod, Resource, SeenStatefulSet, StatefulSet, Stored } from '../../server/src/runtimes/kubernetes/types.ts'
import { ListWatch } from '../../server/src/runtimes/kubernetes/watch.ts'
import { grant, rulesIn } from '../../testing/kubernetes/rights.ts'
import { silent } from '../../testing/kubernetes/silent.ts'
import { closedLoop } from '../measure.ts'
import { addressOf, type FleetNode, specOf } from './nodes.ts'

const NAMESPACE = 'fleet'
const WRITERS = 32
const RIGHTS = readFileSync(new URL('../../docs/kubernetes.md', import.meta.url), 'utf8')
const WRITES =
  /^apiserver_request_total\{(?=.*resource="(?:pods|secrets|statefulsets|persistentvolumeclaims)")(?=.*verb="(?:POST|PUT|PATCH|APPLY|DELETE)").*\} (\S+)$/gm

/**
 * The fleet as the API server shows it. The bench writes the objects itself, including the pods, and reports each pod as ready. So
 * thousands of nodes need neither the controllers nor the scheduler, which would take most of the machine's CPU time.
 */
export class FleetCluster {
  readonly #admin: KubernetesClient
  readonly #access: ClusterAccess
  readonly #image: string
  #kubelet: ListWatch<SeenStatefulSet> | undefined
  #ownWrites = 0

  constructor(kubeconfig: string, image: string) {
    this.#access = accessOfFile(kubeconfig)
    this.#admin = new KubernetesClient(this.#access)
    this.#image = image
  }

  /** Creates the namespace. Returns the environment of a service that has exactly the rights in the documentation. */
  async open(directory: string): Promise<Record<string, string>> {
    const node = { metadata: { name: 'node' }, automountServiceAccountToken: false } as Resource
    await this.#create('/api/v1/namespaces', { metadata: { name: NAMESPACE } })
    await this.#create(`/api/v1/namespaces/${NAMESPACE}/serviceaccounts`, node)
    const rules = rulesIn(RIGHTS).get('boltyard') ?? []
    const path = join(directory, 'kubeconfig')
    return {
      NODE_RUNTIME: 'kubernetes',
      NODE_NAMESPACE: NAMESPACE,
      KUBECONFIG: await grant(this.#admin, this.#access, NAMESPACE, 'boltyard', rules, path),
    }
  }

  /** Creates the objects of these nodes, as the service would, and their pods. */
  async add(installation: string, nodes: FleetNode[]): Promise<void> {
    const place = { namespace: NAMESPACE, installation }
    await closedLoop(nodes.length, WRITERS, async (index) => {
      const node = nodes[index]
      if (!node) return
      const name = nodeName(node.id)
      await this.#create(PATHS.claims(NAMESPACE), claimOf(place, node.id, name, { storageClass: undefined, storageSize: '1Gi' }))
      const launch = { image: this.#image, chainArguments: [], claim: name, secret: name }
      const set = await this.#create(
        PATHS.statefulSets(NAMESPACE),
        statefulSetOf(place, node.id, launch, annotationsOf(specOf(node))),
      )
      await this.#run(place, node, set)
    })
  }

  async #run(place: Place, node: FleetNode, set: Stored<StatefulSet>): Promise<void> {
    const { metadata, spec } = templateOf(place, node.id, {
      image: this.#image,
      chainArguments: [],
      claim: nodeName(node.id),
      secret: nodeName(node.id),
    })
    const { name, uid } = set.metadata
    const owner = { apiVersion: 'apps/v1', kind: 'StatefulSet', name, uid, controller: true, blockOwnerDeletion: true }
    const pod = {
      metadata: { name: podName(node.id), labels: metadata.labels, ownerReferences: [owner] },
      spec: { ...spec, nodeName: 'fleet', hostname: podName(node.id), subdomain: 'ln' },
    }
    const created = await this.#create(PATHS.pods(NAMESPACE), pod as Resource)
    const path = `${PATHS.pods(NAMESPACE)}/${podName(node.id)}/status`
    await this.#admin.patch(path, created, [{ op: 'add', path: '/status', value: readyStatus(addressOf(node)) }])
    this.#ownWrites++
  }

  /** From now on, the pod of a StatefulSet that is scaled is removed or created, as the controllers and the kubelet would do. */
  async startKubelet(installation: string, nodes: FleetNode[]): Promise<void> {
    const place = { namespace: NAMESPACE, installation }
    const byName = new Map(nodes.map((node) => [nodeName(node.id), node]))
    const scaled = async (set: Stored<SeenStatefulSet>): Promise<void> => {
      const node = byName.get(set.metadata.name)
      if (!node) return
      const path = `${PATHS.pods(NAMESPACE)}/${podName(node.id)}`
      const pod = await this.#admin.get<Pod>(path)
      if (pod && set.spec.replicas === 0) {
        await this.#admin.deletePod(pod, path, 0)
        const status = { op: 'add' as const, path: '/status/observedGeneration', value: set.metadata.generation }
        await this.#admin.patch(`${PATHS.statefulSets(NAMESPACE)}/${set.metadata.name}/status`, set, [status])
        this.#ownWrites += 2
      } else if (!pod && set.spec.replicas === 1) await this.#run(place, node, set as Stored<StatefulSet>)
    }
    await new Promise<void>((resolve) => {
      this.#kubelet = new ListWatch<SeenStatefulSet>({
        client: this.#admin,
        path: PATHS.statefulSets(NAMESPACE),
        labelSelector: 'app.kubernetes.io/name=phoenixd',
        pick: pickStatefulSet,
        replace: () => resolve(),
        changed: (set) => void scaled(set).catch((error: unknown) => console.error('kubelet:', error)),
        deleted: () => undefined,
        log: silent,
      })
    })
  }

  /** How many writes of nodes' objects the API server has answered, without those of the bench. */
  async serviceWrites(): Promise<number> {
    const text = await this.#metrics()
    return [...text.matchAll(WRITES)].reduce((sum, [, count]) => sum + Number(count), 0) - this.#ownWrites
  }

  #metrics(): Promise<string> {
    const { server, ca } = this.#access
    const headers = { authorization: `Bearer ${this.#access.token()}` }
    return new Promise((resolve, reject) => {
      request(new URL('/metrics', server), { headers, ...(ca ? { ca } : {}) }, (response) => {
        response.setEncoding('utf8')
        response.toArray().then((chunks) => resolve(chunks.join('')), reject)
      })
        .on('error', reject)
        .end()
    })
  }

  async #create<T extends Resource>(path: string, object: T): Promise<Stored<T>> {
    const created = await this.#admin.create(path, object)
    if (!created) throw new Error(`${path}: ${object.metadata.name} exists`)
    this.#ownWrites++
    return created
  }

  async close(): Promise<void> {
    await this.#kubelet?.close()
    this.#admin.close()
  }
}

/** What a kubelet reports of a pod whose only container runs. */
function readyStatus(podIP: string): object {
  const startedAt = new Date().toISOString().replace(/\.\d+Z$/, 'Z')
  const types = ['PodReadyToStartContainers', 'Initialized', 'Ready', 'ContainersReady', 'PodScheduled']
  const container = {
    name: 'phoenixd',
    image: 'phoenixd',
    imageID: `sha256:${'0'.repeat(64)}`,
    containerID: `containerd://${'0'.repeat(64)}`,
    ready: true,
    started: true,
    restartCount: 0,
    state: { running: { startedAt } },
    lastState: {},
  }
  return {
    phase: 'Running',
    conditions: types.map((type) => ({ type, status: 'True', lastTransitionTime: startedAt })),
    hostIP: '10.0.0.1',
    podIP,
    podIPs: [{ ip: podIP }],
    startTime: startedAt,
    qosClass: 'Burstable',
    containerStatuses: [container],
  }
}
