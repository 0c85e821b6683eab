import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { TryAgain } from '../../server/src/nodes/runtime.ts'
import type { KubernetesClient } from '../../server/src/runtimes/kubernetes/client.ts'
import { PATHS } from '../../server/src/runtimes/kubernetes/objects.ts'
import type {
  Claim,
  ContainerState,
  Metadata,
  Pod,
  PodTemplate,
  Resource,
  Secret,
  Stored,
} from '../../server/src/runtimes/kubernetes/types.ts'
import { ListWatch } from '../../server/src/runtimes/kubernetes/watch.ts'
import { eventually } from '../eventually.ts'
import { silent } from './silent.ts'

type FullPod = Pod & { spec: PodTemplate['spec'] & { nodeName?: string } }
type Container = { state: ContainerState; lastState?: ContainerState; restartCount: number; containerID?: string }

const HEARTBEAT_MS = 10_000
const FIRST_BACKOFF_MS = 10_000
const LOG_BYTES = 2_048

export type KubeletOptions = {
  client: KubernetesClient
  namespace: string
  /** The name of the machine that this kubelet represents. */
  name: string
  directory: string
  /** The program to run for each image. Pulling any other image fails. */
  images: Map<string, string>
  claimDirectory: (uid: string) => string
}

/**
 * A small kubelet: runs the containers of pods as processes of this machine, each on its own loopback address. It restarts, terminates and
 * reports containers as the real kubelet does.
 */
export class Kubelet {
  readonly #options: KubeletOptions
  readonly #pods = new Map<string, RunningPod>()
  readonly #watch: ListWatch<FullPod>
  readonly #heart: NodeJS.Timeout

  private constructor(options: KubeletOptions) {
    this.#options = options
    this.#heart = setInterval(() => void this.#beat().catch(() => undefined), HEARTBEAT_MS)
    this.#watch = new ListWatch<FullPod>({
      client: options.client,
      path: PATHS.pods(options.namespace),
      labelSelector: 'app.kubernetes.io/name=phoenixd',
      replace: (pods) => {
        for (const pod of pods) this.#changed(pod)
      },
      changed: (pod) => this.#changed(pod),
      deleted: ({ metadata }) => this.#pods.delete(metadata.uid),
      log: silent,
    })
  }

  static async start(options: KubeletOptions): Promise<Kubelet> {
    const { client, name } = options
    const labels = { 'kubernetes.io/hostname': name }
    await client.create('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name, labels } })
    const kubelet = new Kubelet(options)
    // Retried, because the controllers change a new machine at the same time, so the patch may conflict.
    await eventually(async () => {
      await kubelet.#beat()
      return true
    }, `the machine ${name}`)
    return kubelet
  }

  async #beat(): Promise<void> {
    const { client, name } = this.#options
    const path = `/api/v1/nodes/${name}`
    const node = await client.get(path)
    if (!node) return
    const now = new Date().toISOString().replace(/\.\d+Z$/, 'Z')
    const sizes = { cpu: '1000', memory: '1000Gi', pods: '20000' }
    const ready = { type: 'Ready', status: 'True', reason: 'KubeletReady', lastHeartbeatTime: now, lastTransitionTime: now }
    const value = { capacity: sizes, allocatable: sizes, conditions: [ready] }
    await client.patch(`${path}/status`, node, [{ op: 'add', path: '/status', value }])
  }

  #changed(pod: Stored<FullPod>): void {
    if (pod.spec.nodeName !== this.#options.name) return
    const known = this.#pods.get(pod.metadata.uid) ?? new RunningPod(this.#options, pod)
    this.#pods.set(pod.metadata.uid, known)
    if (pod.metadata.deletionTimestamp !== undefined) known.terminate(pod.metadata.deletionGracePeriodSeconds ?? 0)
  }

  /** Kills the process of a pod, which looks like a crash. */
  async crash(name: string): Promise<void> {
    const pod = [...this.#pods.values()].find((one) => one.name === name && one.child)
    if (!pod?.child) throw new Error(`no process of ${name}`)
    const { child } = pod
    child.kill('SIGKILL')
    await once(child, 'exit')
  }

  processes(name: string): number[] {
    return [...this.#pods.values()].flatMap((pod) => (pod.name === name && pod.child?.pid ? [pod.child.pid] : []))
  }

  async close(): Promise<void> {
    clearInterval(this.#heart)
    await this.#watch.close()
    await Promise.all([...this.#pods.values()].map((pod) => pod.abandon()))
    const { client, name } = this.#options
    const node = await client.get(`/api/v1/nodes/${name}`)
    if (node) await client.delete(node, `/api/v1/nodes/${name}`).catch(() => undefined)
  }
}

class RunningPod {
  readonly name: string
  child: ChildProcess | undefined
  readonly #options: KubeletOptions
  readonly #pod: Stored<FullPod>
  readonly #ip: string
  readonly #ended = new AbortController()
  readonly #life: Promise<void>
  #container: Container = { state: { waiting: { reason: 'ContainerCreating' } }, restartCount: 0 }
  #isTerminating = false
  #isAbandoned = false
  #reporting: Promise<void> = Promise.resolve()

  constructor(options: KubeletOptions, pod: Stored<FullPod>) {
    this.#options = options
    this.#pod = pod
    this.name = pod.metadata.name
    const [a = 0, b = 0, c = 0] = createHash('sha256').update(pod.metadata.uid).digest()
    this.#ip = `127.${1 + (a % 254)}.${b}.${1 + (c % 254)}`
    this.#life = this.#live().catch((error: unknown) => void process.stderr.write(`kubelet: ${String(error)}\n`))
  }

  async #live(): Promise<void> {
    let backoffMs = 0
    while (!this.#isTerminating) {
      const command = await this.#prepare()
      if (typeof command === 'string') {
        await this.#sleep(500)
        continue
      }
      const ended = await this.#run(command)
      if (this.#isTerminating) break
      const { restartCount } = this.#container
      this.#set({ state: { terminated: ended }, restartCount, containerID: this.#container.containerID ?? '' })
      if (backoffMs > 0)
        this.#set({ state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState: { terminated: ended }, restartCount })
      await this.#sleep(backoffMs)
      backoffMs = backoffMs === 0 ? FIRST_BACKOFF_MS : backoffMs * 2
      this.#container = { ...this.#container, lastState: { terminated: ended }, restartCount: restartCount + 1 }
    }
  }

  /** Returns the command, or a string that says why there is none yet. */
  async #prepare(): Promise<string[] | string> {
    const { client, namespace, images } = this.#options
    const { volumes, containers } = this.#pod.spec
    const image = containers[0]?.image ?? ''
    const program = images.get(image)
    if (program === undefined) {
      this.#set({ ...this.#container, state: { waiting: { reason: 'ErrImagePull', message: `${image}: not found` } } })
      return 'no image'
    }
    const claimName = volumes.find(({ name }) => name === 'data')?.persistentVolumeClaim?.claimName
    const secretName = volumes.find(({ name }) => name === 'secret')?.secret?.secretName
    const claim = await client.get<Claim>(`${PATHS.claims(namespace)}/${claimName}`)
    const secret = await client.get<Secret>(`${PATHS.secrets(namespace)}/${secretName}`)
    if (!claim || !secret) {
      await this.#event(
        'FailedMount',
        `MountVolume.SetUp failed for volume: ${claim ? `secret "${secretName}"` : claimName} not found`,
      )
      return 'no volume'
    }
    const data = this.#options.claimDirectory(claim.metadata.uid)
    const mounted = join(this.#options.directory, `pod-${this.#pod.metadata.uid}`)
    mkdirSync(mounted, { recursive: true })
    for (const [name, value] of Object.entries(secret.data)) writeFileSync(join(mounted, name), Buffer.from(value, 'base64'))
    // In a real pod, phoenix.conf is mounted into the data directory as a single file.
    writeFileSync(join(data, 'phoenix.conf'), Buffer.from(secret.data['phoenix.conf'] ?? '', 'base64'))
    const args = (containers[0]?.args ?? []).map((argument) =>
      argument.replace('=0.0.0.0', `=${this.#ip}`).replace('=/run/phoenix/', `=${mounted}/`),
    )
    return [program, ...args, data]
  }

  async #run(command: string[]): Promise<NonNullable<ContainerState['terminated']>> {
    const [program = '', ...args] = command
    const data = args.pop() ?? ''
    const startedAt = new Date().toISOString().replace(/\.\d+Z$/, 'Z')
    const logPath = join(this.#options.directory, `${this.#pod.metadata.uid}.log`)
    rmSync(logPath, { force: true })
    const log = openSync(logPath, 'a')
    const env = { PATH: process.env.PATH ?? '', HOME: data, PHOENIX_DATADIR: data }
    const child = spawn(program, args, { cwd: data, env, stdio: ['ignore', log, log] })
    closeSync(log)
    this.child = child
    const containerID = `process://${child.pid}`
    this.#set({ ...this.#container, state: { running: { startedAt } }, containerID })
    const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null]
    this.child = undefined
    const exitCode = code ?? (signal === 'SIGKILL' ? 137 : 143)
    const message = exitCode === 0 ? '' : readFileSync(logPath, 'utf8').slice(-LOG_BYTES)
    return { exitCode, reason: exitCode === 0 ? 'Completed' : 'Error', startedAt, ...(message ? { message } : {}) }
  }

  terminate(graceSeconds: number): void {
    // Called for every change of a terminating pod. Only a second deletion, to kill it, has a grace period this short.
    if (this.#isTerminating && graceSeconds > 1) return
    const isFirst = !this.#isTerminating
    this.#isTerminating = true
    this.#ended.abort()
    const { child } = this
    child?.kill('SIGTERM')
    const timer = setTimeout(() => child?.kill('SIGKILL'), graceSeconds * 1000)
    void this.#life.then(() => clearTimeout(timer))
    if (isFirst) void this.#finish().catch((error: unknown) => void process.stderr.write(`kubelet: ${String(error)}\n`))
  }

  /** As in a real kubelet, the final report comes before the deletion, and a container that was never created is reported as unknown. */
  async #finish(): Promise<void> {
    await this.#life
    if (this.#isAbandoned) return
    const { containerID } = this.#container
    const unknown = { exitCode: 137, reason: 'ContainerStatusUnknown', message: 'The container could not be located' }
    const terminated = containerID === undefined ? unknown : { exitCode: 0, reason: 'Completed', startedAt: null }
    this.#set({ ...this.#container, state: { terminated } })
    await this.#reporting
    const { client, namespace } = this.#options
    await client.deletePod(this.#pod, `${PATHS.pods(namespace)}/${this.name}`, 0)
  }

  /** Ends the pod as if its machine were lost: nothing is reported. */
  async abandon(): Promise<void> {
    this.#isAbandoned = true
    this.#isTerminating = true
    this.#ended.abort()
    this.child?.kill('SIGKILL')
    await this.#life
    await this.#reporting
  }

  #set(container: Container): void {
    this.#container = container
    this.#reporting = this.#reporting.then(() => this.#report(container)).catch(() => undefined)
  }

  async #report(container: Container): Promise<void> {
    const { client, namespace } = this.#options
    const path = `${PATHS.pods(namespace)}/${this.name}`
    const isRunning = container.state.running !== undefined
    const containers = {
      name: 'phoenixd',
      image: 'image',
      imageID: '',
      ready: isRunning,
      started: isRunning,
      lastState: {},
      ...container,
    }
    while (!this.#isAbandoned) {
      const pod = await client.get<FullPod>(path)
      if (pod?.metadata.uid !== this.#pod.metadata.uid) return
      const others = (pod.status?.conditions ?? []).filter(({ type }) => type !== 'Ready' && type !== 'ContainersReady')
      const conditions = [
        ...others,
        ...['Ready', 'ContainersReady'].map((type) => ({ type, status: isRunning ? 'True' : 'False' })),
      ]
      const value = {
        ...pod.status,
        phase: container.containerID ? 'Running' : 'Pending',
        podIP: this.#ip,
        podIPs: [{ ip: this.#ip }],
        conditions,
        containerStatuses: [containers],
      }
      try {
        await client.patch(`${path}/status`, pod, [{ op: 'add', path: '/status', value }])
        return
      } catch (error) {
        if (!(error instanceof TryAgain)) throw error
      }
    }
  }

  async #event(reason: string, message: string): Promise<void> {
    const { client, namespace } = this.#options
    const { name, uid } = this.#pod.metadata
    const now = new Date().toISOString().replace(/\.\d+Z$/, 'Z')
    const metadata = { name: `${name}.${reason.toLowerCase()}`, namespace } as Metadata
    const involvedObject = { apiVersion: 'v1', kind: 'Pod', namespace, name, uid }
    const event = { apiVersion: 'v1', kind: 'Event', metadata, involvedObject, reason, message, type: 'Warning' }
    await client.create(PATHS.events(namespace), { ...event, firstTimestamp: now, lastTimestamp: now, count: 1 } as Resource)
  }

  async #sleep(ms: number): Promise<void> {
    await pause(ms, undefined, { signal: this.#ended.signal }).catch(() => undefined)
  }
}
